"""Arrays of the package ml_dtypes: types that NumPy lacks, as inputs and outputs."""
import unittest

import numpy as np
import onx
import onx.backend
from onx import _support

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


@unittest.skipUnless(ml_dtypes, "the package ml_dtypes is not installed")
class SmallTypes(unittest.TestCase):
    def test_all_types_come_through(self):
        seen = 0
        for other, name in _support._OTHER_NAMES.items():
            kind = getattr(ml_dtypes, other, None)
            if kind is None:
                continue  # an older ml_dtypes
            seen += 1
            numbers = np.array([1, 2, 1, 1, 2] if name == "float8e8m0" else [0, 1, 1, 0, 1], "f")
            for array in (numbers.astype(kind), numbers.astype(kind).reshape(5, 1), numbers[:0].astype(kind), numbers.astype(kind)[::2]):
                with self.subTest(name, shape=array.shape):
                    value = onx.Value(array)
                    self.assertEqual((value.dtype, value.shape), (name, array.shape))
                    exact = value.numpy(ml_dtypes=True)
                    self.assertEqual((exact.dtype, exact.shape), (array.dtype, array.shape))
                    self.assertEqual(exact.tobytes(), np.ascontiguousarray(array).tobytes())
                    wide = value.numpy()
                    np.testing.assert_array_equal(wide, array.astype(wide.dtype))
                    np.testing.assert_array_equal(onx.tensor(array).numpy(), wide)
        self.assertGreaterEqual(seen, 8)

    def test_signs(self):
        for kind in (ml_dtypes.int4, ml_dtypes.int2):
            array = np.array([-1, 1, -2, 0, -1], "i1").astype(kind)
            np.testing.assert_array_equal(onx.Value(array).numpy(), array.astype("i1"))
            np.testing.assert_array_equal(onx.Value(array).numpy(ml_dtypes=True).astype("i1"), array.astype("i1"))

    def test_session_and_backend(self):
        model = onx.parse('<ir_version: 13, opset_import: ["" : 25]> g (float[N] x) => (bfloat16[N] y) { y = Cast<to = 16>(x) }')
        x = np.array([1, 2.5], "f")
        self.assertEqual(onx.Session(model)(x).dtype, np.float32)
        self.assertEqual(onx.Session(model, ml_dtypes=True)(x).dtype, ml_dtypes.bfloat16)
        self.assertEqual(onx.backend.run_model(model, [x])[0].dtype, ml_dtypes.bfloat16)


if __name__ == "__main__":
    unittest.main()
