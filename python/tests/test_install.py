"""pip builds a wheel without a network, and the installed package works."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import models
import onx

try:
    import pip
except ImportError:
    models.skip("no pip here")


class TestInstall(unittest.TestCase):
    def test_wheel(self):
        build = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(onx.__file__))))
        with tempfile.TemporaryDirectory() as folder:
            there = os.path.join(folder, "there")
            environment = dict(os.environ, ONX_BUILD_DIR=build, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
            environment.pop("PYTHONPATH")
            command = [sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--target", there, os.path.join(models.ROOT, "python")]
            subprocess.run(command, check=True, env=environment)
            environment["PYTHONPATH"] = there
            script = "import onx, numpy; s = onx.Session(%r); print(onx.__file__, s(numpy.zeros((1, 1, 8, 8), 'f')).shape)" % models.STRIPES
            out = subprocess.run([sys.executable, "-c", script], check=True, env=environment, stdout=subprocess.PIPE, text=True, cwd=folder).stdout
            self.assertIn(there, out)
            self.assertIn("(1, 4)", out)
            info = [f for f in os.listdir(there) if f.endswith(".dist-info")]
            self.assertEqual(info, ["onx-%s.dist-info" % onx.__version__])

    def test_stubs_without_numpy(self):
        """pip builds in an environment that has no NumPy: the stubs are the same there."""
        package = os.path.dirname(os.path.abspath(onx.__file__))
        with tempfile.TemporaryDirectory() as folder:
            there = os.path.join(folder, "onx")
            shutil.copytree(package, there)
            os.remove(os.path.join(there, "__init__.pyi"))
            script = ("import runpy, sys; sys.modules['numpy'] = None; sys.argv = ['stubs.py', %r]; runpy.run_path(%r)"
                      % (there, os.path.join(models.ROOT, "python", "stubs.py")))
            environment = dict(os.environ)
            environment.pop("PYTHONPATH", None)
            subprocess.run([sys.executable, "-B", "-c", script], check=True, env=environment, cwd=folder)
            with open(os.path.join(there, "__init__.pyi")) as made, open(os.path.join(package, "__init__.pyi")) as known:
                self.assertEqual(made.read(), known.read())


if __name__ == "__main__":
    unittest.main()
