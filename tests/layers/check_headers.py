#!/usr/bin/env python3
"""Fails where a header does not compile alone, or not beside the others.

    check_headers.py COMPILER                  all of the product's headers together
    check_headers.py COMPILER --alone          each of them by itself, which takes minutes
    check_headers.py COMPILER --alone FILE...  only these by themselves

A header that compiles by itself needs nobody who knows what to include before it. All headers as one
source, in order and in the opposite order, show that no two of them clash. Headers of CUDA's compiler
and of one instruction set have their own flags and are left out.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = ["kernels/cuda", "kernels/cpu", "tests"]


def headers():
    names = [path.relative_to(ROOT).as_posix() for path in check_layers.sources(ROOT)
             if path.suffix == ".h"]
    return [name for name in names if not check_layers.inside(name, LEFT_OUT)]


def errors_of(compiler, names):
    """What the compiler says of a source that includes `names`, or nothing."""
    source = "".join(f'#include "{name}"\n' for name in names)
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-w", "-I", ROOT, '-DTANDEM_VERSION=""',
         "-x", "c++", "-"],
        input=source, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


def main():
    if len(sys.argv) < 2 or sys.argv[2:3] not in ([], ["--alone"]):
        print(__doc__)
        return 64
    every, named = headers(), sys.argv[3:]
    alone = [name for name in every if not named or name in named] if sys.argv[2:] else []
    sources = [[name] for name in alone] if sys.argv[2:] else [every, every[::-1]]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for names, errors in zip(sources, pool.map(lambda s: errors_of(sys.argv[1], s), sources)):
            if errors:
                failed += 1
                print(f"{names[0] if len(names) == 1 else 'all headers together'}:\n{errors}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
