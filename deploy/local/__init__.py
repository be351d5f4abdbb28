"""Everything on one machine: set-up, supervision, checks. `make run` and `make test` come in through `__main__`.

What runs before the environment exists (`launch`, `checks`, `machine`, `parts`, `pins`, `steps`, `place`, `guard`) uses
the standard library alone; the rest runs inside the environment.
"""
