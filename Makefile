# Everything runs in .venv, which the first target that needs it makes; only Python 3.11+ and pip
# have to be there.
PYTHON ?= python3
BIN := .venv/bin
REBAT := $(BIN)/rebat
MONTH := workloads/mira-like-june-2017.json.gz

.PHONY: help setup run toy test lint bench clean

help:
	@echo "make run    simulate a month of Mira under failures: Baseline against SFSJ"
	@echo "make toy    the node-stealing paper's toy example, with its Gantt chart"
	@echo "make test   all tests"
	@echo "make lint   ruff and mypy"
	@echo "make bench  benchmarks"

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test,lint,campaign]'
	$(BIN)/python -m pip install --quiet --no-deps pybatsim==3.2.1  # its pins do not build here
	touch $@

run: setup
	$(REBAT) run $(MONTH) --policy baseline --policy sfsj \
	    --mtbf 1h --downtime 1h --seed 0 --checkpoint young-daly --figures \
	    --out out/june-2017 --force
	@echo
	@echo "Figure: out/june-2017/flows.png. The same on a real trace, once you have one:"
	@echo "  $(REBAT) workload import TRACE.swf.gz --month 2018-11 --cap 49000 -o november.json.gz"
	@echo "  $(REBAT) run november.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h \\"
	@echo "      --checkpoint young-daly --out out/november"

toy: setup
	$(REBAT) run workloads/toy.json --policy baseline --policy sfsj \
	    --failures failure_events/toy.events --figures --out out/toy --force

test: setup
	$(BIN)/python -m pytest -n 2 tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv dist build
