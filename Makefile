# `make` without a target lists the animal store's commands. The commands need make 3.81 or newer, git, and CPython 3.11
# to 3.14 (3.13 to build for Lambda) with venv. They install Python and npm packages from lock files into .venv, .tools
# and .aws-sam.

# Bash's options are in SHELL, because make 3.81 (macOS) ignores .SHELLFLAGS. With -e and pipefail, a recipe stops after
# a failed command. With -p, bash ignores the user's BASH_ENV, CDPATH, shell options and shell functions.
SHELL := /bin/bash -p -eu -o pipefail
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help install run sam-local check check-templates check-python check-workflows format quick \
  test test-slow test-all contract lock upgrade build rehearse first-flight starter bench

# Variables that the user has set for git, pip, uv, pytest and the like do not reach the recipes. PASSED_ON lists
# the exceptions, such as the variables that name package indexes and proxies.
PASSED_ON := PYTEST_XDIST_AUTO_NUM_WORKERS PYTHON PYTHONBREAKPOINT GIT_AUTHOR_% GIT_COMMITTER_% GIT_CONFIG_% GIT_SSL_% \
  PIP_CERT PIP_CLIENT_CERT PIP_CONFIG_FILE PIP_DEFAULT_TIMEOUT PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_INDEX_URL \
  PIP_KEYRING_PROVIDER PIP_NO_INDEX PIP_PROXY PIP_RETRIES PIP_TRUSTED_HOST UV_CACHE_DIR UV_CONFIG_FILE UV_DEFAULT_INDEX \
  UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_HTTP_% UV_INDEX% UV_INSECURE_HOST UV_KEYRING_PROVIDER UV_NO_DEV UV_NO_INDEX \
  UV_OFFLINE UV_SYSTEM_CERTS
unexport $(filter-out $(PASSED_ON),$(filter \
  COVERAGE_% GIT_% MYPY% PIP_% POSIXLY_CORRECT PYTEST_% PYTHON% RUFF_% SAM_% UV_% VIRTUAL_ENV,$(.VARIABLES)))

UV := .tools/uv/bin/uv
# This command fails if a lock file is stale. It ignores the user's settings: with another package index, a fresh file
# would look stale.
LOCK_CHECK := env -u UV_CONFIG_FILE -u UV_DEFAULT_INDEX -u UV_INDEX_URL $(UV) lock --check --quiet --offline --no-config
# uv must not download Python: every virtual environment is made with the interpreter that `tools/find-python` prints.
export UV_PYTHON_DOWNLOADS := never
# A private certificate authority may have signed the certificate of a package registry. So uv trusts the certificate
# authorities that this machine trusts, as pip does since pip 24.2.
export UV_SYSTEM_CERTS ?= true
export NODE_EXTRA_CA_CERTS ?= $(wildcard /etc/ssl/certs/ca-certificates.crt)
export PYTHON
export SAM_CLI_TELEMETRY := 0
# If Python buffered its output, the output of the commands that it starts could appear first.
export PYTHONUNBUFFERED := 1
# If LC_ALL is C, or a locale that this machine lacks, Python 3.12 and older versions do not start in a folder such as
# `Café`.
unexport LC_ALL
ANIMAL_STORE := .venv/bin/animal-store
PYTEST_CMD := .venv/bin/python -m pytest
PYTHON_TOOLS := ministack sam zizmor
NPM_TOOLS := clients-npm dynamodb-local iam redocly spectral
NPM := $(shell command -v npm)

# `make help` lists the targets that have a comment `## ...`. A line that begins with `##` is the heading of a group.
help:
	@awk -F ':.*## ' '/^## /{print "\n" substr($$0, 4)} /^[a-z-]+:.*## /{printf "  %-12s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# If this folder is a copy, .venv runs the code of the original folder. If this folder was renamed, or .venv's
# interpreter is gone, .venv's commands do not run. In these three cases, make replaces each Python environment when a
# target needs it. (The command begins with `env`, because make 4.3 passes LC_ALL on to $(shell) in spite of
# `unexport`.)
ifneq ($(wildcard .venv/.installed),)
ifneq ($(shell env -u LC_ALL .venv/bin/python -I -c 'import tools; print(tools.ROOT)' 2>/dev/null),$(CURDIR))
UNUSABLE := .venv $(PYTHON_TOOLS:%=.tools/%)
.PHONY: $(UV)
endif
endif

