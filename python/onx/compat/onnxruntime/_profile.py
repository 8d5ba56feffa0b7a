"""Profiles in the format that browsers show (chrome://tracing), as onnxruntime writes them."""
import json
import os
import threading
import time
import weakref


class Profile:
    """The times of a session and its runs. They are written to a file once: by `end`, or when the session is destroyed."""

    def __init__(self, owner, prefix, started_ns):
        self.started_ns = started_ns
        self.path = "%s_%s.json" % (prefix, time.strftime("%Y-%m-%d_%H-%M-%S"))
        events = self._events = []
        self.note("Session", "session_initialization", started_ns, time.perf_counter_ns())
        self.end = weakref.finalize(owner, _write, self.path, events)

    def note(self, kind, name, start_ns, end_ns, **more):
        self._events.append({"cat": kind, "pid": os.getpid(), "tid": threading.get_native_id(), "ts": (start_ns - self.started_ns) // 1000,
                             "dur": (end_ns - start_ns) // 1000, "ph": "X", "name": name, "args": more})

    def note_run(self, steps, start_ns):
        self.note("Session", "model_run", start_ns, time.perf_counter_ns())
        for index, step in enumerate(steps):
            at = start_ns + int(step.start * 1e9)
            self.note("Node", "%s_kernel_time" % (step.name or step.op_type), at, at + int(step.seconds * 1e9), op_name=step.op_type,
                      node_index=str(index), kernel=step.kernel, provider="CPUExecutionProvider")


def _write(path, events):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(events, f)
