# Every target sets up .venv first; nothing is reinstalled until pyproject.toml or constraints.txt change.
PYTHON ?= python3
READY := .venv/.ready

.PHONY: help demo test check bench gates format clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*##/\t/' | expand -t 12

demo: $(READY)  ## see attention work, in the terminal and as pictures in regard-demo/
	.venv/bin/regard demo

test: $(READY)  ## run all tests
	.venv/bin/pytest -n 2

check: $(READY)  ## what CI runs: format, lint, types, tests
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/pytest -n 2

bench: $(READY)  ## measure side by side on this machine
	.venv/bin/python benchmarks/attention_memory.py

gates: $(READY)  ## train what must be learned, and measure it (an hour)
	.venv/bin/python benchmarks/babel_gates.py

format: $(READY)  ## put the format right
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

clean:  ## remove what the targets made
	rm -rf .venv regard-demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "regard needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@echo 'Setting up .venv; the first time this takes about a minute.'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@
