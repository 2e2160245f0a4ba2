# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINE ?= $(shell command -v nvidia-smi >/dev/null 2>&1 && echo gpu || echo cpu)
LOCK := requirements/$(ENGINE).lock
# uv trusts what the system trusts, as pip does.
export UV_SYSTEM_CERTS := 1
export UV_NATIVE_TLS := 1
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu
READY := $(VENV)/.ready-$(ENGINE)

.PHONY: setup demo test test-all check browser lock lock-check

setup: $(READY)

$(READY): $(LOCK) pyproject.toml
	@echo "==> making $(VENV) from $(LOCK) (a few minutes, once)"
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 13) else f"Pawl needs Python 3.11 or 3.12, this is {v.major}.{v.minor}: run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@# The +cpu build of torch has no one source everywhere: pip's own sources first, then PyTorch's.
	@if grep -q '^torch==.*+cpu' $(LOCK); then \
	  torch=$$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' $(LOCK)); echo "==> $$torch"; \
	  $(BIN)/pip install --quiet --no-deps "$$torch" 2>/dev/null || \
	  $(BIN)/pip install --quiet --no-deps --index-url $(TORCH_CPU_INDEX) "$$torch"; fi
	@# Hashes hold for all that every source serves alike, so for all but that torch.
	@awk '/^torch==.*\+cpu/ {skip = 1; next} /^[^ ]/ {skip = 0} !skip' $(LOCK) > $(VENV)/hashed.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r $(VENV)/hashed.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@echo "==> set-up took $$(( $$(date +%s) - $$(stat -c %Y $(VENV)/pyvenv.cfg) )) s"
	@touch $@

lock: ## write both lock files anew from requirements/*.in; UPGRADE=--upgrade also moves versions
	$(BIN)/uv pip compile requirements/cpu.in --override requirements/overrides-cpu.txt $(TORCH_SOURCE) \
	  --python-version 3.11 --generate-hashes --no-header --no-annotate $(UPGRADE) -o requirements/cpu.lock
	$(BIN)/uv pip compile requirements/gpu.in --override requirements/overrides-gpu.txt \
	  --python-version 3.11 --generate-hashes --no-header --no-annotate $(UPGRADE) -o requirements/gpu.lock

DEMO ?= pawl-demo
demo: setup ## the main job on a small real RL run, then the app; APP=0 returns at the end, DEMO=folder
	$(BIN)/pawl demo $(DEMO) $(if $(filter 0,$(APP)),--no-app)

test: setup browser ## the tests that belong to every change; says what it skipped and why
	$(BIN)/python -m pytest -m "not slow" $(PYTEST)

test-all: setup browser ## those that take minutes too
	$(BIN)/python -m pytest $(PYTEST)

check: setup ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

browser: ## Chromium for the browser tests; without it they say that they were skipped
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || \
	  { if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	      echo "==> installing Chromium from the system's packages"; \
	      (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium) >/dev/null 2>&1 \
	        || echo "==> no Chromium to be had: browser tests will be skipped"; \
	    else echo "==> no Chromium here: browser tests will be skipped"; fi; }

lock-check: setup ## the GPU lock holds together: every pin is to be had and none contradicts another
	@sed '/^ *--hash/d; s/ *\\$$//' requirements/gpu.lock > $(VENV)/gpu.pins
	$(BIN)/uv pip compile --quiet --python-version 3.11 --no-header --no-annotate \
	  --override requirements/overrides-gpu.txt -o $(VENV)/gpu.resolved \
	  $(VENV)/gpu.pins requirements/gpu.in
	@diff $(VENV)/gpu.pins $(VENV)/gpu.resolved && echo "requirements/gpu.lock resolves"
