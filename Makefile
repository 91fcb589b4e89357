# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Needed: Python >= 3.11 with venv, Rust (cargo), Go, make, a C compiler, flock (util-linux).
# Build output, wheels and node binaries are cached outside the checkout, so a second clone is quick.

SHELL := /bin/bash
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/chainmark
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE_VERSIONS := v0.38.17 v1.0.1
# Tests of networks that run side by side: a network waits for its blocks most of the time, and they ask for no speed.
NETWORKS := $(shell echo $$(( $$(nproc) + 1 )))
TESTS := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest --durations 15 --durations-min 5

export CARGO_TARGET_DIR := $(CACHE)/target
export UV_CACHE_DIR := $(CACHE)/uv
export UV_LINK_MODE := copy
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: where compiled modules may not be kept, each compiles the package anew (0.4 s).
unexport PYTHONDONTWRITEBYTECODE

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name 'Cargo.toml')

.PHONY: help demo demo-cluster test check build-rust test-rust test-units test-networks test-quiet setup nodes
.PHONY: servers example-server golden format docs notice
.PHONY: bench speed pictures check-truth mutants fuzz wheels clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: setup nodes ## compare CometBFT v1.0.1 with v0.38.17 on real validators (about 10 minutes after set-up)
	@$(BIN)/chainmark experiment cometbft/demo --baseline v0.38.17 --candidate v1.0.1 --most-runs 6 \
		--margin node_cpu_per_transaction_s=25% \
		--html reports/v1.0.1-against-v0.38.17.html --pdf reports/v1.0.1-against-v0.38.17.pdf \
		--md reports/v1.0.1-against-v0.38.17.md --json-file reports/v1.0.1-against-v0.38.17.json; \
	code=$$?; [ $$code -le 1 ] || [ $$code -eq 3 ] || exit $$code

demo-cluster: setup nodes ## compare them on eight validators on three machines, each in a network namespace (root)
	@$(BIN)/python -m tests.real.cluster_demo reports

# Networks and tests of times wait for blocks much of the time: checks, compilers and unit tests use what they leave, at
# the lowest priority. Whatever fails, the rest runs. Tests start `make` themselves, which is not of this one.
SERIALLY := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(MAKE) --no-print-directory --keep-going --jobs 1
test: setup nodes servers ## set up everything, then run every check and test
	@mkdir -p build; echo "checks and unit tests run at the lowest priority meanwhile: build/test-meanwhile.log"; \
	$(BIN)/python -m tests.beside $(SERIALLY) check build-rust test-units >build/test-meanwhile.log 2>&1 & other=$$!; \
	trap "kill $$other" INT TERM; \
	$(SERIALLY) test-networks test-rust test-quiet MEANWHILE=$$other; timed=$$?; \
	echo "waiting for checks and unit tests …"; wait $$other; other=$$?; cat build/test-meanwhile.log; \
	exit $$(( timed ? timed : other ))

setup: $(VENV)/.built

nodes: $(VENV)/.built
	@$(BIN)/chainmark nodes install cometbft $(NODE_VERSIONS)

servers: $(VENV)/.built
	@echo "building the Mesh servers that the tests ask, fetching Prometheus …"
	@$(BIN)/python -m tests.real.mesh_servers build
	@$(BIN)/python -m tests.real.prometheus_server install

example-server: setup ## run Coinbase's example of a Mesh server until Ctrl-C
	@$(BIN)/python -m tests.real.mesh_servers rosetta-example

check: setup ## formatting, lints and types
	$(BIN)/ruff format --check src tests benches
	$(BIN)/ruff check src tests benches
	cargo fmt --all --check
	@# mypy uses one processor; clippy's builds begin on the other. What it knows of equal files is every checkout's: a
	@# file counts by its content. Two checkouts at once take turns.
	@mkdir -p $(CACHE)
	flock $(CACHE)/mypy.lock $(BIN)/mypy --cache-dir $(CACHE)/mypy & types=$$!; \
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings; lints=$$?; \
	wait $$types && exit $$lints

