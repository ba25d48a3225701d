# Everything a contributor runs. A clone needs Python 3.11 or newer, git and make; the rest is installed into .venv.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help run test check bench drill docs pins clean

# Paths stay relative, so a clone whose path contains a space works.
PY := .venv/bin/python
SOURCES := $(wildcard src tests examples bench)

# What is heavy and shared by all clones (Node, provider servers, a browser) belongs here, not in .venv.
export SEGUE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/segue

# Tests start hundreds of processes: each finds Segue compiled, though the environment may say that nothing be written.
unexport PYTHONDONTWRITEBYTECODE

# Each a file of pins of its own, which `segue install` reads.
EXTRAS := acp discord feishu matrix mcp model otel postgres whatsapp

PIP := $(PY) -m pip --disable-pip-version-check -qq
PINNED := $(PIP) install --require-hashes --only-binary :all:
COMPILE := .venv/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make pins' $(if $(UPGRADE),--upgrade)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' Makefile

run: .venv/installed ## try Segue
	@SEGUE_HOME="$${SEGUE_HOME:-.segue}" $(PY) -m segue talk --page

test: check .venv/programs .venv/servers ## static checks, then every test
	@$(PY) -m pytest -n auto --dist worksteal

check: .venv/tools ## ruff, mypy, import-linter and the English of the docs
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m mypy $(SOURCES)
	@.venv/bin/lint-imports --no-logo
	@$(PY) -m tests.prose

bench: .venv/servers ## speed, as ratios measured in one run
	@$(PY) -m bench

drill: .venv/servers ## faults at full length: kills, power cuts, bad disks, frozen replicas, forgeries
	@$(PY) -m tests.drills

docs: .venv/tools ## run what the documentation shows
	@$(PY) -m pytest tests/docs

pins: .venv/tools ## write requirements/*.txt anew (UPGRADE=1 takes the newest versions)
	@$(PINNED) -r requirements/pins.txt
	@$(COMPILE) pyproject.toml --group build -o requirements/run.txt
	@$(COMPILE) pyproject.toml --all-extras --group build --group test --group check \
		-c requirements/run.txt -o requirements/test.txt
	@for extra in $(EXTRAS); do $(COMPILE) pyproject.toml --extra $$extra -c requirements/test.txt \
		-o requirements/$$extra.txt || exit; done
	@$(COMPILE) --group pins -o requirements/pins.txt
	@$(COMPILE) --group peers -o requirements/peers.txt
	@$(COMPILE) --group synapse -o requirements/synapse.txt
	@$(COMPILE) --group libraries -o requirements/libraries.txt
	@$(COMPILE) --group mautrix -o requirements/mautrix.txt
	@$(COMPILE) --group examples -c requirements/test.txt -o requirements/examples.txt

clean: ## remove the environment and what tools left behind
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The pins go in first, by hash; then Segue itself, editable, built by the pinned backend: nothing unpinned is fetched.
.venv/installed: .venv/pinned pyproject.toml
	@echo "Installing Segue itself"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# What only tests and checks need: who just runs Segue needn't wait for it.
.venv/tools: .venv/installed requirements/test.txt
	@echo "Installing what the tests and checks need"
	@$(PINNED) -r requirements/test.txt
	@touch $@

# Chromium shows the page, the shells complete commands, and nginx, which is only unpacked, tries the recipe for a proxy.
# Where they are missing and can't be had in three tries, the tests that need them are skipped by name.
.venv/programs: .venv/tools
	@for try in 1 2 3; do { command -v chromium && command -v fish && command -v zsh; } && break; \
		{ command -v apt-get && test "$$(id -u)" = 0; } || break; export DEBIAN_FRONTEND=noninteractive; \
		apt-get -qq install -y chromium fish zsh || apt-get -qq update; done </dev/null >/dev/null 2>&1 || :
	@for try in 1 2 3; do test -d "$$SEGUE_CACHE/nginx" || ! command -v apt-get && break; \
		(mkdir -p "$$SEGUE_CACHE" && cd "$$SEGUE_CACHE" && rm -rf nginx.half nginx_*.deb && apt-get -qq download nginx && \
		dpkg -x nginx_*.deb nginx.half && mv nginx.half nginx && rm nginx_*.deb); done </dev/null >/dev/null 2>&1 || :
	@touch $@

# Servers shaped like the providers' go into the cache; the tests of what can't be had are skipped by name.
.venv/servers: .venv/tools tests/servers/package-lock.json tests/servers/harnesses/package-lock.json requirements/synapse.txt requirements/libraries.txt requirements/mautrix.txt requirements/examples.txt
	@$(PY) -m tests.servers
	@touch $@

.venv/pinned: requirements/run.txt
	@for python in $(PYTHON) python3.11 python3.12 python3.13 python3 python; do \
		"$$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		echo "Making .venv ($$("$$python" --version))"; "$$python" -m venv .venv || exit; \
		echo "Installing $$(grep -c == requirements/run.txt) pinned packages into it"; \
		$(PINNED) -r requirements/run.txt && touch $@; exit; \
	done; \
	echo "Segue needs Python 3.11 or newer with venv and ensurepip (Debian and Ubuntu: apt install python3-venv)." >&2; exit 1
