"""Runs a model on a picture with vertical stripes, with nothing but ctypes: run.py LIBONX MODEL"""
import ctypes as c
import sys


class Str(c.Structure):  # onx_str
    _fields_ = [("ptr", c.c_void_p), ("len", c.c_size_t)]

    def text(self):
        return c.string_at(self.ptr, self.len).decode() if self.len else ""


class Memory(c.Structure):  # onx_memory
    _fields_ = [("struct_size", c.c_uint32), ("dtype", c.c_int32), ("rank", c.c_uint32),
                ("dims", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("data", c.c_void_p),
                ("size", c.c_uint64), ("release", c.c_void_p), ("owner", c.c_void_p)]


class NamedValue(c.Structure):  # onx_named_value
    _fields_ = [("name", c.c_char_p), ("value", c.c_void_p)]


ONX_OK, ONX_FLOAT = 0, 1
onx = c.CDLL(sys.argv[1])
for name in ("onx_ctx_new", "onx_diag_get"):
    getattr(onx, name).restype = c.c_void_p
onx.onx_diag_get.argtypes = [c.c_void_p, c.c_size_t]
onx.onx_diag_format.argtypes = [c.c_void_p, c.c_char_p, c.c_size_t]
onx.onx_diag_format.restype = c.c_size_t
onx.onx_diag_count.argtypes = [c.c_void_p]
onx.onx_diag_count.restype = c.c_size_t
onx.onx_session_load.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)]
onx.onx_value_wrap.argtypes = [c.c_void_p, c.POINTER(Memory), c.POINTER(c.c_void_p)]
onx.onx_session_run_named.argtypes = [c.c_void_p, c.c_void_p, c.POINTER(NamedValue), c.c_uint32,
                                      c.POINTER(NamedValue), c.c_uint32, c.c_void_p]
for name in ("onx_value_free", "onx_session_free", "onx_ctx_free"):
    getattr(onx, name).argtypes = [c.c_void_p]
    getattr(onx, name).restype = None

cx = onx.onx_ctx_new(None)


def check(status):
    if status == ONX_OK:
        return
    text = c.create_string_buffer(1000)
    for i in range(onx.onx_diag_count(cx)):
        onx.onx_diag_format(onx.onx_diag_get(cx, i), text, len(text))
        print(text.value.decode(), file=sys.stderr)
    sys.exit(1)


def tensor(data, *dims):
    """A float tensor over the elements of a ctypes array, which has to outlive it."""
    memory = Memory(dtype=ONX_FLOAT, rank=len(dims), dims=(c.c_int64 * len(dims))(*dims),
                    data=c.addressof(data), size=c.sizeof(data))
    value = c.c_void_p()
    check(onx.onx_value_wrap(cx, memory, value))
    return value


session = c.c_void_p()
check(onx.onx_session_load(cx, sys.argv[2].encode(), None, None, session))
pixels = (c.c_float * 64)(*[1 if i % 8 % 3 == 1 else 0 for i in range(64)])
scores = (c.c_float * 4)()
inputs = (NamedValue * 1)(NamedValue(b"image", tensor(pixels, 1, 1, 8, 8)))
outputs = (NamedValue * 1)(NamedValue(b"probability", tensor(scores, 1, 4)))
check(onx.onx_session_run_named(session, cx, inputs, 1, outputs, 1, None))
for score in scores:
    print("%.3f" % score)
onx.onx_value_free(inputs[0].value)
onx.onx_value_free(outputs[0].value)
onx.onx_session_free(session)
onx.onx_ctx_free(cx)
