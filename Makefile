# Every target sets up what it needs; a second run skips what is there.
# Needs Python 3.11 or newer, Node 22 or newer (20 works), and the package indexes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTHON_READY := $(VENV)/.ready
# MiniStack asks for one exact version of botocore, so the local cloud has an environment of its own
LOCAL_VENV := .venv-local
LOCAL_READY := $(LOCAL_VENV)/.ready
# what makes locks and reads them
RELEASE_VENV := build/release
RELEASE_READY := $(RELEASE_VENV)/.ready
NODE_READY := node_modules/.ready
# of `make test-node`
NODE ?= 22

# the CDK CLI and jsii say at length that Node 20 is at its end of life
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export NODE_NO_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# hundreds of processes import the sources, which are compiled once
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

# in `make help` are those that a newcomer needs (##), in `make help-all` the others (#+) too
.PHONY: help
help: ## Show the targets to begin with
	@awk -F ':.*## ' '/^[a-z-]+:.*## / && !/^help:/ {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: tools
tools:
	@command -v $(PYTHON) > /dev/null || { echo "make: Python 3.11 or newer is needed, found no $(PYTHON); choose one with make PYTHON=..." >&2; exit 2; }
	@command -v node > /dev/null || { echo "make: Node 22 or newer is needed (20 works), found no node" >&2; exit 2; }

.PHONY: setup
setup: tools $(PYTHON_READY) $(LOCAL_READY) $(NODE_READY) ## Virtual environments, packages, CDK CLI

.PHONY: demo
demo: setup ## An example on a local cloud: a Monday, then a surge with native scaling, the scaler and a boost (offline, free)
	@$(BIN)/python examples/demo/demo.py

# some tests wait for a process of their own, so there is one worker more than there are processors
MORE_WORKERS = $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)')
# and tests of deploys wait a third of their time, for the CDK CLI, which looks every five seconds
EVEN_MORE_WORKERS = $$($(BIN)/python -c 'import os; print(os.cpu_count() + 2)')
PYTEST = $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder

.PHONY: test
test: setup check ## Style, types and the quick tests (offline, free; under five minutes). ARGS="tests/core -x"
	@$(PYTEST) --numprocesses $(MORE_WORKERS) -m "not cloud" $(ARGS)

.PHONY: test-cloud
test-cloud: setup ## Tests that need a local cloud or the CDK CLI (offline, free; under twelve minutes). ARGS="tests/deploys"
	@$(PYTEST) --numprocesses $(EVEN_MORE_WORKERS) -m cloud $(ARGS)
	@# the server's inside, and what hooks into boto3 with the older one that the server's environment has
	@$(LOCAL_VENV)/bin/python -m pytest --numprocesses $(EVEN_MORE_WORKERS) -m "not cloud" tests/server \
		$(patsubst %,tests/client/test_%.py,meter pace sessions forks pulse_sums coordinator_client write drain producer)

.PHONY: test-node
test-node: setup #+ The tests of deploys with a Node of the npm package `node`, in build/ (offline once it is fetched, free; five minutes). NODE=20, ARGS="-k window"
	@test -d build/node-$(NODE)/node_modules || npm install --silent --no-audit --no-fund --prefix build/node-$(NODE) node@$(NODE)
	@export PATH="$(CURDIR)/build/node-$(NODE)/node_modules/.bin:$$PATH" && echo "Node $$(node --version)" && \
		$(PYTEST) --numprocesses 2 -m cloud tests/deploys/test_deploys.py $(ARGS)

# of hypothesis, which is compiled, the wheel for Pyodide that has the same version, and its hash in the lock
WHEEL = awk '/^hypothesis==/ {found = 1} found {print} found && !/\\$$/ {exit}' requirements-dev.txt
.PHONY: test-lambda-python
test-lambda-python: setup #+ The tests of the core in the Python that Lambda runs, by Pyodide (offline once Hypothesis for it is fetched into build/, free; two minutes). ARGS="-k window"
	@mkdir -p build && $(WHEEL) > build/wasm.txt
	@test -d build/python-3.14/hypothesis || $(BIN)/pip install --quiet --require-hashes --no-deps --only-binary :all: \
		--platform pyemscripten_2026_0_wasm32 --python-version 3.14 --implementation cp --abi cp314 \
		--target build/python-3.14 --requirement build/wasm.txt
	@$(BIN)/python -m tests.pyodide $(ARGS)

.PHONY: test-engines
test-engines: setup #+ The same job by plain processes, Dask and PySpark, which are installed into build/engines (offline once they are, free; needs Java; two minutes)
	@test -d build/engines/pyspark || $(BIN)/pip install --quiet --target build/engines distributed pyspark
	@PYTHONPATH=$(CURDIR)/build/engines $(PYTEST) --numprocesses 0 -m cloud tests/local/test_job_engines.py $(ARGS)

