# Every target creates .venv first, and installs again only after pyproject.toml or constraints.txt have changed. The
# demonstration needs few packages; the other targets install everything.
PYTHON ?= python3
READY := .venv/.ready
DEMO := .venv/.demo
PIP := .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

LOWEST := .venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt
QUICK := tests/test_formats.py tests/test_trace.py tests/test_config.py tests/test_losses.py tests/cli tests/data \
	tests/metrics tests/search tests/viewing tests/serving/test_app.py tests/serving/test_endpoints.py \
	tests/serving/test_models.py tests/serving/test_security.py tests/systems/test_run.py tests/systems/test_folder.py \
	tests/training/test_fit.py tests/training/test_checkpoints.py tests/attention/test_attend.py

.PHONY: help demo serve docs test check coverage bench gates soak fuzz abuse lowest audit format wheel clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*##/\t/' | expand -t 12

demo: $(DEMO)  ## see attention work: in the terminal, and as figures in regard-demo/
	.venv/bin/regard demo

serve: $(READY)  ## open the workbench in the browser, at http://127.0.0.1:8017
	.venv/bin/regard serve --open

docs: $(READY)  ## build the site of the documentation: build/site/docs/index.html
	.venv/bin/python -m sphinx --quiet --fail-on-warning --keep-going -c docs . build/site

test: $(READY)  ## run all tests
	.venv/bin/pytest -n 2

check: $(READY)  ## check format, lint, types and tests, as CI does
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/pytest -n 2

coverage: $(READY)  ## run the quick tests and report which lines of src they reach
	.venv/bin/pytest -n 2 --ignore tests/browser --cov regard --cov-report term:skip-covered

bench: $(READY)  ## compare memory and time of attention with the plain formula
	.venv/bin/python benchmarks/attention_memory.py

gates: $(READY)  ## train translators on the world babel and check their scores (an hour)
	.venv/bin/python benchmarks/babel_gates.py

soak: $(READY)  ## long trials: killed trainings, 2,000 calls of each model, every recipe twice, 64 clients (half an hour)
	.venv/bin/python tests/soak

fuzz: $(READY)  ## damage files of every format at random, and give every command all that is wrong (15 minutes)
	REGARD_FUZZ_SECONDS=10 .venv/bin/pytest -q tests/test_fuzzing.py tests/test_abuse.py

lowest: .venv-lowest/.ready  ## run the quick tests with the lowest version of each dependency that is allowed
	.venv-lowest/bin/python -m pytest -q -p no:anyio -n 2 \
		-W ignore::beartype.roar.BeartypeDecorHintPep585DeprecationWarning $(QUICK)

abuse: $(READY)  ## thousands of wrong calls, commands, recipes, requests and faults of the machine, and how they end
	.venv/bin/python tests/abuse

audit: $(READY)  ## look up the installed packages in the database of known vulnerabilities, which needs a network
	.venv/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.venv/bin/pip-audit --local --skip-editable --strict || \
		{ echo 'A package is vulnerable, or cannot be looked up because there is no network: see above.'; exit 1; }

format: $(READY)  ## format the code and fix what the linter can
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

wheel: $(READY)  ## build the distributions regard and regard-runtime into dist/
	.venv/bin/python packaging/wheels.py

clean:  ## remove .venv and regard-demo
	rm -rf .venv .venv-lowest regard-demo

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "regard needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@echo 'Creating .venv, which takes about a minute.'
	$(PYTHON) -m venv .venv

$(DEMO): pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) '.[train,figures,efficientnet]'
	touch $@

.venv-lowest/.ready: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST) --editable '.[train,figures,serve,efficientnet,ray,datasets,pandas]'
	$(LOWEST) beartype httpx hypothesis pytest pytest-xdist schemathesis scikit-image scipy
	touch $@

$(READY): pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) '.[dev]'
	touch $@
