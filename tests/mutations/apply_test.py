"""Each patch of tests/mutations still applies, so that scripts/mutations can break the product."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    patches = sorted((ROOT / "tests/mutations").glob("*.patch"))
    assert len(patches) >= 6, "three of the ledger, one of the fencing, two of the recovery"
    stale = []
    for path in patches:
        done = subprocess.run(["git", "apply", "--check", path], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            stale.append(f"{path.name} does not apply:\n{done.stdout}")
    print("\n".join(stale) or f"{len(patches)} patches apply")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
