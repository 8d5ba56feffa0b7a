#!/usr/bin/env python3
"""Compares onx with onnxruntime on tree models as scikit-learn, XGBoost, LightGBM and CatBoost train them and their converters
write them:  trained_trees.py ONX

It needs NumPy, onnxruntime, scikit-learn and skl2onnx; the models of a library or converter that is not installed are left out, and a message says so."""
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")
try:
    import onnx
    import onnxruntime
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn import ensemble, linear_model, svm, tree
except ImportError as e:
    print("left out: %s is not installed" % e.name)
    sys.exit(77)

make_attribute = onnx.helper.make_attribute


def numbers(value):
    return value.item() if isinstance(value, np.generic) else [numbers(v) for v in np.ravel(value)] if isinstance(value, (list, np.ndarray)) else value


# skl2onnx 1.20 gives NumPy's scalars to onnx, which takes Python's only.
onnx.helper.make_attribute = lambda key, value, *args, **more: make_attribute(key, numbers(value), *args, **more)

random = np.random.RandomState(0)
X = random.randn(150, 4).astype(np.float32)
HOLES = X.copy()
HOLES[random.rand(*X.shape) < 0.1] = np.nan
SCORE = X[:, 0] + X[:, 1] * X[:, 2]
TARGET = (SCORE + 0.1 * random.randn(150)).astype(np.float32)
TARGETS = np.stack([TARGET, X[:, 3] - TARGET], 1)
CLASSES = {"one": np.zeros(150, int), "two": (SCORE > 0).astype(int), "rare": (SCORE > 1.5).astype(int), "three": np.digitize(SCORE, [-0.5, 0.5])}
NAMES = {"numbers": np.array([0, 1, 2]), "others": np.array([7, -3, 40]), "texts": np.array(["a", "b", "c"])}


def scikit():
    options = {"zipmap": False}

    def converted(model, double=False, **more):
        kind = DoubleTensorType if double else FloatTensorType
        given = {id(model): dict({} if isinstance(model, svm.LinearSVC) else options, **more)} if hasattr(model, "classes_") else None
        return skl2onnx.to_onnx(model, initial_types=[("x", kind([None, 4]))], options=given, target_opset={"": 18, "ai.onnx.ml": 3})

    for shape, classes in CLASSES.items():
        for naming, names in NAMES.items():
            if shape == "one" and naming != "numbers":
                continue  # onnxruntime ends the process, or gives the label 1
            y = names[classes] if shape != "one" else classes + 1
            makers = {
                "random forest": ensemble.RandomForestClassifier(5, max_depth=4, random_state=0),
                "extra trees": ensemble.ExtraTreesClassifier(5, max_depth=4, random_state=0),
                "tree": tree.DecisionTreeClassifier(max_depth=4),
            }
            if shape != "one":
                makers["bagging"] = ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=3), 4, random_state=0)
                makers["gradient boosting"] = ensemble.GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0)
                makers["histograms"] = ensemble.HistGradientBoostingClassifier(max_iter=5, max_depth=3)
                makers["ada boost"] = ensemble.AdaBoostClassifier(n_estimators=3)
            if shape in ("two", "rare"):
                makers["exponential"] = ensemble.GradientBoostingClassifier(loss="exponential", n_estimators=5, max_depth=2)
                makers["linear"] = linear_model.LogisticRegression()
                makers["hinge"] = svm.LinearSVC()
                makers["SVM"] = svm.SVC()
                makers["SVM, probabilities"] = svm.SVC(probability=True, random_state=0)
            elif shape == "three":
                makers["linear"] = linear_model.LogisticRegression()
                makers["SVM"] = svm.SVC(probability=True, random_state=0)
            for name, model in makers.items():
                model.fit(X, y)
                label = "%s, %s, %s" % (name, shape, naming)
                raw = [False, True] if name in ("gradient boosting", "histograms", "exponential", "linear", "SVM", "random forest") and shape != "one" else [False]
                for scores in raw:
                    if scores and name == "random forest":
                        yield label + ", double", lambda: converted(model, True), X.astype(np.float64)
                    elif scores:
                        yield label + ", raw scores", lambda: converted(model, raw_scores=True), X
                    else:
                        yield label, lambda: converted(model), X
                if name == "histograms":
                    model.fit(HOLES, y)
                    yield label + ", missing values", lambda: converted(model), HOLES
    for name, model, y in [
        ("tree", tree.DecisionTreeRegressor(max_depth=5), TARGET), ("tree", tree.DecisionTreeRegressor(max_depth=5), TARGETS),
        ("random forest", ensemble.RandomForestRegressor(5, max_depth=5), TARGETS), ("extra trees", ensemble.ExtraTreesRegressor(5), TARGET),
        ("gradient boosting", ensemble.GradientBoostingRegressor(n_estimators=9), TARGET),
        ("histograms", ensemble.HistGradientBoostingRegressor(max_iter=5), TARGET), ("bagging", ensemble.BaggingRegressor(n_estimators=3), TARGET),
        ("ada boost", ensemble.AdaBoostRegressor(n_estimators=3), TARGET), ("isolation forest", ensemble.IsolationForest(n_estimators=5), None)]:
        model.fit(X, y)
        yield "%s, regression" % name, lambda: converted(model), X