# This recipe uses `pip download`, not `pip install`, because the user's settings for pip may name another folder to
# install into. The recipe deletes unusable environments last, because only uv can create them again.
$(UV): tools/locks/uv.txt tools/find-python
	@echo "installing uv (once)" >&2
	@python=$$(tools/find-python) && "$$python" -m venv --clear .tools/pip
	@.tools/pip/bin/python -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
	  --only-binary :all: --dest .tools/pip -r tools/locks/uv.txt >&2
	@.tools/pip/bin/python -m zipfile -e .tools/pip/uv-*.whl .tools/pip/wheel
	@mkdir -p $(@D) && install -m 755 .tools/pip/wheel/uv-*.data/scripts/uv $@ && rm -rf .tools/pip $(UNUSABLE)

.venv/.installed: $(UV) uv.lock pyproject.toml
	@echo "installing the development environment into .venv" >&2
	@$(LOCK_CHECK) && python=$$(tools/find-python) && $(UV) sync --quiet --frozen --python "$$python" && touch $@

install: .venv/.installed

# tools/programs/pyproject.toml says why these programs have environments of their own.
$(PYTHON_TOOLS:%=.tools/%/.installed): .tools/%/.installed: tools/programs/pyproject.toml tools/programs/uv.lock $(UV)
	@echo "installing $* into .tools/$*" >&2
	@$(LOCK_CHECK) --project tools/programs && python=$$(tools/find-python) && \
	  UV_PROJECT_ENVIRONMENT="$(CURDIR)/.tools/$*" $(UV) sync --quiet --frozen --project tools/programs --only-group $* --python "$$python" && touch $@

# Each npm tool has its own folder, .tools/NAME. Its lock file is tools/locks/NAME/package-lock.json.
$(NPM_TOOLS:%=.tools/%/.installed): .tools/%/.installed: tools/locks/%/package.json tools/locks/%/package-lock.json
	@echo "installing $* into .tools/$*" >&2
	@rm -rf .tools/new-$* && mkdir -p .tools/new-$* && cp $^ .tools/new-$*
	@npm ci --prefix .tools/new-$* --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@rm -rf .tools/$* && mv .tools/new-$* .tools/$* && touch $@

## Run the service on your machine

run: install ## serve the API (PORT=3000 DATA=.local; RELOAD=1 restarts it when functions or layers change)
ifeq ($(RELOAD),1)
	@exec .venv/bin/watchfiles '$(ANIMAL_STORE) run' functions layers
else
	@exec $(ANIMAL_STORE) run
endif

# `sam local` mounts the functions' sources into its containers. All containers use one layer, which is built for this
# machine's processor.
MACHINE := $(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64)
# The folder animal_store is a prerequisite, because its modification time changes when a module is added or removed.
.aws-sam/local/.layer: uv.lock layers/common/animal_store layers/common/animal_store/*.py tools/packaging/*.py | .venv/.installed
	@echo "building the layer for sam local" >&2
	@.venv/bin/python -m tools.packaging.layer .aws-sam/local/layer $(MACHINE)
	@touch $@

sam-local: install .tools/sam/.installed .aws-sam/local/.layer ## serve the API with `sam local start-api`, in containers (PORT=3000 DATA=.local)
	@exec $(ANIMAL_STORE) sam-local

## Check a change

check: .venv/.installed $(if $(NPM),.tools/spectral/.installed) ## check format, lint, types, templates, API document and workflows
	@# Do not add --output-sync: make would then lock stdout. If stdout is /dev/null, another process may hold the
	@# lock for a long time.
	@$(MAKE) -s -j4 check-templates check-python check-workflows
	@tools/lint-openapi

check-python:
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy

# zizmor looks for insecure settings, such as an action that is not pinned. check-jsonschema finds misspelled keys.
check-workflows: .venv/.installed .tools/zizmor/.installed
	@.tools/zizmor/bin/zizmor --offline --no-progress --quiet --strict-collection .github
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml

# SAM's own translator validates template.yaml. cfn-lint also checks the translated template, which has references that
# template.yaml lacks. For the translated template, three checks are off: W3011 and E4002 (see the Metadata of
# template.yaml), and W2001 (an unused parameter), because SAM replaces two parameters by their values.
check-templates: .venv/.installed .tools/sam/.installed
	@.tools/sam/bin/python -m tools.packaging.translate >.tools/translated.yaml
	@.venv/bin/cfn-lint template.yaml ops/bootstrap.yaml
	@.venv/bin/cfn-lint --ignore-checks W2001 W3011 E4002 -- .tools/translated.yaml

format: .venv/.installed ## format and auto-fix
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .

quick: install .tools/sam/.installed ## list most of what a new operation or field still lacks
	@$(PYTEST_CMD) -q -n auto --show-capture=no @tests/quick.txt

# A test that hangs fails after two minutes; with --max-worker-restart 0, it does not run again. With loadfile, a file's
# tests share a process, so that their fixtures start only once.
test: install .tools/sam/.installed $(if $(NPM),.tools/iam/.installed) ## run every test that is not slow
	@$(PYTEST_CMD) -n auto --dist loadfile --max-worker-restart 0 -m "not slow" \
	  -o faulthandler_timeout=120 -o faulthandler_exit_on_timeout=true \
	  $(if $(COVERAGE),--cov --cov-branch --cov-fail-under=100)

# make installs these tools before the tests start, so that a failed installation ends the run at once.
SLOW_TOOLS := clients-npm $(if $(shell command -v java),dynamodb-local)
test-slow: install .tools/sam/.installed $(if $(NPM),$(SLOW_TOOLS:%=.tools/%/.installed))
	@$(PYTEST_CMD) -n 2 --dist loadfile -m slow

test-all: test test-slow ## run every test that this machine can run, except the rehearsal

contract: install ## run the contract suite against any implementation: make contract BASE_URL=http://127.0.0.1:3000/v1 API_KEY=... (with PYTEST="-m smoke_read_only" it changes nothing)
	@CONTRACT_BASE_URL="$${BASE_URL-}" CONTRACT_API_KEY="$${API_KEY-}" \
	  CONTRACT_EXPECTED_FAILURES="$${EXPECTED_FAILURES-}" $(PYTEST_CMD) -v tests/contract $(PYTEST)

## Dependencies

# Run `make lock` after you have changed pyproject.toml here or in tools/programs. It updates the Python lock files.
lock: $(UV)
	@$(UV) lock $(if $(UPGRADE),--upgrade)
	@$(UV) lock --project tools/programs $(if $(UPGRADE),--upgrade)
	@$(UV) pip compile --quiet --generate-hashes --no-header --no-annotate --universal --python-version 3.11 \
	  $(if $(UPGRADE),--upgrade) -o tools/locks/uv.txt tools/locks/uv.in

# `make upgrade` leaves out dynamodb-local, because its lock file was shortened by hand (see
# tools/locks/dynamodb-local/package.json).
upgrade: ## upgrade Python and npm packages (docs/recipes.md names the exceptions)
	@$(MAKE) -k lock UPGRADE=1 $(patsubst %,upgrade-%,$(filter-out dynamodb-local,$(NPM_TOOLS)))

upgrade-%:
	@names=$$(node -p "Object.keys(require('./tools/locks/$*/package.json').dependencies).map(name => name + '@latest').join(' ')") && \
	  options="--prefix tools/locks/$* --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund" && \
	  npm install $$options --save-exact $$names && npm update $$options

