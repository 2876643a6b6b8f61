"""Tests that are compiled together: which they are, and the names that one would take from another.

The tests of a group (tandem_tests in a CMakeLists.txt) are compiled several at a time. Where one
gives a constant or a type a name, in its unnamed namespace, another that uses a name of a header
would silently get that thing instead.
"""
import re

GROUP = re.compile(r"tandem_tests\(\w+[^)]*?\bFILES\s+([\w/\s]+?)(?:\s[A-Z]+\s[^)]*)?\)")
WITHOUT_TEXT = re.compile(r'//[^\n]*|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
SUITES = re.compile(r"^(?:TEST|TEST_F|TEST_P|INSTANTIATE_TEST_SUITE_P)\(\w+", re.MULTILINE)
CONSTANT = r"\b(?:constexpr|const)\b[^;=({]*?\b(k[A-Z]\w*)"
TYPE = r"(?:class|struct|enum class|enum|using) (\w+)(?= [={:]| final)"
AT_TOP = re.compile(f"^{CONSTANT}|^{TYPE}", re.MULTILINE)
ANYWHERE = re.compile(f"{CONSTANT}|{TYPE}")


def groups(root):
    """Lists of the files that are compiled together."""
    for page in sorted((root / "tests").rglob("CMakeLists.txt")):
        text = re.sub(r"#.*", "", page.read_text())
        for names in GROUP.findall(text):
            yield [page.parent / f"{name}.cc" for name in names.split()]


def names(pattern, text):
    return {name for found in pattern.findall(text) for name in found if name}


def captured(group):
    """(file, name, the other file that uses it) for each name that would be taken from another."""
    texts = {path: SUITES.sub("", WITHOUT_TEXT.sub("", path.read_text())) for path in group
             if path.exists()}
    known = {path: names(ANYWHERE, text) for path, text in texts.items()}
    for path, text in texts.items():
        for name in sorted(names(AT_TOP, text)):
            use = re.compile(rf"(?<![\w.:>]){name}\b")
            for other, its_text in texts.items():
                if other != path and name not in known[other] and use.search(its_text):
                    yield path, name, other
