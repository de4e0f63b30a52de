# Every target works on a fresh clone with nothing but make and Python 3.11 or newer.
#
#   make test PYTEST_ARGS='-k cancel -x'           any arguments of pytest
#   make test PYTEST_ARGS='-n auto'                in parallel
#   make test PYTEST_ARGS='--snapshot-update'      record goldens again, then read the diff
#   make demo | test-all | bench | check | fix | lock | clean

PY := .venv/bin/python
READY := .venv/ready
PYTEST ?= $(PY) -m pytest
PYTEST_ARGS ?=
BENCH_ARGS ?=

.PHONY: setup test test-all demo bench check fix lock clean
.DEFAULT_GOAL := test

test: $(READY)
	@$(PYTEST) $(PYTEST_ARGS)

test-all: $(READY)
	@$(PYTEST) -m 'sweep or not sweep' $(PYTEST_ARGS)

demo: $(READY)
	@.venv/bin/acp-server demo

bench: $(READY)
	@$(PY) benchmarks/run.py $(BENCH_ARGS)

check: $(READY)
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) -m pytest -q tests/architecture

fix: $(READY)
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

lock:
	@.ci/lock

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* coverage.json
	find agent_loop acp_server tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

setup: $(READY)
	@:

# The stamp is as old as the last complete set-up, so an interrupted one is done again.
$(READY): pyproject.toml .ci/requirements.txt
	@if ! $(PY) -c 'import pip' 2>/dev/null; then \
	    for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	        "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	        python=; \
	    done; \
	    if [ -z "$$python" ]; then \
	        echo 'This project needs Python 3.11 or newer with its venv module.' \
	             'None was found; name one with: make PYTHON=/path/to/python3' >&2; \
	        exit 1; \
	    fi; \
	    "$$python" -m venv --clear .venv; \
	fi
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r .ci/requirements.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
	@touch $@
