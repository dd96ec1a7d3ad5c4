# SPDX-License-Identifier: Apache-2.0
# Everything runs in .venv, which the first target creates. Required: Python 3.11+ and pip.
PYTHON ?= python3
BIN := .venv/bin
REBAT := $(BIN)/rebat
MONTH := mira-like-june-2017
# pybatsim and its requirements, without the pyzmq that it pins: that version does not build on Python
# 3.11 and later.
PYBATSIM := --no-deps pybatsim==3.2.1 docopt==0.6.2 sortedcontainers==2.4.0

.PHONY: help setup run toy test test-all test-rest lint docs docs-version wheels notebooks bench clean

help:
	@echo "make run    simulate a month of Mira under failures: Baseline and SFSJ"
	@echo "make toy    the toy example of the node-stealing paper, with its Gantt chart"
	@echo "make test   the fast tests of every part"
	@echo "make test-all   all tests"
	@echo "make lint   ruff and mypy"
	@echo "make docs   the documentation site, in build/site"
	@echo "make docs-version VERSION=1.0   the site of a version, with a menu of versions, in the branch gh-pages"
	@echo "make wheels   build wheel and sdist, and use the wheel with each version of Python"
	@echo "make notebooks   run the notebooks of the documentation again"
	@echo "make bench  benchmarks"

setup: .venv/ready

# What users need. Other targets install what tests and linters need.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[campaign]'
	touch $@

.venv/tested: .venv/ready
	$(BIN)/python -m pip install --quiet --editable '.[campaign,test,lint]'
	$(BIN)/python -m pip install --quiet $(PYBATSIM)
	touch $@

run: setup
	$(REBAT) run $(MONTH) --policy baseline --policy sfsj \
	    --mtbf 1h --downtime 1h --seed 0 --checkpoint young-daly --figures \
	    --out out/june-2017 --force
	@echo
	@echo "Figure: out/june-2017/flows.png. The same with a real trace:"
	@echo "  $(REBAT) workload import TRACE.swf.gz --month 2018-11 --cap 49000 -o november.json.gz"
	@echo "  $(REBAT) run november.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h \\"
	@echo "      --checkpoint young-daly --out out/november"

toy: setup
	$(REBAT) toy

.venv/documented: .venv/ready
	$(BIN)/python -m pip install --quiet --editable '.[campaign,docs]'
	touch $@

test: .venv/tested
	$(BIN)/python -m pytest -n 2 tests

test-all: .venv/tested
	REBAT_TESTS=all $(BIN)/python -m pytest -n 2 tests

# What `make test` leaves out.
test-rest: .venv/tested
	REBAT_TESTS=rest $(BIN)/python -m pytest -n 2 tests

lint: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/documented
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is build/site/index.html. Its search works without a server."

# Add the site of a version to the branch gh-pages of this clone, with a menu of all versions:
# make docs-version VERSION=1.0. Then push this branch to the server of the site.
docs-version: .venv/documented
	export PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1 && \
	    mike deploy --update-aliases $(VERSION) latest && mike set-default latest

# WHEELS="3.11:oldest 3.13:newest" checks only these combinations (see scripts/check_wheel.py).
wheels:
	$(PYTHON) scripts/check_wheel.py $(WHEELS)

notebooks: .venv/tested
	$(BIN)/python scripts/run_notebooks.py

bench: .venv/tested
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv dist build