.PHONY: test-without-rooms
test-without-rooms: setup #+ Types and quick tests of a copy without each room that can be taken out (offline, free; twenty minutes). ARGS="--rooms shards tests/core"
	@$(BIN)/python -m tests.without_rooms $(ARGS)

.PHONY: nightly
nightly: setup #+ Laws with all of their examples and new seeds, long sequences, faults, fuzz, mutants, the core in the Python of Lambda, each room taken out (offline, free; hours)
	@HIGHWATER_EXAMPLES=nightly $(BIN)/python -m pytest --numprocesses auto -m "not cloud" \
		$(addprefix tests/,calls client core examples handlers physics recommend rehearse services simulation template traffic)
	@HIGHWATER_EXAMPLES=nightly $(BIN)/python -m pytest --numprocesses 0 tests/handlers/test_boosts_over_http.py
	@$(BIN)/python -m pytest --numprocesses auto benchmarks/tests
	@$(MAKE) --no-print-directory test-lambda-python
	@$(MAKE) --no-print-directory test-without-rooms
	@$(MAKE) --no-print-directory sequences
	@$(MAKE) --no-print-directory faults
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory mutants

.PHONY: check
check: setup ## Style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy constructs_pkg/cdk_highwater lambda_src/highwater lab_src/highwater_lab local_src/highwater_local examples/*/*.py acceptance benchmarks docs release tests

.PHONY: coverage
coverage: export HIGHWATER_EXAMPLES := full
coverage: setup #+ What tests/core reaches of the core, by branch; fails below 95 % (offline, free; a minute)
	@mkdir -p build
	@$(BIN)/python -m coverage run -m pytest -q --numprocesses 0 tests/core $(ARGS)
	@$(BIN)/python -m coverage report

.PHONY: mutants
mutants: export HIGHWATER_EXAMPLES := full
mutants: setup #+ Change the core in small ways, one at a time, and list what tests/core lets pass (offline, free; half an hour). ARGS="checks/windows.py"
	@$(BIN)/python -m tests.mutants $(ARGS)

.PHONY: format
format: setup ## Put the style right
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

.PHONY: benchmark
benchmark: setup ## Measure something (offline, free); without NAME, list what there is. NAME=jumps, ARGS, TRACES=folder
	@$(BIN)/python -m benchmarks $(NAME) $(if $(TRACES),--traces '$(TRACES)') $(ARGS)

.PHONY: faults
faults: setup #+ Ten thousand runs of the scaler, and 40,000 of custom resources, while AWS answers badly at random (offline, free; twenty minutes)
	@HIGHWATER_FAULT_RUNS=10000 $(BIN)/python -m pytest -q --numprocesses 0 --timeout 3600 tests/handlers/test_scaler_faults.py tests/sequences/test_faults.py

.PHONY: sequences
sequences: setup #+ The laws over random sequences of deploys, rollbacks and windows, a hundred times as many as in make test (offline, free; ten minutes)
	@HIGHWATER_SEQUENCES=2400 $(BIN)/python -m pytest -q --numprocesses 0 --timeout 3600 tests/sequences

.PHONY: fuzz
fuzz: setup #+ Changed templates, traffic, price lists, command lines and requests at random, and interruptions (offline, free; ten minutes). SEED=number
	@seed=$${SEED:-$$(date +%s)}; echo "seed $$seed; again with: make fuzz SEED=$$seed"; \
		HIGHWATER_FUZZ_RUNS=400 HIGHWATER_FUZZ_SEED=$$seed $(BIN)/python -m pytest -q --numprocesses 2 --timeout 3600 tests/fuzz

.PHONY: acceptance
acceptance: setup ## Deploy small tables, check and measure what is promised, delete everything: on a local cloud (offline, free; eight minutes), or in an account with PROFILE, ACCOUNT; REGION, PARTS, MOST_USD, COST=yes, CLEAN=yes
	@$(BIN)/python -m acceptance $(if $(PROFILE),--profile '$(PROFILE)') $(if $(ACCOUNT),--account '$(ACCOUNT)') \
		$(if $(REGION),--region '$(REGION)') $(if $(PARTS),--parts '$(PARTS)') $(if $(MOST_USD),--most-usd '$(MOST_USD)') \
		$(if $(filter-out no,$(COST)),--cost) $(if $(filter-out no,$(CLEAN)),--clean)

.PHONY: conformance
conformance: setup #+ The public suite of DynamoDB's behaviour, and this project's tests of capacity, on a local cloud (offline, free; a minute). CONFORMANCE=folder of the suite's checkout; REGION, PLAIN=yes, ARGS="tests/tier3 tests/capacity"
	@$(BIN)/python -m tests.conformance.suite '$(CONFORMANCE)' $(if $(REGION),--region '$(REGION)') \
		$(if $(filter-out no,$(PLAIN)),--plain) --arguments='$(ARGS)'

.PHONY: docs
docs: setup ## The pages of docs/ and the reference of all names as a site in build/docs (offline, free; half a minute)
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/docs
	@echo build/docs/index.html