def others(library):
    from onnxmltools.convert.common.data_types import FloatTensorType as Floats

    given = [("x", Floats([None, 4]))]
    if library == "xgboost":
        import xgboost
        from onnxmltools import convert_xgboost as convert
        makers = [("xgboost " + o, xgboost.XGBClassifier(n_estimators=5, max_depth=3, objective=o), s) for o, s in [
            ("binary:logistic", "two"), ("binary:logitraw", "two"), ("binary:hinge", "two"), ("binary:logistic", "rare"), ("multi:softprob", "three"), ("multi:softmax", "three")]]
        makers += [("xgboost " + o, xgboost.XGBRegressor(n_estimators=5, max_depth=3, objective=o), None) for o in [
            "reg:squarederror", "reg:logistic", "count:poisson", "reg:gamma", "reg:tweedie", "reg:absoluteerror"]]
        makers.append(("xgboost forest", xgboost.XGBRFClassifier(n_estimators=5, max_depth=3), "two"))
    else:
        import lightgbm
        from onnxmltools import convert_lightgbm as convert
        quiet = dict(n_estimators=5, num_leaves=7, min_child_samples=5, verbose=-1)
        makers = [("lightgbm " + o, lightgbm.LGBMClassifier(objective=o, **quiet), s) for o, s in [
            ("binary", "two"), ("binary", "rare"), ("multiclass", "three"), ("multiclassova", "three")]]
        makers += [("lightgbm " + o, lightgbm.LGBMRegressor(objective=o, **quiet), None) for o in [
            "regression", "poisson", "gamma", "tweedie", "quantile", "huber"]]
        makers += [("lightgbm " + b, lightgbm.LGBMClassifier(boosting_type=b, **dict(quiet, **m)), "two") for b, m in [
            ("dart", {}), ("rf", dict(bagging_freq=1, bagging_fraction=0.8))]]
    for name, model, shape in makers:
        y = CLASSES[shape] if shape else (TARGET - TARGET.min()) / np.ptp(TARGET) + (0.01 if "logistic" not in name else 0)
        for x, holes in [(X, ""), (HOLES, ", missing values")]:
            model.fit(x, y)
            yield name + (", " + shape if shape else "") + holes, lambda: convert(model, initial_types=given, target_opset=15), x
    if library == "lightgbm":
        kinds = X.copy()
        kinds[:, 3] = random.randint(0, 6, 150)
        model = lightgbm.LGBMClassifier(**quiet).fit(kinds, CLASSES["two"], categorical_feature=[3])
        yield "lightgbm categories", lambda: convert(model, initial_types=given, target_opset=15), kinds


def catboost_models():
    import catboost

    quiet = dict(iterations=5, depth=3, verbose=False, allow_writing_files=False)

    def saved(model):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
            model.save_model(f.name, format="onnx")
            return open(f.name, "rb").read()

    for shape in ("two", "rare", "three"):
        for naming, names in NAMES.items():
            if naming == "others" and shape != "three":
                continue  # onnxruntime gives the labels 0 and 1
            model = catboost.CatBoostClassifier(**quiet).fit(X, names[CLASSES[shape]])
            yield "catboost, %s, %s" % (shape, naming), lambda: saved(model), X
    for loss, y in [("RMSE", TARGET), ("MAE", TARGET), ("MultiRMSE", TARGETS)]:
        model = catboost.CatBoostRegressor(loss_function=loss, **quiet).fit(X, y)
        yield "catboost " + loss, lambda: saved(model), X


def everything():
    for library, models in ("sklearn", scikit), ("xgboost", lambda: others("xgboost")), ("lightgbm", lambda: others("lightgbm")), ("catboost", catboost_models):
        try:
            yield from models()
        except ImportError as e:
            print("left out: models of %s, as %s is not installed" % (library, e.name))


def compare(onx, name, model, x, folder):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    open(folder + "/m.onnx", "wb").write(data)
    np.save(folder + "/x.npy", x)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        print("left out: onnxruntime refuses %s: %s" % (name, str(e).splitlines()[0][-60:]))
        return None
    given = session.get_inputs()[0].name
    outputs = [o for o in session.get_outputs() if o.type.startswith("tensor")]
    wanted = session.run([o.name for o in outputs], {given: x})
    command = [onx, "run", "--threads", "1", folder + "/m.onnx", "-i", given + "=" + folder + "/x.npy", "--npy", "--output-dir", folder + "/out"]
    for o in outputs:
        command += ["--outputs", o.name]
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        return p.stderr.strip()[:300]
    for i, w in enumerate(wanted):
        g = np.load("%s/out/output_%d.npy" % (folder, i))
        if g.shape != w.shape:
            return "%s has shape %s, expected %s" % (outputs[i].name, g.shape, w.shape)
        same = np.isclose(g, w, 1e-4, 1e-5, equal_nan=True) if w.dtype.kind == "f" else g.astype(str) == w.astype(str)
        if not same.all():
            at = tuple(np.argwhere(~same)[0])
            return "%s differs in %d of %d, first at %s: %s, expected %s" % (outputs[i].name, (~same).sum(), same.size, [int(k) for k in at], g[at], w[at])
    return ""


good = bad = 0
with tempfile.TemporaryDirectory() as folder:
    for name, convert, x in everything():
        try:
            model = convert()
        except Exception as e:
            print("left out: %s is not converted: %s" % (name, (str(e) or type(e).__name__).splitlines()[0][:120]))
            continue
        why = compare(sys.argv[1], name, model, x, folder)
        good += why == ""
        bad += bool(why)
        if why:
            print("%s: %s" % (name, why))
print("%d models agree, %d differ" % (good, bad))
sys.exit(bad > 0)
