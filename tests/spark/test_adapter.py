"""Java interfaces answered by Python objects."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import Py4JJavaError

from tamis.errors import NotFound
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge import spark_errors
from tamis.spark.jvm_bridge.adapter import Bridge, bridge_of, implement
from tamis.spark.jvm_bridge.java_callback import JavaThrow
from tamis.spark.jvm_bridge.wire_format import packed_texts
from tamis.spark.scan.scan_answers import answer_maker

CATALOG_IDENTIFIER = "org.apache.spark.sql.connector.catalog.Identifier"
CATALOG = "org.apache.spark.sql.connector.catalog.TableCatalog"
NAMESPACES = "org.apache.spark.sql.connector.catalog.SupportsNamespaces"


class Shelf:
    """A catalog in miniature; equal by its label."""

    def __init__(self, owner: Any, label: str = "a") -> None:
        self.owner = owner
        self.label = label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shelf) and other.label == self.label

    def __hash__(self) -> int:
        return hash(self.label)

    def __str__(self) -> str:
        return f"shelf {self.label}"

    def name(self) -> str:
        return "näme ☃"

    def listNamespaces(self, *_: Any) -> list[list[str]]:
        return [["a"], ["b c", "d"], []]

    def capabilities(self) -> list[Any]:
        return []

    def dropTable(self, ident: Any) -> bool:
        name = ".".join(self.owner.identifier(ident))
        raise NotFound(f"There is no {name}.", code="SHELF_EMPTY", name=name, remedy="Fill it.")

    def renameTable(self, one: Any, two: Any) -> None:
        del one, two
        raise ZeroDivisionError("by nothing")

    def loadTable(self, ident: Any) -> None:
        raise spark_errors.no_such_table(self.owner, self.owner.identifier(ident))

    def loadNamespaceMetadata(self, namespace: Any) -> dict[str, str]:
        raise JavaThrow(self.owner.new("java.io.IOException", "disk " + namespace[0]))


@pytest.fixture
def shelf(spark: Any) -> Any:
    return implement(spark, [CATALOG, NAMESPACES], Shelf(bridge_of(spark)))


def identifier(spark: Any, name: str) -> Any:
    owner = bridge_of(spark)
    return owner.cls(CATALOG_IDENTIFIER).of(owner.array("java.lang.String", ["db"]), name)


def test_values_cross_as_the_signature_says(shelf: Any) -> None:
    assert shelf.name() == "näme ☃"
    assert [list(names) for names in shelf.listNamespaces()] == [["a"], ["b c", "d"], []]
    assert shelf.capabilities().isEmpty()


class Noting(Shelf):
    """Keeps the identifiers that it was given."""

    def __init__(self, owner: Any) -> None:
        super().__init__(owner, "noting")
        self.given: list[Any] = []

    def dropTable(self, ident: Any) -> bool:
        self.given.append(ident)
        return True

    def renameTable(self, one: Any, two: Any) -> None:
        self.given += [one, two]


def test_an_identifier_crosses_as_one_text(spark: Any) -> None:
    owner, target = bridge_of(spark), Noting(bridge_of(spark))
    made = implement(spark, [CATALOG, NAMESPACES], target)
    names: list[tuple[str, ...]] = [("t",), ("db", "t"), ("a.b", "c d", "ü`"), ("", "t")]
    for namespace, name in ((name[:-1], name[-1]) for name in names):
        made.dropTable(owner.cls(CATALOG_IDENTIFIER).of(owner.array("java.lang.String", namespace), name))
    made.renameTable(identifier(spark, "one"), identifier(spark, "two"))
    assert all(isinstance(given, str) for given in target.given), "no call is needed to read it"
    assert [owner.identifier(given) for given in target.given] == [*names, ("db", "one"), ("db", "two")]
    assert owner.identifier(identifier(spark, "t")) == ("db", "t")


def given(owner: Bridge, *pairs: str) -> tuple[Any, str, Any]:
    return answer_maker(owner), packed_texts(pairs), None


def test_known_answers_are_not_asked_for(spark: Any) -> None:
    """Nor those of another object of the class, and the others are."""
    owner = bridge_of(spark)
    first, second = Counted(owner), Counted(owner)
    answers = given(owner, "name", "known", "hashCode", "7")
    made, key = owner.implement_with_answers([CATALOG, NAMESPACES], first, answers)
    other, _ = owner.implement_with_answers([CATALOG, NAMESPACES], second, given(owner, "name", "other"))
    assert owner.target_of_key(key) is first
    assert owner.target(made) is first
    assert [made.name(), made.name(), made.hashCode(), first.calls] == ["known", "known", 7, 0]
    assert [other.name(), other.hashCode(), second.calls] == ["other", hash(second) & 0x7FFFFFFF, 0]
    assert list(made.defaultNamespace()) == ["1"]
    assert made.dropTable(identifier(spark, "t"))
    assert made.name() == "2", "asked for anew after the call that changes it"


def test_known_answers_are_forgotten_where_they_no_longer_hold(spark: Any) -> None:
    """By all threads."""
    owner, target = bridge_of(spark), Forgetful(bridge_of(spark))
    made, _ = owner.implement_with_answers([CATALOG, NAMESPACES], target, given(owner, "name", "a"))
    assert [made.name(), made.name(), target.calls] == ["a", "a", 0]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(made.purgeTable, identifier(spark, "t")).result()
    assert [made.name(), made.name(), target.calls] == ["1", "2", 2], "no answer of Python's is kept"


def test_no_values_are_one_empty_list(spark: Any) -> None:
    owner = bridge_of(spark)
    assert owner.to_java([]) is owner.to_java(())
    assert owner.to_java(frozenset()).isEmpty()


def test_what_python_lacks_runs_as_java_default(shelf: Any) -> None:
    assert shelf.useNullableQuerySchema() is True
    assert list(shelf.defaultNamespace()) == []


class Counted(Shelf):
    """What it says is the number of calls so far; a new name follows from a new location."""

    java_constant: ClassVar = {"name": "dropTable", "defaultNamespace": ""}

    def __init__(self, owner: Any) -> None:
        super().__init__(owner, "counted")
        self.calls = 0

    def name(self) -> str:
        self.calls += 1
        return str(self.calls)

    def defaultNamespace(self) -> list[str]:
        self.calls += 1
        return [str(self.calls)]

    def dropTable(self, ident: Any) -> bool:
        return ident is not None


class Forgetful(Counted):
    """Its name is known until something is purged, and is not kept afterwards."""

    java_constant: ClassVar[dict[str, str]] = {}
    java_forgets: ClassVar = {"purgeTable": ("name",)}

    def purgeTable(self, ident: Any) -> bool:
        return ident is not None


def test_what_always_is_the_same_is_asked_once(spark: Any) -> None:
    """And anew, once, by the thread that called what it follows from; what the others know stays."""
    made = implement(spark, [CATALOG, NAMESPACES], Counted(bridge_of(spark)))
    assert [made.name(), made.name(), list(made.defaultNamespace()), list(made.defaultNamespace())] == [
        "1",
        "1",
        ["2"],
        ["2"],
    ]
    assert made.dropTable(identifier(spark, "t"))
    assert [made.name(), made.name(), list(made.defaultNamespace())] == ["3", "1", ["2"]]
    assert made.dropTable(identifier(spark, "t"))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(made.name).result() == "1"
    assert [made.name(), made.name()] == ["4", "1"]


def test_targets_that_answer_alike_are_asked_once(spark: Any) -> None:
    owner = bridge_of(spark)
    one, other, third = Counted(owner), Counted(owner), Counted(owner)
    made = [
        owner.implement([CATALOG, NAMESPACES], target, alike)
        for target, alike in ((one, "alike"), (other, "alike"), (third, None))
    ]
    assert [java.name() for java in made] == ["1", "1", "1"]
    assert [target.calls for target in (one, other, third)] == [1, 0, 1]


def test_only_a_table_that_answers_the_same_is_alike(lake: Any) -> None:
    """What a table answers follows from its kind, the table, its version and what it is called; of one that is about to get its first schema, from nothing that is kept."""
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    first = loaded(lake, "t")
    again = loaded(lake, "t")
    assert first._answers_key == again._answers_key
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN b INT")
    later = loaded(lake, "t")
    assert first._answers_key != later._answers_key
    assert [list(lake.sql("SELECT * FROM lake.db.t").columns), str(later.java().schema().json()).count('"name"')] == [
        ["a", "b"],
        2,
    ]
    lake.sql("CREATE TABLE lake.db.u (a INT) USING tamis")
    same = SparkTable(first.bridge, first.store, first.snapshot, ["other"])
    staged = SparkTable(first.bridge, first.store, first.snapshot, first.names, head=later.head)
    kind = type("Kind", (SparkTable,), {})(first.bridge, first.store, first.snapshot, first.names)
    assert len({t._answers_key for t in (first, later, loaded(lake, "u"), same, staged, kind)}) == 6
    assert staged._answers_key is None
    assert (str(same.java().name()), str(first.java().name())) == ("other", ".".join(first.names))


class Named(Shelf):
    """A shelf that Java compares by itself, unless it has no identity."""

    asked = 0

    def __init__(self, owner: Any, label: str, identity: str | None) -> None:
        super().__init__(owner, label)
        self.java_identity = identity

    def __eq__(self, other: object) -> bool:
        Named.asked += 1
        return super().__eq__(other)

    __hash__ = Shelf.__hash__


def test_java_compares_identities_and_asks_python_without_one(spark: Any) -> None:
    owner = bridge_of(spark)

    def made(label: str, identity: str | None) -> Any:
        shelf = Named(owner, label, identity)
        kept.append(shelf)
        return owner.implement([CATALOG, NAMESPACES], shelf)

    kept: list[Named] = []
    a, again, b, unknown = made("a", "a"), made("a", "a"), made("b", "b"), made("a", None)
    before = Named.asked
    assert [a.equals(again), a.equals(b), a.equals(a), a.hashCode() == again.hashCode()] == [True, False, True, True]
    assert Named.asked == before
    assert [a.equals(unknown), unknown.equals(a), unknown.equals(b)] == [True, True, False]
    assert Named.asked > before


def test_the_identity_of_a_table_is_what_python_compares(lake: Any) -> None:
    """Its place, its id and its version: neither its name, nor a table that was made again under it."""
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    first, again = loaded(lake, "t"), loaded(lake, "t")
    lake.sql("INSERT INTO lake.db.t VALUES (1)")
    later = loaded(lake, "t")
    lake.sql("DROP TABLE lake.db.t")
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    anew = loaded(lake, "t")
    lake.sql("CREATE TABLE lake.db.u (a INT) USING tamis")
    tables = [
        first,
        again,
        later,
        anew,
        loaded(lake, "u"),
        SparkTable(first.bridge, first.store, first.snapshot, ["x"]),
    ]
    for one in tables:
        for other in tables:
            assert (one == other) == (one.java_identity == other.java_identity) == one.java().equals(other.java())
    assert len({t.java_identity for t in tables}) == 4
    secret = first.store.with_new_counters()
    secret.options = {"timeout": "9s"}
    assert SparkTable(first.bridge, secret, first.snapshot, first.names).java_identity is None


def loaded(lake: Any, name: str) -> SparkTable:
    """The table as Spark has it in a plan."""
    plan = lake.sql(f"SELECT * FROM lake.db.{name}")._jdf.queryExecution().analyzed()
    found: SparkTable = bridge_of(lake.spark).target(plan.collectLeaves().head().table())
    return found


def test_what_nobody_defines_is_refused_by_name(spark: Any, shelf: Any) -> None:
    with pytest.raises(Exception, match=r"SupportsNamespaces\.dropNamespace is not implemented"):
        shelf.dropNamespace(bridge_of(spark).array("java.lang.String", ["a"]), False)


def test_equal_targets_are_equal_in_java(spark: Any, shelf: Any) -> None:
    owner = bridge_of(spark)
    same, other = owner.implement([CATALOG], Shelf(owner)), owner.implement([CATALOG], Shelf(owner, "b"))
    assert shelf.equals(same)
    assert shelf.hashCode() == same.hashCode()
    assert not shelf.equals(other)
    assert not shelf.equals("a")
    assert shelf.toString() == "shelf a"


@pytest.mark.parametrize(
    ("provoke", "condition", "text"),
    [
        (lambda s, i: s.dropTable(i), "SHELF_EMPTY", "[SHELF_EMPTY] There is no db.t. Fill it."),
        (lambda s, i: s.loadTable(i), "TABLE_OR_VIEW_NOT_FOUND", "db.t cannot be found"),
        (lambda s, i: s.renameTable(i, i), "PYTHON_ERROR", "ZeroDivisionError: by nothing"),
        (lambda s, i: s.loadNamespaceMetadata(i.namespace()), "JAVA_ERROR", "disk db"),
    ],
    ids=["tamis", "spark", "python", "undeclared"],
)
def test_errors_arrive_with_text_and_code(spark: Any, shelf: Any, provoke: Any, condition: str, text: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        provoke(shelf, identifier(spark, "t"))
    assert caught.value.getCondition() == condition
    assert text in str(caught.value)


def test_a_java_object_leads_back_to_its_target(spark: Any, shelf: Any) -> None:
    assert bridge_of(spark).target(shelf).label == "a"
    assert bridge_of(spark).target(identifier(spark, "t")) is None


def test_one_bridge_for_all_sessions(spark: Any) -> None:
    assert bridge_of(spark) is bridge_of(spark.newSession())


class FreshAnswers:
    """A catalog whose answers are Java objects that nothing else holds."""

    def __init__(self, owner: Bridge) -> None:
        self.owner = owner

    def defaultNamespace(self) -> Any:
        return self.owner.array("java.lang.String", ["fresh"])

    def capabilities(self) -> Any:
        raise JavaThrow(self.owner.new("java.lang.IllegalStateException", "fresh"))


def test_an_answer_reaches_java_however_soon_py4j_frees_it(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Py4J's thread frees what Python has dropped; here it does so before each answer is sent."""
    owner = bridge_of(spark)
    catalog = owner.implement((CATALOG, NAMESPACES), FreshAnswers(owner))
    answered = ClientServerConnection._call_proxy

    def freed_first(connection: Any, *args: Any) -> Any:
        command = answered(connection, *args)
        gc.collect()  # Py4J's objects are in cycles
        dropped = connection.java_client.finalizer_deque
        with ThreadPoolExecutor(1) as other:  # the connection of this thread waits for the answer
            while dropped:
                client, number = dropped.pop()
                other.submit(client.garbage_collect_object, number, False).result()
        return command

    monkeypatch.setattr(ClientServerConnection, "_call_proxy", freed_first)
    assert list(catalog.defaultNamespace()) == ["fresh"]
    with pytest.raises(Py4JJavaError, match="IllegalStateException: fresh"):
        catalog.capabilities()


