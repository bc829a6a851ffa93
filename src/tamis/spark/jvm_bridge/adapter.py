"""Java interfaces implemented by Python objects: the only user of Py4J proxies, Java reflection and Janino.

``bridge_of(spark)`` returns the ``Bridge`` of a JVM; there is one per JVM. ``Bridge.implement(interfaces,
target)`` returns a Java object whose methods call the methods of ``target`` with the same names. Methods that
``target`` lacks run as the interface's defaults, so a newer Spark may add some. Two such objects are equal
iff their targets are (``__eq__``, ``__hash__``, ``__str__``).

A method receives Java strings, numbers, booleans and byte arrays as Python values, identifiers of a catalog as text
for ``Bridge.identifier``, and everything else as Py4J objects. It may return those, None, another Java object, or
lists, tuples, sets and dicts of them, which become arrays, sets, iterators or maps as the signature requires, and
text for an enum's constant (its name) or for columns (``wire_format.list_text`` of their names). A class may declare:

- ``java_arity = {"loadTable": (1, 2)}``: the numbers of arguments for which ``target`` implements an
  overloaded name.
- ``java_constant = {"name": "", "toBatch": "filter"}``: methods without arguments whose answers Java caches.
  The value names the method, if any, after which the same thread calls again.
- ``java_forgets = {"filter": ("reportDriverMetrics",)}``: answers of ``implement_with_answers`` that no longer
  hold once a method was called.
- ``java_identity``: text that is equal to that of another target exactly if both are equal, or None. Java
  compares the texts, and asks ``__eq__`` only where one is None.
- ``java_made``: methods of one argument that Java may answer by itself (``Handler.makers``), and else asks for.
- ``java_when_refreshed``: methods that Java answers with an empty array while Spark refreshes the tables of a plan
  before it runs. The current table's method then gets the key (``target_of_key``) of the table under which the plan was
  analysed. Elsewhere, the interface's default runs.
- ``java_when_option = {"loadTable": ("readChangeFeed",)}``: methods called, for numbers of arguments that
  ``target`` does not implement, if the last one is a map of options with such a key; else as above.

To throw a Spark exception, raise ``java_callback.JavaThrow``. A ``TamisError`` reaches the caller as a
``SparkRuntimeException`` with its text and its code (``getCondition()``). An exception that came from Java is
thrown again unchanged.

A target lives until Java has garbage-collected its object. So it must not hold a Java object that refers back
to it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tamis.spark.jvm_bridge.callback_server import require_token, start_callback_server, undelay_sockets
from tamis.spark.jvm_bridge.helper_classes import call_directly, java_source, without_converters
from tamis.spark.jvm_bridge.java_callback import Callback, methods_of
from tamis.spark.jvm_bridge.python_sessions import python_session
from tamis.spark.jvm_bridge.session_checks import check_version
from tamis.spark.jvm_bridge.wire_format import NUL, list_items, list_text

_CATALOG = "org.apache.spark.sql.connector.catalog."
Part = tuple[str, str, object]  # a constant method, the interface of its answer, and the target that implements it
Known = tuple[Any, str, Any]  # a Java BiFunction that makes a map of answers, and the text and object that it gets
_SOURCE = "tamis.DefaultSource"
"""The class that Spark loads for the format name ``tamis``."""


class Bridge:
    """One JVM: makes objects, finds classes, implements interfaces. Obtained by ``bridge_of(spark)``."""

    def __init__(self, gateway: Any) -> None:
        start_callback_server(gateway)
        self._gateway = weakref.proxy(gateway)
        self.pinned = type(gateway).__name__ == "ClientServer"
        """Whether each Java thread calls one Python thread (PySpark's default).

        If so, thread-local state can pass from one call to the next.
        """
        self._targets: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._keys = itertools.count()
        self._probed: dict[str, bool] = {}
        context = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._loader = self._compile(java_source("Handler"), context).getClassLoader()
        self._helpers: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._has: dict[str, bool] = {}
        self._classes: dict[str, Any] = {}
        self._constants: dict[tuple[str, str], Any] = {}
        self._tools = self.helper("Tools")
        require_token(gateway, self._tools)
        undelay_sockets(gateway, self.helper("UndelayedSockets"))

    @property
    def jvm(self) -> Any:
        """Py4J's view of the JVM."""
        return self._gateway.jvm

    # --- interfaces ---

    def implement(
        self, interfaces: Sequence[str], target: object, alike: str | None = None, planning: Sequence[Any] | None = None
    ) -> Any:
        """Make a Java object that implements ``interfaces`` (full names) by ``target``.

        The module docstring gives the rules. Targets with the same ``alike`` share cached answers. ``planning``, if
        any, are the Java arguments of ``install_strategy``, which the same call runs first.
        """
        if planning is None:
            return self.implement_with_key(interfaces, target, alike)[0]
        return self._tools.planAndMake(*planning, *self._make_arguments(interfaces, target), alike)

    def implement_with_key(
        self, interfaces: Sequence[str], target: object, alike: str | None = None
    ) -> tuple[Any, str]:
        """Return what ``implement`` does, and the key by which Java knows ``target``."""
        described = self._make_arguments(interfaces, target)
        return self._tools.make(*described, alike), described[3]

    def implement_with_answers(
        self, interfaces: Sequence[str], target: object, known: Known, part: Part | None = None
    ) -> tuple[Any, str]:
        """Return what ``implement_with_key`` does. Java has the answers that ``known`` makes, and asks for others only.

        They are ``hashCode`` and answers of methods without arguments, until a method of ``java_forgets`` is called.
        ``part`` is one more, whose target has the hash of this one.
        """
        described = self._make_arguments(interfaces, target)
        arguments = *described, *known
        if part is None:
            return self._tools.makeKnowing(*arguments), described[3]
        method, interface, inner = part
        return self._tools.makeWithPart(*arguments, method, *self._make_arguments((interface,), inner)), described[3]

    def _make_arguments(self, interfaces: Sequence[str], target: object) -> tuple[str, str, Callback, str, str | None]:
        """The arguments of ``Tools.make``; the fourth is a new key for ``target``."""
        key = f"t{next(self._keys)}"
        self._targets[key] = target
        same = getattr(target, "java_identity", None)
        return ",".join(interfaces), methods_of(type(target)), Callback(self, target), key, same

    def target(self, java_object: Any) -> Any:
        """The Python object behind a Java object made by ``implement``, or None for any other."""
        key = self._tools.keyOf(java_object) if java_object is not None else None
        return self._targets.get(key) if key else None

    def target_of_key(self, key: str) -> Any:
        """The Python object that ``implement`` gave ``key``, or None if it is gone."""
        return self._targets.get(key)

    # --- objects ---

    def cls(self, name: str) -> Any:
        """A Java class by its full name; ``$`` separates inner classes.

        Cached, since Py4J asks Java for each.
        """
        found = self._classes.get(name)
        if found is None:
            found = getattr(self.jvm, name)
            if type(found).__name__ == "JavaClass":  # Py4J takes a missing class for a package; it may exist later
                self._classes[name] = found
        return found

    def make_once(self, kind: str, name: str, make: Callable[[], Any]) -> Any:
        """The result of ``make``, called once per JVM. For a few names only, as nothing is dropped."""
        found = self._constants.get((kind, name))
        return found if found is not None else self._constants.setdefault((kind, name), make())

    def is_java_class(self, name: str) -> bool:
        """Whether this Spark release has the class."""
        if name not in self._has:
            self._has[name] = type(self.cls(name)).__name__ == "JavaClass"
        return self._has[name]

    def new(self, name: str, *args: Any) -> Any:
        return self.cls(name)(*args)

    def static(self, name: str, method: str) -> Any:
        """A static method, cached, since Py4J asks Java for each. See ``without_converters`` for its arguments."""
        return self.make_once(name, method, lambda: call_directly(getattr(self.cls(name), method)))

    def scala_object(self, name: str) -> Any:
        """The singleton of a Scala ``object``."""
        return self.make_once("object", name, lambda: getattr(self.cls(name + "$"), "MODULE$"))

    def enum(self, name: str, value: str) -> Any:
        """A constant of a Java enum, cached."""
        return self.make_once(name, value, lambda: self.cls(name).valueOf(value))

    def array(self, element: str, items: Iterable[Any]) -> Any:
        """A Java array of objects; ``element`` is the full name of the element class.

        Accepts proxies, which Py4J's own arrays do not.
        """
        return self._tools.array(element, self.list(items))

    def list(self, values: Iterable[Any]) -> Any:
        """A ``java.util.ArrayList``. A list of strings takes one call, whatever its length."""
        values = list(values)
        if values and all(isinstance(v, str) and NUL not in v for v in values):
            return self._tools.strings(list_text(values))
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
        """The instance of ``tamis.<name>``, compiled from ``java/<name>.java`` at first use."""
        with self._lock:  # Py4J caches methods by class name: a second class of that name would get those of the first
            if name not in self._helpers:
                found = self._compile(java_source(name), self._loader).getClassLoader().loadClass(f"tamis.{name}")
                made = found.getConstructor(self._gateway.new_array(self.jvm.Class, 0)).newInstance(None)
                self._helpers[name] = without_converters(made)
            return self._helpers[name]

    def install_strategy(self, strategy: Any, rule: Any = None, more: Any = None) -> None:
        """Add ``strategy``, and ``rule`` if any, to the active session, once each.

        ``strategy`` is a Java object, or the name of the helper that makes it. ``more`` is a Java ``Runnable`` that
        the same call runs first.
        """
        if isinstance(strategy, str):
            name = strategy
            strategy = self.make_once("strategy", name, lambda: self.helper(name).strategy())
        self._tools.planWith(strategy, rule, more)

    def identifier(self, given: Any) -> tuple[str, ...]:
        """The namespace parts and the name of a catalog identifier, as Java passes it to a method or holds it."""
        return tuple(list_items(given if isinstance(given, str) else self._tools.identifier(given)))

    def texts(self, java_strings: Any) -> tuple[str, ...]:
        """The strings of a Java array or collection, read in one call."""
        return tuple(list_items(self._tools.joined(java_strings)))

    def dict(self, java_map: Any, prefix: str = "") -> dict[str, str]:
        """The entries of a Java map of strings whose keys start with ``prefix``, read in one call."""
        words = list_items(self._tools.entries(java_map, prefix))
        return dict(zip(words[::2], words[1::2], strict=True))

    def struct_type(self, json_text: str) -> Any:
        """A Java ``StructType`` from its JSON."""
        return self.static("org.apache.spark.sql.types.DataType", "fromJson")(json_text)

    def to_java(self, value: Any) -> Any:
        """Convert lists, tuples, sets to Java lists and dicts to ``LinkedHashMap``; keep other values."""
        if isinstance(value, dict):
            return self.map(value)
        if isinstance(value, list | tuple | set | frozenset):
            nothing = self.static("java.util.Collections", "emptyList")
            return self.list(value) if value else self.make_once("empty", "list", nothing)
        return value

    def call(self, java_object: Any, method: str, *args: Any) -> Any:
        """Call a method that Py4J cannot: a private one, or one of a package-private class.

        The method is found by name and number of arguments.
        """
        array = self._gateway.new_array(self.jvm.java.lang.Object, len(args))
        for i, arg in enumerate(args):
            array[i] = arg
        return self._tools.call(java_object, method, array)

    # --- what this Spark has ---

    def has_class(self, name: str) -> bool:
        """Whether Spark's class loaders find the class. Used instead of comparing Spark versions."""
        if name not in self._probed:
            self._probed[name] = self._find_class(name)
        return self._probed[name]

    def _find_class(self, name: str) -> bool:
        from py4j.protocol import Py4JJavaError

        try:
            self.jvm.org.apache.spark.util.Utils.classForName(name, False, True)
        except Py4JJavaError:
            return False
        return True

    def has_method(self, class_name: str, method: str, count: int) -> bool:
        """Whether a class of this Spark has a public method (``new``: a constructor) with ``count`` parameters."""
        name = f"{class_name}.{method}/{count}"
        if name not in self._probed:
            self._probed[name] = self.has_class(class_name) and bool(self._tools.offers(class_name, method, count))
        return self._probed[name]

    # --- sessions ---

    def active_session(self, otherwise: Any = None) -> Any:
        """The SparkSession for which Java calls this thread; ``newSession`` and foreachBatch have others.

        Java is asked. ``SparkSession.getActiveSession`` of PySpark returns the session of the last
        ``createDataFrame``, by any thread, or else the first one of the process; it is all there is without
        pinned threads, where Java answers on another thread.
        """
        from pyspark.sql import SparkSession

        if not self.pinned:
            return SparkSession.getActiveSession() or otherwise
        found = self.cls("org.apache.spark.sql.classic.SparkSession").getActiveSession()
        return otherwise if found.isEmpty() else python_session(found.get())

    # --- compiling ---

    def _compile(self, source: str, parent: Any) -> Any:
        """Compile Java source with Spark's own Janino.

        ``parent`` is the class loader for the classes it uses.
        """
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(parent)
        compiler.setSourceVersion(17)
        compiler.setTargetVersion(17)
        compiler.cook(source)
        return compiler

    catalog_class: ClassVar = _CATALOG + "TamisCatalog"
    """The class by which Spark loads every Tamis catalog."""

    def register_catalog(self, name: str, catalog: Any, interfaces: Sequence[str]) -> str:
        """Make ``catalog`` loadable under ``name`` in every session of this JVM.

        Returns the class name to set as ``spark.sql.catalog.<name>``.

        Spark loads catalogs by class name. So a class that forwards every call to ``catalog`` is generated
        once per JVM and defined in the package of Spark's own, where the class loaders of all sessions look
        first.
        """
        with self._lock:
            if not self.has_class(self.catalog_class):
                package, _, class_name = self.catalog_class.rpartition(".")
                text = self._tools.delegateSource(package, class_name, ",".join(interfaces))
                code = self._compile(text, self._loader).getBytecodes()
                self._tools.define(_CATALOG + "CatalogPlugin", code.get(self.catalog_class))
                self._probed[self.catalog_class] = True
        self.cls(self.catalog_class).delegates.put(name, catalog)
        return self.catalog_class

    def define_beside(self, neighbour: str, name: str) -> None:
        """Define the class ``name`` from ``java/<its last name>.java`` in the package of a Spark class, once.

        Every session's class loader finds it there, and so do Spark's own listeners.
        """
        with self._lock:  # stages of one query plan at once, and a class can be defined only once
            if not self.has_class(name):
                code = self._compile(java_source(name.rpartition(".")[2]), self._loader).getBytecodes()
                self._tools.define(neighbour, code.get(name))
                self._probed[name] = True

    def registered_catalog(self, name: str) -> Any:
        """The Python object registered under ``name``, or None."""
        if not self.has_class(self.catalog_class):
            return None
        return self.target(self.cls(self.catalog_class).delegates.get(name))

    def register_source(self, source: Any) -> bool:
        """Make ``source`` the implementation of ``format("tamis")`` in every session of this JVM.

        Returns False if the JVM was started without the right to define a class in Spark's class loader.
        """
        from py4j.protocol import Py4JJavaError

        with self._lock:
            if not self.has_class(_SOURCE):
                codes = self._compile(java_source("DefaultSource"), self._loader).getBytecodes()
                try:
                    self._tools.defineAll(_CATALOG + "TableProvider", codes)
                except Py4JJavaError:
                    return False
                self._probed[_SOURCE] = True
        self.cls(_SOURCE).delegates.put("tamis", source)
        return True

    def thrown(self, throwable: Any) -> Any:
        return self._tools.thrown(throwable)

    def failed(self, code: str, text: str, trace: str | None = None) -> Any:
        return self._tools.failed(code, text, trace)


_bridges: weakref.WeakKeyDictionary[Any, Bridge] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def bridge_of(spark: Any) -> Bridge:
    """The bridge to the JVM of ``spark`` (a classic SparkSession), shared by all sessions of the JVM.

    Making it, at first use, takes about 0.5 s. Raises ``InvalidInput`` (``UNSUPPORTED_SPARK``) before that.
    """
    gateway = spark.sparkContext._gateway
    with _making:
        if gateway not in _bridges:
            check_version(str(spark.version))
            _bridges[gateway] = Bridge(gateway)
        return _bridges[gateway]


def implement(spark: Any, interfaces: Sequence[str], target: object) -> Any:
    """``bridge_of(spark).implement(interfaces, target)``."""
    return bridge_of(spark).implement(interfaces, target)
