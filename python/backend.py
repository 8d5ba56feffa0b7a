"""Builds wheels for pip with CMake and nothing else, so that `pip install .` in this folder downloads nothing (PEP 517)."""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
NAME = "onx"


def _version():
    with open(os.path.join(ROOT, "include", "onx", "base.h")) as f:
        numbers = dict(re.findall(r"#define ONX_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)", f.read()))
    return "%(MAJOR)s.%(MINOR)s.%(PATCH)s" % numbers


def _tag():
    return "cp39-abi3-" + re.sub("[-.]", "_", sysconfig.get_platform())


def _metadata():
    return ("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: All of ONNX: load, check, change and run models\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy\n" % (NAME, _version()))


def _wheel():
    return "Wheel-Version: 1.0\nGenerator: onx\nRoot-Is-Purelib: false\nTag: %s\n" % _tag()


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = "%s-%s.dist-info" % (NAME, _version())
    os.makedirs(os.path.join(metadata_directory, name))
    for file, text in (("METADATA", _metadata()), ("WHEEL", _wheel())):
        with open(os.path.join(metadata_directory, name, file), "w") as f:
            f.write(text)
    return name


def _build(folder):
    """Builds the package with CMake; returns its folder. If ONX_BUILD_DIR is set, that build is used instead."""
    build = os.environ.get("ONX_BUILD_DIR") or os.path.join(folder, "build")
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DONX_TESTS=OFF", "-DONX_PYTHON=ON",
                    "-DONX_PYTHON_EXECUTABLE=" + sys.executable] if "ONX_BUILD_DIR" not in os.environ else ["true"], check=True)
    subprocess.run(["cmake", "--build", build, "--target", "onx_python_modules"], check=True)
    return os.path.join(build, "python", NAME)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = "%s-%s.dist-info/" % (NAME, _version())
    wheel = "%s-%s-%s.whl" % (NAME, _version(), _tag())
    records = []
    with tempfile.TemporaryDirectory() as folder, \
            zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as out:
        package = _build(folder)

        def add(name, data):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))
            out.writestr(name, data)

        for place, folders, files in os.walk(package):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for file in sorted(files):
                with open(os.path.join(place, file), "rb") as f:
                    add(NAME + "/" + os.path.relpath(os.path.join(place, file), package), f.read())
        add(info + "METADATA", _metadata().encode())
        add(info + "WHEEL", _wheel().encode())
        out.writestr(info + "RECORD", "".join(records) + info + "RECORD,,\n")
    return wheel
