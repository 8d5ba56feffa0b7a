"""Ctrl-C ends all work of the library, not only runs."""
import os
import signal
import tempfile
import threading
import time
import unittest

import onx

NODES = 150_000


def long_model():
    """A chain that takes each step a while, as ONNX text."""
    lines = ["<ir_version: 10, opset_import: [\"\" : 21]>", "g (float[N,4] v0) => (float[N,4] y)", "{"]
    lines += [f"v{i + 1} = {'Neg' if i % 3 else 'Exp'} (v{i})" for i in range(NODES)]
    lines += [f"y = Identity (v{NODES})", "}"]
    return "\n".join(lines)


class Interrupt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have what runs behind them ignore it
        cls.text = long_model()
        cls.model = onx.parse(cls.text)

    def interrupted(self, work):
        """Signals come at many moments of the work; each that does comes out as KeyboardInterrupt, soon."""
        began = time.monotonic()
        work()
        whole = time.monotonic() - began
        caught = 0
        for part in (0.05, 0.2, 0.4, 0.6, 0.8):
            timer = threading.Timer(whole * part, lambda: os.kill(os.getpid(), signal.SIGINT))
            try:
                timer.start()  # in here: on a busy machine the signal may come before the next line
                work()
                timer.join()
                time.sleep(0.001)  # one that came at the end
            except KeyboardInterrupt:
                caught += 1
            timer.join()
        self.assertGreaterEqual(caught, 3)

    def test_parse(self):
        self.interrupted(lambda: onx.parse(self.text))

    def test_check(self):
        self.interrupted(lambda: onx.check(self.model))

    def test_infer(self):
        self.interrupted(lambda: onx.infer(self.model))

    def test_simplify(self):
        self.interrupted(lambda: onx.simplify(self.model))

    def test_load_and_save(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnxtxt")
            onx.save(self.model, path)
            with open(path, "rb") as f:
                before = f.read()
            self.interrupted(lambda: onx.load(path))
            self.interrupted(lambda: onx.save(self.model, path))
            with open(path, "rb") as f:
                self.assertEqual(f.read(), before)  # whole, whenever the signal came
            self.assertEqual(os.listdir(folder), ["m.onnxtxt"])

    def test_soon(self):
        """The library itself ends early: the rest of the work is not done first."""
        began = time.monotonic()
        onx.simplify(self.model)
        whole = time.monotonic() - began
        least = whole
        for _ in range(5):  # a busy machine may be late with the signal
            began = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                threading.Timer(whole * 0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                onx.simplify(self.model)
                time.sleep(5)
            least = min(least, time.monotonic() - began)
        self.assertLess(least, whole * 0.7)

    def test_own_handler(self):
        """A program that handles the signal itself gets what it asked for."""
        seen = []
        before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        try:
            threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            while not seen:
                self.assertEqual(len(onx.infer(self.model).graph.node), NODES + 1)
        finally:
            signal.signal(signal.SIGINT, before)

    def test_after(self):
        """Nothing stays behind: the next call works, and so does Python's handler."""
        self.assertEqual(len(onx.parse(self.text).graph.node), NODES + 1)
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)


if __name__ == "__main__":
    unittest.main()
