#!/usr/bin/env python3
"""Packs tandem_client.py as a wheel: usage: make_wheel.py FOLDER. Prints its path.

Without any package, since a wheel is a zip file with three small records (PEP 427). The file becomes
a package of its own, since type checkers believe types only of a folder with py.typed in it (PEP 561).
The same source gives the same bytes.
"""
import base64
import hashlib
import pathlib
import re
import sys
import zipfile


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    source = pathlib.Path(__file__).with_name("tandem_client.py").read_bytes()
    version = re.search(rb'^__version__ = "([^"]+)"', source, re.M).group(1).decode()
    info = f"tandem_client-{version}.dist-info"
    files = {
        "tandem_client/__init__.py": source,
        "tandem_client/py.typed": b"",
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: tandem-client\nVersion: {version}\n"
            "Summary: A client of the HTTP API of Tandem, which post-trains language models\n"
            "Requires-Python: >=3.9\nProvides-Extra: frame\nRequires-Dist: pandas; extra == 'frame'\n"
        ).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tandem\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"tandem_client-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    print(wheel)


main()
