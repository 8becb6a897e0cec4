# make check: everything that must hold before a commit lands. make app: open the app.
.PHONY: app check gallery lint mutants release screenshots scripts site tests types wheel

app:
	streamlit run app.py

check: lint types scripts tests

lint:
	ruff check .
	ruff format --check .
	lint-imports --no-cache
	python -m tests.dead_code

types:
	mypy

tests:
	python -m pytest -n 2 --dist loadfile -m "slow or not slow" --jaxtyping-packages=core,beartype.beartype

scripts:
	npm ci --silent --no-audit --no-fund --prefix tests
	python -m tests.scripts

mutants:
	python -m tests.mutants

screenshots:
	python -m tests.screenshots --out build/screenshots

gallery:
	python -m data.recipes.gallery

site:
	sphinx-build -q -W --keep-going -b html docs build/site

release:
	python -m data.recipes.release $(VERSION) $(if $(DRY),--dry-run)

wheel:
	python -m build --outdir build/dist
