"""Java interfaces answered by Python objects: the one place that touches Py4J proxies, Java reflection and Janino.

``bridge(spark)`` is the JVM as seen from here, one per JVM. ``Bridge.implement(interfaces, target)`` gives a Java object whose
methods are those of ``target`` that bear their names; methods that ``target`` lacks run as the interface's defaults, so a newer
Spark may add some. Two such objects are equal iff their targets are (``__eq__``, ``__hash__``, ``__str__``).

A method gets Java's strings, numbers, booleans and byte arrays as Python's, everything else as Py4J objects, and may return those, None,
another Java object, or lists, tuples, sets and dicts of them (which become arrays, sets, iterators or maps as the signature says).
Where an interface overloads a name and ``target`` answers only some, its class says which by number of arguments: ``java_arity = {"loadTable": (1, 2)}``.
What an object without arguments always answers the same is asked once: ``java_constant = {"name": "", "toBatch": "filter"}``, with the method after which the same thread asks anew.
What it answers only where Spark looks again at the tables of a plan that was analysed earlier is in ``java_when_refreshed``; elsewhere, and for None, the default runs.
To throw an exception of Spark's, raise ``JavaThrow``. A ``TamisError`` reaches the caller as a ``SparkRuntimeException`` that bears its text and
its code (``getCondition()``); an exception that came from Java goes back as it was.

A target lives until Java has collected its object. So it must not hold a Java object that holds it.
"""

from __future__ import annotations

import itertools
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, ClassVar

from tamis.errors import TamisError

_CATALOG = "org.apache.spark.sql.connector.catalog."
_SOURCE = "tamis.DefaultSource"
"""The class for which Spark looks where a format is called ``tamis``."""


class JavaThrow(Exception):
    """Raised by a target's method: the caller in Java gets ``throwable`` (a Java object) thrown."""

    def __init__(self, throwable: Any) -> None:
        super().__init__(throwable)
        self.throwable = throwable