## For AWS (see also .venv/bin/animal-store --help, docs/deployment.md, docs/runbook.md)

build: .venv/.installed .tools/sam/.installed ## build the commit for AWS, without Docker (ARCH=arm64)
	@$(ANIMAL_STORE) build $(ARCH)

REHEARSAL = $(PYTEST_CMD) tests/rehearsal -vx --durations=0 --durations-min=1
rehearse: .venv/.installed .tools/sam/.installed .tools/ministack/.installed ## try production's deployment, or staging's (STAGE=staging), on an AWS emulator (tests/rehearsal/emulator.yaml lists what it lacks)
	@$(MAKE) build ARCH=x86_64
	@REHEARSED_STAGE="$${STAGE:-production}" $(REHEARSAL)

# `make first-flight` runs the rehearsal's steps in a real, empty AWS account. The file docs/first-flight-DATE.txt then
# has each step, durations of 1 s or more, and the problems that `check-stage` found.
first-flight: .venv/.installed .tools/sam/.installed
	@: "$${STAGE:?make first-flight STAGE=staging ALARM_EMAIL=...}" "$${ALARM_EMAIL:?who gets the alarms}"
	@$(MAKE) build ARCH=arm64
	@echo "Nobody has tried this. It may take an hour and cost a few dollars: docs/deployment.md, First flight."
	@set -o pipefail; { git log -1 --format="$$STAGE, commit %H. Cost (see Cost Explorer a day later): ..."; \
	  FIRST_FLIGHT=1 REHEARSED_STAGE="$$STAGE" $(REHEARSAL) -rP; } | tee /dev/stderr | \
	  grep -E "^($$STAGE,|tests/|! |_+ test|[0-9.]+s )" | sed -E 's/[0-9]{12}/ACCOUNT/g' >"docs/first-flight-$$(date +%F).txt"

## Copy the service, or measure its speed

starter: install ## copy this service under another name: make starter NAME=book DEST=../book-store
	@.venv/bin/python -m tools.starter "$${NAME:?for example book}" "$${DEST:?for example ../book-store}"

bench: .venv/.installed .tools/sam/.installed ## measure the speed of the last commit, on Linux with valgrind and Docker
	@$(MAKE) build ARCH=$(MACHINE)
	@PYTHONPATH=layers/common .venv/bin/python -m tests.benchmarks
