#!/usr/bin/env python3
"""Writes docs/invariants.md from the comments that declare the invariants (LA-8 of check_layers.py).

    invariants_page.py            writes the page
    invariants_page.py --check    fails if the page is not what would be written
"""
import pathlib
import re
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/invariants.md"
HEAD = """# Invariants

Made by `tests/layers/invariants_page.py` from the headers that declare them; not for editing.

An invariant has a name, is declared by the header that keeps it, and is cited by at least one test.
The rules of the tree itself, LA-1 to LA-14, are in
[`check_layers.py`](../tests/layers/check_layers.py).
"""


def escaped(text):
    return re.sub(r"([\\|*<>_\[\]`])", r"\\\1", text)


def tests_of(root, files):
    """invariant -> the tests that cite it, as paths below tests/."""
    tests = {}
    for path in files:
        if path.is_relative_to(root / "tests"):
            for name in set(check_layers.citations(path.read_text())):
                tests.setdefault(name, []).append(path.relative_to(root / "tests").as_posix())
    return tests


def page(root):
    files = check_layers.sources(root)
    tests = tests_of(root, files)
    folders = {}
    for path in files:
        if path.is_relative_to(root / "tests") or path.suffix not in {".h", ".cuh"}:
            continue
        found = list(check_layers.declarations(path.read_text()))
        if found:
            folders.setdefault(path.parent.relative_to(root).as_posix(), []).append((path, found))
    lines = [HEAD]
    for folder, headers in folders.items():
        lines += [f"## {folder}", "", "| name | promises | tests |", "|---|---|---|"]
        for path, found in headers:
            link = f"../{path.relative_to(root).as_posix()}"
            for _, name, sentence in found:
                where = ", ".join(f"`{test}`" for test in sorted(tests.get(name, [])))
                lines.append(f"| [{name}]({link}) | {escaped(sentence)} | {where} |")
        lines.append("")
    return "\n".join(lines)


def main():
    text = page(ROOT)
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE.relative_to(ROOT)} is not what the headers say: run {pathlib.Path(__file__).name}")
            return 1
    elif sys.argv[1:]:
        print(__doc__)
        return 64
    else:
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
