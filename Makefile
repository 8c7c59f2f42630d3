# The animal store's commands. `make` alone lists them.
# Needs: make, git and one CPython >= 3.11 with venv; everything else is installed into .venv and .tools from lock files.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

UV := .tools/uv/bin/uv
# Never download an interpreter: the one that `scripts/find-python` names is used for every environment.
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := .venv
export PYTHON

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# -- environments ------------------------------------------------------------------------------------------------------

$(UV): locks/uv.txt scripts/find-python
	@echo "installing uv (once)"
	@python=$$(scripts/find-python) && rm -rf .tools/uv && "$$python" -m venv .tools/uv
	@.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/uv.txt || \
	  { rm -rf .tools/uv; echo "Cannot install uv: is a Python package registry reachable (see the error above)?" >&2; exit 1; }
	@touch $@

.venv/.installed: $(UV) uv.lock pyproject.toml
	@echo "installing the development environment into .venv"
	@python=$$(scripts/find-python); $(UV) sync --quiet --locked --python "$$python" || \
	  { echo "Cannot install: is a Python package registry reachable (see the error above)?" >&2; exit 1; }
	@touch $@

# One environment per tool whose pins clash with ours: locks/NAME.txt -> .tools/NAME
.tools/%/.installed: locks/%.txt $(UV)
	@echo "installing $* into .tools/$*"
	@python=$$(scripts/find-python); $(UV) venv --quiet --clear --python "$$python" .tools/$*
	@$(UV) pip install --quiet --require-hashes --python .tools/$*/bin/python -r $< || \
	  { echo "Cannot install $*: is a Python package registry reachable (see the error above)?" >&2; exit 1; }
	@touch $@

.PHONY: install
install: .venv/.installed .tools/ministack/.installed ## install what `make run` and `make test` need

# The same for npm packages: locks/NAME/package-lock.json -> .tools/NAME
.tools/%/.installed: locks/%/package.json locks/%/package-lock.json
	@echo "installing $* into .tools/$*"
	@rm -rf .tools/$* && mkdir -p .tools/$* && cp $^ .tools/$*
	@npm ci --prefix .tools/$* --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null || \
	  { echo "Cannot install $*: is an npm registry reachable (see the error above)?" >&2; exit 1; }
	@touch $@

# What ships in the layer, with hashes.
EXPORT = $(UV) export --quiet --locked --no-dev --no-emit-project --no-header --no-annotate