build-rust:
	cargo test --quiet --workspace --locked --no-run

test-rust: ## unit, property and socket tests of the crates
	cargo test --quiet --workspace --locked

# As many workers as processors: more threads of polars in each would only wait for each other.
UNITS := env POLARS_MAX_THREADS=1 $(TESTS) --quiet --numprocesses logical --dist worksteal tests/unit tests/golden
test-units:
	$(UNITS)

# A machine that is shared may starve a network for some seconds: what fails gets the machine to itself, once, when the
# process MEANWHILE has ended. Both outcomes are shown. Unit tests have no such excuse, and a cache of their own.
TIMED := $(TESTS) --override-ini cache_dir=.pytest_cache/timed
AGAIN = { [ $$? -eq 1 ] && echo "trying again, alone, what failed …" && \
	$(if $(MEANWHILE),tail --follow --pid=$(MEANWHILE) /dev/null &&) \
	$(TIMED) --last-failed --last-failed-no-failures none --maxfail 5

test-networks:
	$(TIMED) --quiet --numprocesses $(NETWORKS) --dist loadfile --no-loadscope-reorder \
		-m 'not quiet' tests/oracle tests/real || \
	$(AGAIN) -m 'not quiet' tests/oracle tests/real; }

test-quiet:
	$(TIMED) -m quiet tests/oracle tests/real || \
	$(AGAIN) -m quiet tests/oracle tests/real; }

golden: setup ## rewrite the stored outputs that tests/golden compares
	$(BIN)/python -m tests.golden

format: setup ## rewrite the sources as `check` wants them
	$(BIN)/ruff format src tests benches
	$(BIN)/ruff check --fix src tests benches
	cargo fmt --all

docs: setup ## regenerate the reference, and build the documentation as a site in build/site; broken links fail
	$(BIN)/python -m chainmark.cli.reference docs/reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# Zig's linker makes wheels for every Linux since 2018 and for both processors, whatever this machine has.
WHEEL_TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

wheels: setup ## build wheels for x86-64 and arm64 and every Linux since 2018 in build/wheels
	$(BIN)/uv pip install --quiet --python $(BIN)/python 'ziglang>=0.17,<0.18'
	@command -v rustup >/dev/null \
		|| { echo "error: rustup is not installed"; echo "hint: it adds the other processor's library"; exit 2; }
	rustup --quiet target add $(WHEEL_TARGETS)
	for target in $(WHEEL_TARGETS); do \
		PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --quiet --profile wheel --locked --zig --target $$target \
			--compatibility manylinux_2_28 --out build/wheels || exit 1; \
	done

pictures: setup ## redraw the documentation's pictures of reports
	$(BIN)/python -m tests.pictures

notice: setup ## rewrite NOTICE, the list of dependencies and their licences
	$(BIN)/python -m tests.notice

# Judges chainmark by chainmark: exit code 1 for a regression, 3 where the runs do not decide. In a shared target folder
# the second commit's core is built in a fraction of the first one's time.
BASE ?= main
speed: setup ## judge how this checkout's own start compares with that of BASE, by chainmark's own verdict
	@mkdir -p build
	$(BIN)/chainmark experiment benchmark/chainmark-start --baseline git:.@$(BASE) --candidate git:. \
		--html build/speed.html --md build/speed.md

bench: setup ## measure what must be fast beside its peers; needs an idle machine
	$(BIN)/python benches/load/run.py
	$(BIN)/python benches/http/run.py
	$(BIN)/python benches/net/run.py
	$(BIN)/python benches/stats/run.py
	$(BIN)/python -m benches.bisect.run
	$(BIN)/python benches/simulation/run.py
	$(BIN)/python benches/synth/run.py
	$(BIN)/python benches/trace/run.py
	$(BIN)/python benches/ingest/run.py
	$(BIN)/python benches/cluster/run.py
	$(BIN)/python -m benches.cluster.hosts
	$(BIN)/python -m benches.cluster.networks
	$(BIN)/python -m benches.cluster.faults
	$(BIN)/python benches/compare/run.py
	$(BIN)/python benches/start/run.py