.PHONY: docs-versions
docs-versions: setup #+ The site with a folder for each released version in build/site (offline, free; half a minute a version)
	@$(BIN)/python docs/versions.py build/site

.PHONY: docs-links
docs-links: setup #+ Whether the links of the pages that lead out of the repository still lead somewhere (online, free; a minute)
	@$(BIN)/python -m sphinx -q -b linkcheck -d build/doctrees-links docs build/links

.PHONY: wheels
wheels: setup ## Build the four distributions into dist/
	@for part in . lambda_src lab_src local_src; do $(BIN)/python -m build --wheel --no-isolation --outdir dist $$part > /dev/null || exit 1; done
	@ls dist/*.whl

.PHONY: release-check
release-check: setup $(RELEASE_READY) #+ All of a release but publishing it: names, dist/, SBOMs, the quickstart from the wheels, notes (online, free; three minutes). TAG=v0.2.0
	@$(BIN)/python -m release.check $(if $(TAG),--tag "$$TAG")

.PHONY: release-publish
release-publish: #+ The release's page on the code host, of what `make release-check` has made; needs gh, its token and TAG=v0.2.0
	@gh release create "$$TAG" dist/* build/sbom/* --title "$$TAG" --notes-file build/release-notes.md --verify-tag

.PHONY: public-api
public-api: setup #+ Write down the public names and their signatures, in release/public_api.txt (offline, free)
	@$(BIN)/python -m release.names --write

.PHONY: licences
licences: setup $(RELEASE_READY) #+ Write down the licences of all dependencies, in docs/licences.md (offline, free)
	@$(BIN)/python -m release.licences --write

.PHONY: workflows
workflows: setup #+ Check the workflows of .github/ and the action with zizmor (offline, free; seconds)
	@$(BIN)/zizmor --offline --quiet --persona pedantic .github action.yml

.PHONY: lock
lock: setup $(RELEASE_READY) #+ Compile the three lock files anew from the groups of pyproject.toml (online, free)
	@$(BIN)/python -m release.locks --write

.PHONY: lock-check
lock-check: setup $(RELEASE_READY) #+ Whether the locks fit their groups, what is old, and what is known to be vulnerable (online, free; a minute)
	@$(BIN)/python -m release.locks

.PHONY: clean
clean: ## Remove everything that can be made again
	@left=$$(grep -L '"profile": ""' build/acceptance/HwAccept*/ledger.json 2>/dev/null || true); test -z "$$left" || \
		{ echo "make: runs in accounts may have left something, and only" $$left "knows what; first: make acceptance CLEAN=yes" >&2; exit 2; }
	@rm -rf $(VENV) $(LOCAL_VENV) node_modules build dist cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help-all
help-all: ## Show all targets
	@awk -F ':.*#[#+] ' '/^[a-z-]+:.*#[#+] / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(PYTHON_READY) $(LOCAL_READY) $(RELEASE_READY) $(NODE_READY): | tools

$(PYTHON_READY): requirements-dev.txt pyproject.toml lambda_src/pyproject.toml lab_src/pyproject.toml
	@$(PYTHON) -c 'import sys; print("")' > /dev/null 2>&1 || { echo "make: $(PYTHON) is no Python that runs; choose one with make PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: Python 3.11 or newer is needed, got %d.%d; choose one with make PYTHON=..." % sys.version_info[:2])'
	@echo "setting up $(VENV): packages (a minute or two, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . --editable lambda_src --editable lab_src
	@touch $@

$(LOCAL_READY): requirements-local.txt lambda_src/pyproject.toml lab_src/pyproject.toml local_src/pyproject.toml $(PYTHON_READY)
	@echo "setting up $(LOCAL_VENV): the local cloud's packages (half a minute, once)"
	@$(PYTHON) -m venv $(LOCAL_VENV)
	@$(LOCAL_VENV)/bin/python -m pip install --quiet --require-hashes --requirement requirements-local.txt
	@$(LOCAL_VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable lambda_src --editable lab_src --editable local_src
	@ln -sf ../../$(LOCAL_VENV)/bin/highwater-local $(BIN)/highwater-local
	@touch $@

$(RELEASE_READY): requirements-release.txt $(PYTHON_READY)
	@echo "setting up $(RELEASE_VENV): what makes locks and reads them (half a minute, once)"
	@$(PYTHON) -m venv $(RELEASE_VENV)
	@$(RELEASE_VENV)/bin/python -m pip install --quiet --require-hashes --requirement requirements-release.txt
	@touch $@

$(NODE_READY): package.json package-lock.json
	@node -e 'if (+process.versions.node.split(".")[0] < 20) { console.error("make: Node 22 or newer is needed (20 works), got " + process.version); process.exit(1) }'
	@echo "setting up node_modules: the CDK CLI, and an SDK and versions of Python for tests"
	@npm ci --silent --no-audit --no-fund
	@touch $@
