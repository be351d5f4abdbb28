# Two commands matter: `make run` and `make test`. Both set up what they need; see docs/operations.md.
PYTHON ?= $(shell command -v python3.11 || command -v python3)

.PHONY: run test test-fast fmt bench-safety bench-judge bench-chat install python pins clean clean-cache

run test test-fast fmt bench-safety bench-judge bench-chat install python clean-cache:
	@$(if $(PYTHON),,$(error Python 3.11 is needed and no python3 is on the path: install python3.11 and python3.11-venv))exec $(PYTHON) -m deploy.local $@

pins:
	@"$$($(PYTHON) -m deploy.local python)" -m deploy.local.pins

# What this checkout made: not the data in var/, not the shared cache.
clean:
	rm -rf frontend/node_modules frontend/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +
