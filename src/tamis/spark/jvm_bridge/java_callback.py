"""Calls of Python methods by Java: the description of a target's methods, and how its errors are thrown."""

from __future__ import annotations

import threading
import traceback
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.spark.jvm_bridge.adapter import Bridge


class JavaThrow(Exception):
    """Raised by a target's method to throw ``throwable`` (a Java object) to the caller in Java."""

    def __init__(self, throwable: Any) -> None:
        super().__init__(throwable)
        self.throwable = throwable


class Callback:
    """The function by which Java calls a target, with ``<number of arguments>:<method>`` and arguments.

    ``text:<method>:<text>`` calls a method with a text and one more argument: Py4J fetches each item of an array
    of arguments by a call of its own.
    """

    def __init__(self, owner: Bridge, target: object) -> None:
        self._bridge = owner
        self._target = target

    def apply(self, call: str, argument: Any) -> Any:
        count, _, name = call.partition(":")
        try:
            if count == "text":
                name, _, text = name.partition(":")
                args: tuple[Any, ...] = (text, argument)
            else:
                args = () if count == "0" else (argument,) if count == "1" else tuple(argument)
            answer = self._bridge.to_java(self._answer(name, args))
        except BaseException as error:  # noqa: BLE001  # must become a Java exception, or the Java caller gets garbage
            answer = _thrown(self._bridge, error)
        _held_answers(pinned=self._bridge.pinned).append(answer)
        return answer

    def _answer(self, name: str, args: tuple[Any, ...]) -> Any:
        match name:
            case "hashCode":
                return hash(self._target) & 0x7FFFFFFF
            case "toString":
                return str(self._target)
            case "equals":
                return bool(self._target == self._bridge.target_of_key(args[0]))
        return getattr(self._target, name)(*args)

    class Java:
        """The interface, as Py4J asks for it."""

        implements: ClassVar = ["java.util.function.BiFunction"]


_answers = threading.local()
_UNPINNED_ANSWERS = 16


def _held_answers(*, pinned: bool) -> deque[Any]:
    """The last answers of this thread, kept alive until Java has certainly received them.

    Py4J sends a Java object as its number, and frees the number on another thread as soon as Python drops its
    object. If Java had not read the answer by then, it received null. A pinned Java thread has received an
    answer before it calls again; without pinning, another Java thread may call on the same connection.
    """
    if not hasattr(_answers, "held"):
        _answers.held = deque(maxlen=1 if pinned else _UNPINNED_ANSWERS)
    held: deque[Any] = _answers.held
    return held


def _thrown(owner: Bridge, error: BaseException) -> Any:
    """Wrap ``error`` so that the handler throws it."""
    if isinstance(error, JavaThrow):
        return owner.thrown(error.throwable)
    origin = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if origin is not None:  # from Java: raised by Py4J, or converted by PySpark
        return owner.thrown(origin)
    if isinstance(error, TamisError):
        return owner.failed(error.code, str(error))
    return owner.failed("PYTHON_ERROR", f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


_described_methods: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()


def methods_of(kind: type) -> str:
    """The method list of a class for ``Tools.make``, with arities, constants, and those called only at times."""
    known = _described_methods.get(kind)
    if known is None:
        arities: Mapping[str, Sequence[int]] = getattr(kind, "java_arity", {})
        refreshed: Sequence[str] = getattr(kind, "java_when_refreshed", ())
        constant: Mapping[str, str] = getattr(kind, "java_constant", {})
        optional: Mapping[str, Sequence[str]] = getattr(kind, "java_when_option", {})
        forgets: Mapping[str, Sequence[str]] = getattr(kind, "java_forgets", {})
        made: Sequence[str] = getattr(kind, "java_made", ())
        special = {*arities, *refreshed, *constant}
        names = [
            name
            for name in dir(kind)
            if not name.startswith("_") and name not in special and callable(getattr(kind, name))
        ]
        names += [f"{name}={until}" for name, until in constant.items()]
        names += [f"{name}!" for name in made]
        names += ["^".join((name, *stale)) for name, stale in forgets.items()]
        names += [f"{name}/{count}" for name, counts in arities.items() for count in counts]
        names += [f"{name}?{key}" for name, keys in optional.items() for key in keys]
        known = _described_methods[kind] = ",".join([*names, *(f"{name}@" for name in refreshed)])
    return known