class Bridge:
    """One JVM: makes Java objects, finds classes, implements interfaces. Get it from ``bridge(spark)``."""

    def __init__(self, gateway: Any) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(gateway)
        self._gateway = weakref.proxy(gateway)
        self.pinned = type(gateway).__name__ == "ClientServer"
        """Whether each thread of Java is answered by one of Python's (PySpark's default), so that what one call leaves to the next is safe with the thread."""
        self._targets: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._keys = itertools.count()
        self._probed: dict[tuple[str, ...], bool] = {}
        context = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._loader = self._compile(_source("Handler"), context).getClassLoader()
        self._helpers: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._has: dict[str, bool] = {}
        self._classes: dict[str, Any] = {}
        self._constants: dict[tuple[str, str], Any] = {}
        self._tools = self.helper("Tools")

    @property
    def jvm(self) -> Any:
        """Py4J's view of the JVM."""
        return self._gateway.jvm

    # --- interfaces ---

    def implement(self, interfaces: Sequence[str], target: object, alike: str | None = None) -> Any:
        """A Java object that implements ``interfaces`` (full names) by the methods of ``target``; see the module for the rules.

        ``alike`` names what the constant answers follow from: they are asked once of all targets that have the same.
        """
        key = f"t{next(self._keys)}"
        self._targets[key] = target
        return self._tools.make(",".join(interfaces), _methods(type(target)), _Callback(self, target), key, alike)

    def target(self, java_object: Any) -> Any:
        """The Python object behind a Java object made by ``implement``, or None for any other."""
        key = self._tools.keyOf(java_object) if java_object is not None else None
        return self._targets.get(key) if key else None

    def target_of_key(self, key: str) -> Any:
        """The Python object that ``implement`` gave ``key``, or None if it is gone."""
        return self._targets.get(key)

    # --- objects ---

    def cls(self, name: str) -> Any:
        """A Java class by its full name, for static members and ``new``; ``$`` separates inner classes. Asking Py4J for one is a call to Java."""
        found = self._classes.get(name)
        if found is None:
            found = getattr(self.jvm, name)
            if type(found).__name__ == "JavaClass":  # a class that is not there is a package, and may be there later
                self._classes[name] = found
        return found

    def once(self, kind: str, name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, made once for this JVM. For few names only: nothing is forgotten."""
        found = self._constants.get((kind, name))
        return found if found is not None else self._constants.setdefault((kind, name), make())

    def has(self, name: str) -> bool:
        """Whether this Spark has the class at all: interfaces come with releases."""
        if name not in self._has:
            self._has[name] = type(self.cls(name)).__name__ == "JavaClass"
        return self._has[name]

    def new(self, name: str, *args: Any) -> Any:
        return self.cls(name)(*args)

    def static(self, name: str, method: str) -> Any:
        """A static method: Py4J asks Java for each that is named."""
        return self.once(name, method, lambda: getattr(self.cls(name), method))

    def scala_object(self, name: str) -> Any:
        """The singleton of a Scala ``object``."""
        return self.once("object", name, lambda: getattr(self.cls(name + "$"), "MODULE$"))

    def enum(self, name: str, value: str) -> Any:
        """A constant of a Java enumeration: they never change, so each is asked for once."""
        return self.once(name, value, lambda: self.cls(name).valueOf(value))

    def array(self, element: str, items: Iterable[Any]) -> Any:
        """A Java array of objects; ``element`` is the full name of the element class. Takes proxies, which Py4J's own arrays do not."""
        return self._tools.array(element, self.list(items))

    def list(self, items: Iterable[Any]) -> Any:
        """A ``java.util.ArrayList``; a list of strings takes one call whatever its length."""
        values = list(items)
        if values and all(isinstance(v, str) and "\0" not in v for v in values):
            return self._tools.strings("\0" + "\0".join(values))
        out = self.new("java.util.ArrayList")
        for value in values:
            out.add(self.to_java(value))
        return out

    def map(self, items: Mapping[str, Any]) -> Any:
        out = self.new("java.util.LinkedHashMap")
        for key, value in items.items():
            out.put(key, self.to_java(value))
        return out

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala ``Seq``."""
        return self.static("org.apache.spark.api.python.PythonUtils", "toSeq")(self.list(items))

    def helper(self, name: str) -> Any:
        """The one instance of class ``tamis.<name>``, compiled from ``java/<name>.java`` at first use. Call its instance methods."""
        with self._lock:  # Py4J remembers methods by class name: a second class of that name would be called by the first one's
            if name not in self._helpers:
                found = self._compile(_source(name), self._loader).getClassLoader().loadClass(f"tamis.{name}")
                self._helpers[name] = found.getConstructor(self._gateway.new_array(self.jvm.Class, 0)).newInstance(None)
            return self._helpers[name]

    def plan_with(self, strategy: Any, rule: Any = None) -> None:
        """Sees to it that the active session plans by ``strategy``, and optimizes by ``rule``, once each; ``strategy`` is Java's, or the name of the helper that gives it."""
        if isinstance(strategy, str):
            name = strategy
            strategy = self.once("strategy", name, lambda: self.helper(name).strategy())
        self._tools.planWith(strategy, rule)

    def identifier(self, java_identifier: Any) -> tuple[str, ...]:
        """The parts of the namespace, and the name, of a catalog identifier."""
        return tuple(self._tools.identifier(java_identifier)[1:].split("\0"))

    def texts(self, java_strings: Any) -> tuple[str, ...]:
        """A Java array or collection of strings, by one call."""
        joined = self._tools.joined(java_strings)
        return tuple(joined[1:].split("\0")) if joined else ()

    def dict(self, java_map: Any, prefix: str = "") -> dict[str, str]:
        """A Java map of strings, or its entries whose key begins with ``prefix``, by one call."""
        joined = self._tools.entries(java_map, prefix)
        words = joined[1:].split("\0") if joined else []
        return dict(zip(words[::2], words[1::2], strict=True))

    def struct_type(self, json_text: str) -> Any:
        """A Java ``StructType`` from its JSON."""
        return self.static("org.apache.spark.sql.types.DataType", "fromJson")(json_text)

    def to_java(self, value: Any) -> Any:
        """``value`` as Java can take it: lists, tuples and sets as ``ArrayList``, dicts as ``LinkedHashMap``, all else as it is."""
        if isinstance(value, dict):
            return self.map(value)
        if isinstance(value, list | tuple | set | frozenset):
            return self.list(value)
        return value

    def call(self, java_object: Any, method: str, *args: Any) -> Any:
        """Call a method that Py4J may not: one of a package-private class, or a private one. Found by name and number of arguments."""
        array = self._gateway.new_array(self.jvm.java.lang.Object, len(args))
        for i, arg in enumerate(args):
            array[i] = arg
        return self._tools.call(java_object, method, array)

    # --- what this Spark has ---

    def has_class(self, name: str) -> bool:
        """Whether this Spark has the class, so that differing versions are told apart by what they can do."""
        return self._probe((name,))

    def has_method(self, name: str, method: str) -> bool:
        """Whether the class has a public method of that name."""
        return self._probe((name, method))

    def _probe(self, asked: tuple[str, ...]) -> bool:
        if asked not in self._probed:
            self._probed[asked] = self._ask(*asked)
        return self._probed[asked]

    def _ask(self, name: str, method: str | None = None) -> bool:
        from py4j.protocol import Py4JJavaError

        try:
            found = self.jvm.org.apache.spark.util.Utils.classForName(name, False, True)
        except Py4JJavaError:
            return False
        return method is None or any(m.getName() == method for m in found.getMethods())

    # --- sessions ---

    def active_session(self, otherwise: Any = None) -> Any:
        """The SparkSession on whose behalf this thread was called (``newSession`` and foreachBatch have their own)."""
        from pyspark.sql import SparkSession

        return SparkSession.getActiveSession() or otherwise

    # --- compiling ---

    def _compile(self, source: str, parent: Any) -> Any:
        """Compile Java text by Spark's own Janino; ``parent`` is the class loader that finds what the text names."""
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(parent)
        compiler.setSourceVersion(17)
        compiler.setTargetVersion(17)
        compiler.cook(source)
        return compiler

    catalog_class: ClassVar = _CATALOG + "TamisCatalog"
    """The one class by which Spark loads catalogs of ours."""

    def register_catalog(self, name: str, catalog: Any, interfaces: Sequence[str]) -> str:
        """Make ``catalog`` loadable by Spark under ``name`` in every session of this JVM; returns the class to set as ``spark.sql.catalog.<name>``.

        Spark loads catalogs by class name, so a class that passes everything on to ``catalog`` is generated once per JVM and defined beside
        Spark's own, where the class loaders of all sessions look first.
        """
        if not self.has_class(self.catalog_class):
            package, _, class_name = self.catalog_class.rpartition(".")
            text = self._tools.delegateSource(package, class_name, ",".join(interfaces))
            code = self._compile(text, self._loader).getBytecodes()
            self._tools.define(_CATALOG + "CatalogPlugin", code.get(self.catalog_class))
            self._probed[self.catalog_class,] = True
        self.cls(self.catalog_class).delegates.put(name, catalog)
        return self.catalog_class

    def registered_catalog(self, name: str) -> Any:
        """The Python object registered under ``name``, or None."""
        if not self.has_class(self.catalog_class):
            return None
        return self.target(self.cls(self.catalog_class).delegates.get(name))

    def register_source(self, source: Any) -> bool:
        """Make ``source`` what ``format("tamis")`` means in every session of this JVM; False where the JVM was started so that nobody may define a class there."""
        from py4j.protocol import Py4JJavaError

        if not self.has_class(_SOURCE):
            try:
                self._tools.defineAll(_CATALOG + "TableProvider", self._compile(_source("DefaultSource"), self._loader).getBytecodes())
            except Py4JJavaError:
                return False
            self._probed[_SOURCE,] = True
        self.cls(_SOURCE).delegates.put("tamis", source)
        return True

    def thrown(self, throwable: Any) -> Any:
        return self._tools.thrown(throwable)

    def failed(self, code: str, text: str, trace: str | None = None) -> Any:
        return self._tools.failed(code, text, trace)


class _Callback:
    """What Java holds of a target: one function that takes ``<number of arguments>:<method>`` and the argument or arguments."""

    def __init__(self, owner: Bridge, target: object) -> None:
        self._bridge = owner
        self._target = target

    def apply(self, call: str, argument: Any) -> Any:
        count, _, name = call.partition(":")
        args = () if count == "0" else (argument,) if count == "1" else tuple(argument)
        try:
            return self._bridge.to_java(self._answer(name, args))
        except BaseException as error:  # noqa: BLE001  # every failure must become a Java exception, or the caller in Java hangs on garbage
            return _thrown(self._bridge, error)

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
        implements: ClassVar = ["java.util.function.BiFunction"]


def _thrown(owner: Bridge, error: BaseException) -> Any:
    """``error`` as what the handler throws."""
    if isinstance(error, JavaThrow):
        return owner.thrown(error.throwable)
    origin = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if origin is not None:  # it came from Java, by Py4J or as PySpark converted it
        return owner.thrown(origin)
    if isinstance(error, TamisError):
        return owner.failed(error.code, str(error))
    return owner.failed("PYTHON_ERROR", f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


_told: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()


def _methods(kind: type) -> str:
    """What Java is told of the methods of a class."""
    known = _told.get(kind)
    if known is None:
        arities: Mapping[str, Sequence[int]] = getattr(kind, "java_arity", {})
        refreshed: Sequence[str] = getattr(kind, "java_when_refreshed", ())
        constant: Mapping[str, str] = getattr(kind, "java_constant", {})
        special = {*arities, *refreshed, *constant}
        names = [name for name in dir(kind) if not name.startswith("_") and name not in special and callable(getattr(kind, name))]
        names += [f"{name}={until}" for name, until in constant.items()]
        names += [f"{name}/{count}" for name, counts in arities.items() for count in counts]
        known = _told[kind] = ",".join([*names, *(f"{name}@" for name in refreshed)])
    return known


def _source(name: str) -> str:
    return resources.files("tamis.spark").joinpath("jvm_bridge", "java", f"{name}.java").read_text(encoding="utf-8")


_bridges: weakref.WeakKeyDictionary[Any, Bridge] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def bridge(spark: Any) -> Bridge:
    """The bridge to the JVM of ``spark`` (a classic SparkSession); made at first use, about 0.5 s, and shared by all its sessions."""
    gateway = spark.sparkContext._gateway
    with _making:
        if gateway not in _bridges:
            _bridges[gateway] = Bridge(gateway)
        return _bridges[gateway]


def implement(spark: Any, interfaces: Sequence[str], target: object) -> Any:
    """``bridge(spark).implement(interfaces, target)``."""
    return bridge(spark).implement(interfaces, target)
