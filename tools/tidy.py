"""Print the functions over sixty lines that this branch made longer, or made at all.

There is no limit on the length of a function, only a ratchet: whoever lets one grow past a screen says so
in review.  `make tidy` compares the working tree with where this branch left the main line; `make tidy
BASE=v1.2` compares with something else.
"""

import ast
import subprocess
import sys
from pathlib import Path

LIMIT = 60
ROOTS = ("src", "tests", "tools")


def git(*args: str) -> str | None:
    """What git answers, or None where it refuses."""
    done = subprocess.run(["git", *args], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def find_base(asked: str | None) -> str | None:
    """The commit to compare with: the one asked for, or where this branch left the main line."""
    if asked:
        commit = git("rev-parse", "--verify", "--quiet", f"{asked}^{{commit}}")
        if commit is None:
            raise SystemExit(f"tidy: git knows no commit called {asked}")
        return commit.strip()
    for trunk in ("origin/main", "main"):
        commit = git("merge-base", "HEAD", trunk)
        if commit is not None:
            return commit.strip()
    return None


def lengths(source: str) -> dict[str, tuple[int, int]]:
    """Every function by its dotted name: its first line, and how many lines it has."""
    found: dict[str, tuple[int, int]] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    found[name[:-1]] = child.lineno, (child.end_lineno or child.lineno) - child.lineno + 1
            walk(child, name)

    walk(ast.parse(source), "")
    return found


def grown(before: str, after: str, limit: int = LIMIT) -> list[tuple[int, str, int, int]]:
    """The functions of `after` over the limit and longer than in `before`: line, name, length then and now."""
    old = lengths(before)
    return [
        (line, name, old.get(name, (0, 0))[1], count)
        for name, (line, count) in lengths(after).items()
        if count > limit and count > old.get(name, (0, 0))[1]
    ]


def main(asked: str | None) -> int:
    base = find_base(asked)
    for path in sorted(path for root in ROOTS for path in Path(root).rglob("*.py")):
        before = (git("show", f"{base}:{path.as_posix()}") or "") if base else ""
        for line, name, then, now in grown(before, path.read_text(encoding="utf-8")):
            print(f"{path}:{line}: {name} has {now} lines" + (f", had {then}" if then else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