def test_targets_go_when_java_has_let_go(spark: Any) -> None:
    owner = bridge_of(spark)
    target = Shelf(owner, "brief")
    watch = weakref.ref(target)
    proxy = owner.implement([CATALOG], target)
    assert proxy.name()
    del target, proxy
    for _ in range(100):
        gc.collect()
        owner.jvm.System.gc()
        owner.jvm.System.runFinalization()
        if watch() is None:
            return
    pytest.fail("the target is still held")


def test_probing_tells_versions_apart(spark: Any) -> None:
    owner = bridge_of(spark)
    assert owner.has_class(CATALOG)
    assert not owner.has_class(CATALOG + "OfTheFuture")


class _Racing:
    """What ``define_beside`` needs of a bridge. A second thread defines the class, too, while the first compiles it."""

    _loader = None

    def __init__(self) -> None:
        self._lock, self._probed, self._tools = threading.RLock(), dict[str, bool](), self
        self.defined: list[str] = []
        self.other: threading.Thread | None = None

    def has_class(self, name: str) -> bool:
        return self._probed.get(name, False)

    def _compile(self, _source: str, _parent: Any) -> Any:
        if self.other is None:
            self.other = threading.Thread(target=define, args=(self,))
            self.other.start()
            self.other.join(0.3)  # it waits if there is a lock, and is done by now if there is none
        return self

    def getBytecodes(self) -> dict[str, str]:
        return {"x.TamisCount": "x.TamisCount"}

    def define(self, _neighbour: str, code: str) -> None:
        self.defined.append(code)


def define(racing: _Racing) -> None:
    Bridge.define_beside(racing, "x.CustomMetric", "x.TamisCount")  # type: ignore[arg-type]  # a stand-in


def test_a_class_is_defined_once_by_threads_that_need_it_at_once() -> None:
    """Java defines a class once, and fails the query that tries again; stages of one query get their metrics at once."""
    racing = _Racing()
    define(racing)
    assert racing.other is not None
    racing.other.join()
    assert racing.defined == ["x.TamisCount"]
