"""The Java classes of ``java/``: their source, and objects whose methods take arguments as they are."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any


def java_source(name: str) -> str:
    """Return the source of the Java class ``name``."""
    return resources.files("tamis.spark").joinpath("jvm_bridge", "java", f"{name}.java").read_text(encoding="utf-8")


def without_converters(java_object: Any) -> Any:
    """Return ``java_object``, whose methods no longer look for converters of their arguments.

    PySpark registers ten converters, for example of lists and dates, and Py4J asks each of them about every
    argument, which takes several times as long as the call. The methods must be given strings, numbers, bytes, Java
    objects, callbacks or None only.
    """
    java_object.__class__ = _direct_class(java_object.__class__)
    return java_object


def call_directly(member: Any) -> Any:
    """Return a method of a Java object or class without the converters of its arguments."""
    if type(member).__name__ == "JavaMember":
        member.converters = ()
    return member


@cache
def _direct_class(kind: Any) -> type:
    class DirectObject(kind):  # type: ignore[misc]  # Py4J's class of objects, which has no types
        def __getattr__(self, name: str) -> Any:
            return call_directly(super().__getattr__(name))

    return DirectObject
