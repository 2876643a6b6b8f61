#!/usr/bin/env python3
"""docs/guides/add.md lists, for each kind of thing, exactly the files that name one of the kind."""
import pathlib
import re
import unittest

import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guides/add.md"
BUILD = ["CMakeLists.txt", "operators.cmake"]
# kind -> the most files that one of the kind may take, besides its own
MOST = {"A transport of weights": 4, "A type of reward": 4, "A loss": 5,
        "An estimator of advantages": 2, "A family of models": 2, "A verb of the command line": 2,
        "A role": 10}
OWN_MOST = 12  # files of its own
# These speak of other frameworks in their words, which may be ours: they count for the kinds that
# list one of them.
TRANSLATED = "actors/translate/"


def code():
    """The product's code without its comments: path -> text."""
    files = [path for path in check_layers.sources(ROOT)
             if not path.is_relative_to(ROOT / "tests")]
    for top in ("runtime", "kernels", "scheduler", "actors"):
        files += [path for path in (ROOT / top).rglob("*") if path.name in BUILD]
    return {path.relative_to(ROOT).as_posix(): re.sub(r"//.*", "", path.read_text())
            for path in files}


def kinds():
    """(kind, pattern, {file: entry}, rows, rows above "Its own:") of each section of the page."""
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| `([^`]+)` \|[^|]*\| `([^`]+)` \|$", section, re.MULTILINE)
        found_by = re.search(r"^Found by: `([^`]+)`", section, re.MULTILINE)
        yield (section.split("\n")[0], found_by and found_by[1], dict(rows),
               section.count("\n| `"), section.split("\nIts own:\n")[0].count("\n| `"))


class AddGuide(unittest.TestCase):
    def test_each_file_is_there_and_holds_its_entry(self):
        for kind, pattern, files, rows, _ in kinds():
            self.assertTrue(pattern, f"{kind}: no `Found by`")
            self.assertEqual(len(files), rows, f"{kind}: a row that is not read")
            self.assertTrue(files, kind)
            for file, entry in files.items():
                self.assertTrue((ROOT / file).exists(), f"{kind}: {file}")
                self.assertTrue(entry in (ROOT / file).read_text(), f"{kind}: {entry} in {file}")

    def test_no_file_is_missing(self):
        texts = code()
        for kind, pattern, files, *_ in kinds():
            translates = any(file.startswith(TRANSLATED) for file in files)
            found = {file for file, text in texts.items() if re.search(pattern, text)
                     and (translates or not file.startswith(TRANSLATED))}
            self.assertTrue(found, kind)
            self.assertEqual(found - files.keys(), set(), kind)

    def test_a_kind_takes_no_more_files_than_it_may(self):
        touched = {kind: (rows, above) for kind, _, _, rows, above in kinds()}
        for kind, most in MOST.items():
            rows, above = touched[kind]
            self.assertLessEqual(above, most, kind)
            self.assertLessEqual(rows - above, OWN_MOST, kind)


if __name__ == "__main__":
    unittest.main()
