#!/usr/bin/env python3
"""Writes the web page as a C++ source: usage: embed.py DYGRAPHS_FOLDER LICENCE OUT.cc

The files of this folder, dygraphs' and its licence become string literals with content type, strong
ETag and, where that saves a tenth or more, a gzip form. tests/web/fake_api.py serves the same table.
"""
import dataclasses
import functools
import gzip
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
DYGRAPHS = pathlib.Path("/usr/share/javascript/dygraphs")
LICENCE = pathlib.Path("/usr/share/doc/libjs-dygraphs/copyright")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8"}
PAGES = {"index.html": "/", "unauthorized.html": "/unauthorized"}
LICENCE_HEAD = b"""This page plots with dygraphs, by Debian's package libjs-dygraphs. Its licence:

"""


@dataclasses.dataclass
class Asset:
    path: str
    content: bytes

    @property
    def content_type(self):
        return TYPES[pathlib.PurePath(self.path).suffix or ".html"]

    @functools.cached_property
    def packed(self):
        packed = gzip.compress(self.content, 9, mtime=0)
        return packed if len(packed) < 0.9 * len(self.content) else b""

    @property
    def etag(self):
        return '"' + hashlib.sha256(self.content).hexdigest()[:32] + '"'


def assets(dygraphs=DYGRAPHS, licence=LICENCE):
    own = [Asset(PAGES.get(file.name, "/assets/" + file.name), file.read_bytes())
           for file in sorted(HERE.iterdir()) if file.suffix in (".html", ".css", ".js")]
    script = (dygraphs / "dygraph.min.js").read_bytes()
    script = b"\n".join(line for line in script.split(b"\n")
                        if not line.startswith(b"//# sourceMappingURL"))
    style = (dygraphs / "dygraph.min.css").read_bytes().split(b"/*# sourceMappingURL")[0]
    return own + [Asset("/assets/dygraph.js", script), Asset("/assets/dygraph.css", style),
                  Asset("/licences.txt", LICENCE_HEAD + licence.read_bytes())]


@functools.lru_cache(maxsize=1)
def assets_by_path():
    return {asset.path: asset for asset in assets()}


def literal(content):
    """The bytes as C++ string literals, a line for each 64; octal escapes end by themselves."""
    lines = ["".join(f"\\{byte:03o}" if not 32 <= byte < 127 or byte in b'"\\?' else chr(byte)
                     for byte in content[i:i + 64]) for i in range(0, len(content), 64)]
    return "\n      ".join(f'"{line}"' for line in lines or [""]) + "sv"


def source(table):
    entries = [f"""    {{"{one.path}"sv, "{one.content_type}"sv, R"({one.etag})"sv,
      {literal(one.content)},
      {literal(one.packed)}}},""" for one in table]
    return f"""// Written by actors/api/web/embed.py.
#include "actors/api/web_page.h"

namespace tandem::api {{
namespace {{

using namespace std::string_view_literals;

constexpr WebAsset kAssets[] = {{
{chr(10).join(entries)}
}};

}}  // namespace

std::span<const WebAsset> web_assets() {{ return kAssets; }}

}}  // namespace tandem::api
"""


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    dygraphs, licence, out = map(pathlib.Path, sys.argv[1:])
    out.write_text(source(assets(dygraphs, licence)))


if __name__ == "__main__":
    main()
