# Everything here sets itself up: with Python 3.11 or newer and make, `make start` and `make test` just work.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
WORKERS ?= auto
SEED    ?=
MINUTES ?= 10
BASE    ?=

# The environment is complete: nothing of the caller's own Python shall leak into it.
unexport PYTHONHOME
unexport PYTHONPATH

# ── for everyone ─────────────────────────────────────────────────────────────────────────────────

.PHONY: help
help: ## say what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z.-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: start
start: $(READY) ## a cluster in one process: a pod waits, a node arrives, the pod is bound
	@$(BIN)/kubesched tutorial 7 --served

.PHONY: test
test: $(READY) ## everything: ruff, mypy, all tests
	@failed=""; \
	echo "── ruff check";   $(BIN)/ruff check . || failed="$$failed ruff"; \
	echo "── mypy --strict src"; $(BIN)/mypy || failed="$$failed mypy"; \
	echo "── pytest -n $(WORKERS)"; $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 8 || failed="$$failed pytest"; \
	echo "ran ruff, mypy, pytest: $${failed:+failed in}$${failed:-all passed}"; \
	test -z "$$failed"

# ── while writing ────────────────────────────────────────────────────────────────────────────────

.PHONY: check
check: lint ## the quick look before a commit: lint, and the tests that are not slow
	@$(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 8 -m "not slow"

.PHONY: lint
lint: $(READY) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/mypy

.PHONY: fmt
fmt: $(READY) ## sort imports and mend what ruff can mend
	@$(BIN)/ruff check --fix .

.PHONY: tidy
tidy: $(READY) ## functions over 60 lines that this branch made longer (BASE=ref to compare with)
	@$(BIN)/python tools/tidy.py $(BASE)

.PHONY: golden
golden: $(READY) ## write the recorded answers again, for review with git diff
	@$(BIN)/python -m pytest -q tests --golden

.PHONY: deploy-files
deploy-files: $(READY) ## write what is made under deploy/ again
	@$(BIN)/python -m tools.deploy_files

.PHONY: docs
docs: $(READY) ## write the pages that are made from the program
	@$(BIN)/python -m tools.docs

.PHONY: diagrams
diagrams: $(READY) ## of those, the picture of a pod's states
	@$(BIN)/python -m tools.docs lifecycle

# ── for the long run ─────────────────────────────────────────────────────────────────────────────

.PHONY: conformance
conformance: $(READY) ## compare with answers recorded from kube-scheduler
	@$(BIN)/kubesched conformance tests/parity/data/*.jsonl.gz

.PHONY: bench
bench: $(READY) ## measure
	@$(BIN)/kubesched bench

.PHONY: fuzz
fuzz: $(READY) ## ten minutes of drawn clusters and faults, on all cores (MINUTES=m; SEED=n to begin elsewhere than today)
	@$(BIN)/kubesched fuzz --mode mixed --minutes $(MINUTES) $(if $(SEED),--seeds $(SEED)..)

include envtest.mk

# ── the environment ──────────────────────────────────────────────────────────────────────────────

.PHONY: .venv
.venv: $(READY) ## make the environment (done by itself when needed)

# The first Python that is new enough; a `python3` that is too old is no reason to give up.
$(READY): requirements.lock pyproject.toml
	@python=""; \
	for candidate in $(BIN)/python $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python="$$candidate"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  found=$$($(PYTHON) --version 2>/dev/null || echo not there); \
	  echo "kubesched needs Python 3.11 or newer; $(PYTHON) is $$found." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3.12 $(or $(firstword $(MAKECMDGOALS)),start)" >&2; \
	  exit 1; \
	fi; \
	if [ "$$python" != "$(BIN)/python" ]; then \
	  echo "making $(VENV) with $$("$$python" --version)"; \
	  "$$python" -m venv --clear $(VENV) || { \
	    echo "$$python could not make a virtual environment: install its venv module (python3-venv on Debian)." >&2; exit 1; }; \
	fi
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Kept out of every other target: only whoever changes a dependency needs uv.
.PHONY: lock
lock: ## resolve the dependencies again (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	  --custom-compile-command "make lock" --extra dev --output-file requirements.lock pyproject.toml

.PHONY: clean
clean: ## remove the environment and everything tools left behind
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