.PHONY: lock
lock: $(UV) ## bring every lock file up to date with pyproject.toml and locks/*.in (UPGRADE=1: newest releases)
	@$(UV) lock $(if $(UPGRADE),--upgrade)
	@for name in uv sam ministack clients pre-commit; do \
	  $(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	    $(if $(UPGRADE),--upgrade) -o locks/$$name.txt locks/$$name.in; done
	@$(EXPORT) -o layers/common/requirements.txt >/dev/null

# -- every day ---------------------------------------------------------------------------------------------------------

.PHONY: run
run: install ## serve the API on this machine (PORT=3000 DATA=.local RELOAD=1)
	@exec .venv/bin/python -m tools run

.PHONY: reset
reset: install ## empty the local store (DATA=.local)
	@exec .venv/bin/python -m tools reset

.PHONY: keys
keys: install ## API keys of the running service or a stage: make keys ARGS="issue --label bob --stage staging"
	@exec .venv/bin/python -m tools keys $(or $(ARGS),list)

# sam asks for a region and credentials even where it calls nobody.
SAM_OFFLINE := SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=eu-central-1 AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none

.PHONY: seed
seed: install ## add made-up animals to the running service or another: make seed COUNT=1000 BASE_URL=... (key: API_KEY)
	@.venv/bin/python -m tools seed --count $(or $(COUNT),100) $(ARGS)

.PHONY: export
export: install ## write all animals to stdout: make export ARGS="--format csv --status sold --output sold.csv"
	@.venv/bin/python -m tools export $(ARGS)

.PHONY: docs
docs: .venv/.installed ## write the documentation page for publishing: build/docs
	@.venv/bin/python -m tools docs

.PHONY: check
check: .venv/.installed .tools/sam/.installed ## format, lint, types: what CI asks before any test
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@$(EXPORT) | cmp -s - layers/common/requirements.txt || \
	  { echo "layers/common/requirements.txt is not in step with uv.lock: make lock" >&2; exit 1; }
	@.venv/bin/cfn-lint template.yaml
	@for lint in "" --lint; do $(SAM_OFFLINE) .tools/sam/bin/sam validate $$lint >/dev/null; done
	@scripts/lint-openapi
	@scripts/lint-workflows

.PHONY: api-changes
api-changes: .venv/.installed ## compare openapi.yaml with the last release: what would break its clients?
	@.venv/bin/python -m tools.api_changes

.PHONY: format
format: .venv/.installed ## format and mend what can be mended by machine
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .

.PHONY: test
test: install .tools/sam/.installed ## every test that this machine can run; the unit tests cover each branch that ships
	@.venv/bin/pytest tests/unit --cov
	@.venv/bin/pytest --ignore tests/unit

.PHONY: reliability
reliability: install ## faults, load and attack: nothing lost, doubled or leaked; about 10 minutes (QUICK=1: one)
	@.venv/bin/python -m tests.reliability $(if $(QUICK),--quick,--json build/reliability.json --document docs/reliability.md)

.PHONY: clients
clients: install ## the tests of generated clients, examples and the documentation page
	@.venv/bin/pytest tests/clients tests/docs

.PHONY: hooks
hooks: .tools/pre-commit/.installed ## run `make check` before every commit
	@.tools/pre-commit/bin/pre-commit install

.PHONY: audit
audit: .venv/.installed ## vulnerabilities, licences, hashes, risky code, secrets (OFFLINE=1: no advisory database)
	@OFFLINE="$(OFFLINE)" .venv/bin/python -m tools.audit

# -- AWS ---------------------------------------------------------------------------------------------------------------

.PHONY: build
build: .venv/.installed .tools/sam/.installed ## build for AWS, without Docker: arm64 (release) and x86_64 (ARCH=... for one)
	@.venv/bin/python -m tools.packaging $(ARCH)

.PHONY: rehearse
rehearse: .venv/.installed .tools/sam/.installed .tools/ministack/.installed ## try a deployment on an emulator of AWS (STAGE=staging; SERVE=1: leave it up)
	@$(MAKE) build ARCH=x86_64
	@.venv/bin/python -m tools.deployment

.PHONY: sam-local
sam-local: .venv/.installed .tools/sam/.installed .tools/ministack/.installed ## try the functions in containers, with Docker (SKIP_PULL=1: fetch no image; SERVE=1: leave it up)
	@$(MAKE) build ARCH=x86_64
	@.venv/bin/python -m tools.deployment.sam_local

.PHONY: contract
contract: install ## the contract suite against BASE_URL with API_KEY (PYTEST="-m smoke_read_only": only read)
	@CONTRACT_BASE_URL="$${BASE_URL-}" CONTRACT_API_KEY="$${API_KEY-}" CONTRACT_SECOND_API_KEY="$${SECOND_API_KEY-}" \
	  CONTRACT_EXPECTED_FAILURES="$${EXPECTED_FAILURES-}" .venv/bin/pytest tests/contract $(PYTEST)

# -- speed -------------------------------------------------------------------------------------------------------------

.PHONY: bench
bench: .tools/bench/.installed ## compare speed and size with other frameworks, on Linux (QUICK=1: cold ratio only)
	@$(MAKE) build ARCH=$(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64) >&2
	@.tools/bench/bin/python -m benchmarks $(if $(QUICK),--quick)

.PHONY: bench-lock
bench-lock: $(UV) ## bring the benchmark's lock files up to date, with the libraries that we ship at our own versions
	@$(UV) export --quiet --no-hashes --no-header --no-annotate --all-groups --no-emit-local -o .tools/constraints.txt
	@for in in locks/bench.in benchmarks/runtime.in benchmarks/peers/*/*.in; do \
	  $(UV) pip compile --quiet --python-version 3.13 --generate-hashes --no-header --no-annotate -c .tools/constraints.txt \
	    $$([[ $$in != */vendored.in ]] || echo --no-deps) $(if $(UPGRADE),--upgrade) -o $${in%.in}.txt $$in; done

.PHONY: clean
clean: ## remove what was installed and built (not .local, the local store)
	rm -rf .venv .tools .aws-sam build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