check-truth: setup ## imports of 52 generated hosts against what truly happened, fault by fault (some minutes)
	$(BIN)/python benches/truth/run.py

# What `make mutants` changes: the Python files in tests/mutants.toml, and the Rust files that schedule and count the
# requests of a load; or only those that ONLY names: files, or Python functions as FILE::CLASS.FUNCTION. The tool for
# Rust is built from crates.io into the cache, once. A fault that exhausts memory or never ends counts as noticed.
ONLY ?=
LOAD_RS := $(addprefix crates/chainmark-load/src/,schedule.rs record.rs \
	http/judge.rs http/pace.rs http/series.rs http/tally.rs)
MUTATED_PY := $(if $(ONLY),$(filter-out %.rs,$(ONLY)),all)
MUTATED_RS := $(if $(ONLY),$(filter %.rs,$(ONLY)),$(LOAD_RS))
CARGO_MUTANTS := $(CACHE)/cargo/bin/cargo-mutants
# Most of a fault's time is to build and link tests: the crate's own ones, and of HTTP those that ask a server.
TRY_RS := $(CARGO_MUTANTS) mutants --package chainmark-load --profile mutants --timeout 60 --cargo-arg=--lib
HTTP_RS := $(filter crates/chainmark-load/src/http/%,$(MUTATED_RS))
OTHER_RS := $(filter-out $(HTTP_RS),$(MUTATED_RS))

mutants: setup $(if $(MUTATED_RS),$(CARGO_MUTANTS)) ## list small faults that no unit test notices (ONLY='FILE …')
	$(if $(MUTATED_PY),$(BIN)/python -m tests.mutants $(filter-out all,$(MUTATED_PY)))
	$(if $(OTHER_RS),$(TRY_RS) $(addprefix --file ,$(OTHER_RS)))
	$(if $(HTTP_RS),$(TRY_RS) --cargo-arg=--test=http $(addprefix --file ,$(HTTP_RS)))

# Each target so many seconds, with the nightly compiler; then the property tests with examples that no run had yet.
FUZZ_SECONDS ?= 300
FUZZED := chainmark-load/answer chainmark-net/packet chainmark-trace/file chainmark-trace/findings chainmark-trace/line

fuzz: setup ## look for inputs that break the decoders (needs the nightly compiler and cargo-fuzz)
	for one in $(FUZZED); do \
		(cd crates/$${one%/*} && cargo +nightly fuzz run $${one#*/} -- -max_total_time=$(FUZZ_SECONDS)) || exit 1; \
	done
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest --quiet --numprocesses logical tests/unit

$(CARGO_MUTANTS):
	cargo install --quiet --locked --root $(CACHE)/cargo --version '^27.1' cargo-mutants

clean: ## remove what was built in this checkout; caches outside it stay
	rm -rf $(VENV) src/chainmark/*.so build reports mutants.out*

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is older than 3.11"; echo "hint: make PYTHON=python3.12 …"; exit 2; }
	@command -v cargo >/dev/null || { echo "error: cargo is not installed"; echo "hint: install Rust"; exit 2; }
	@command -v go >/dev/null || { echo "error: go is not installed"; echo "hint: install Go 1.23 or newer"; exit 2; }
	@echo "setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "error: no virtual environment could be made"; echo "hint: apt install python3-venv"; exit 2; }

$(VENV)/.packages: requirements.lock | $(VENV)/bin/python
	@$(BIN)/pip install --quiet --cache-dir $(CACHE)/pip 'uv>=0.13,<0.14'
	@echo "installing Python packages …"
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements.lock
	@touch $@

$(VENV)/.built: $(VENV)/.packages pyproject.toml $(RUST_SOURCES)
	@echo "building the Rust core …"
	@$(BIN)/maturin develop --quiet --release --locked --uv
	@touch $@

requirements.lock: pyproject.toml
	@if [ -x $(BIN)/uv ]; then $(BIN)/uv pip compile --quiet --group dev --group docs pyproject.toml --no-header \
		--no-emit-index-url --no-emit-find-links -o $@; else touch $@; fi
