"""Errors of the library as exceptions, which carry all diagnostics."""
import warnings


class Diagnostic:
    """One finding: an error, warning or note, with its location. `str` formats all of it in a line or two."""

    __slots__ = ("severity", "status", "rule", "message", "path", "byte", "line", "column", "value", "expected", "hint", "text")

    def __init__(self, *members):
        for name, member in zip(self.__slots__, members):
            setattr(self, name, member)

    def __str__(self):
        return self.text

    def __repr__(self):
        return "<%s%s: %s>" % (self.severity, " " + self.rule if self.rule else "", self.text)

    def __reduce__(self):
        return Diagnostic, tuple(getattr(self, name) for name in self.__slots__)


class Warning(UserWarning):
    """A warning of the library; its argument is the text of a diagnostic."""


class Error(Exception):
    """An error of the library. `diagnostics` has all findings (errors, warnings and notes) in order."""

    def __init__(self, message="", diagnostics=()):
        super().__init__(message)
        self.diagnostics = list(diagnostics)

    def __reduce__(self):
        return type(self), (str(self), self.diagnostics)


class MemoryLimitError(Error, MemoryError):
    """There is not enough memory."""


class FileError(Error):
    """A file cannot be read or written."""


class MalformedError(Error, ValueError):
    """Bytes or text are malformed."""


class LimitError(Error):
    """A limit was reached: of memory, depth, time or iterations."""


class InvalidError(Error, ValueError):
    """A model violates the rules of ONNX, or data do not match the model."""


class UnsupportedError(Error, NotImplementedError):
    """onx does not support this."""


class NotFoundError(Error, LookupError):
    """No object has that name."""


class MisuseError(Error, ValueError):
    """The function was called incorrectly."""


class CancelledError(Error):
    """The operation was cancelled."""


# In the order of the library's statuses.
_BY_STATUS = (Error, MemoryLimitError, FileError, MalformedError, LimitError, InvalidError, UnsupportedError, NotFoundError,
              MisuseError, CancelledError)


def failure(status, text, diagnostics):
    errors = [d for d in diagnostics if d.severity == "error"]
    message = "\n".join(str(d) for d in errors[:20]) or text
    if len(errors) > 20:
        message += "\n... and %d more: see diagnostics" % (len(errors) - 20)
    return _BY_STATUS[status](message, diagnostics)


def warn(diagnostics):
    for d in diagnostics:
        if d.severity == "warning":
            warnings.warn(str(d), Warning, stacklevel=2)
