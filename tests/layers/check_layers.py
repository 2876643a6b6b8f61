#!/usr/bin/env python3
"""Fails where the code leaves the architecture: usage: check_layers.py [ROOT].

LA-1  a file includes only what its folder may depend on (ALLOWED);
LA-2  a third-party library is included only where it is at home (AT_HOME);
LA-3  threads, locks and sockets exist only in runtime/;
LA-4  nothing sleeps as synchronisation, tests included;
LA-5  every arithmetic source kernels/cpu/<op>.cc or kernels/cuda/<op>.cu has its contract
      kernels/ops/<op>.h;
LA-6  a header has at most 250 lines, a source at most 600, and a comment's line at most 100
      characters, since clang-format does not break comments here;
LA-7  no #ifdef: the program finds out while it runs which features a machine has;
LA-8  an invariant that a header declares is cited by a test, so that somebody proves it, and has
      a name of its own, so that it is not another's proof;
LA-9  files do not include each other in a circle. A header and the source of its name are one file
      here, so that a part can be read, and tested, without the parts that are built on it. Nor do
      folders: a room within a folder includes no file that is built on the room;
LA-10 a class with state has at most 20 fields (class_sizes.py says what counts);
LA-11 a file opens the namespace of its folder (NAMESPACES), or one within it. A type of a lower
      folder may have its fields listed (TANDEM_WIRE) in a block of its own namespace;
LA-12 no two types have one qualified name, not even in files that never meet: the linker would
      take one for the other;
LA-13 a test mirrors what it tests: tests/x/a_test.cc tests x/a.h, x/a.cc or x/a.cu. Any other says
      so in its first comment ("Tests x/b.h, x/c.h."). Tests of the whole are in WHOLE;
LA-14 a test uses no constant or type that another test of its executable defines: where it means
      one of a header with the same name, it would silently get the other (test_groups.py).
"""
import pathlib
import re
import sys

import class_sizes
import test_groups

BASE = ["runtime/base"]
DEVICE = BASE + ["runtime/device"]
ENGINES = ["runtime", "scheduler", "kernels", "actors/messages", "actors/jinja", "actors/model"]
ALLOWED = {  # folder -> folders it may include, besides itself
    "runtime/base": [],
    "runtime/device": BASE,
    "runtime/wire": BASE,
    "runtime/sqlite": BASE,
    "runtime/actor": BASE,
    "runtime/link": BASE + ["runtime/wire", "runtime/actor"],
    "runtime/payload": BASE + ["runtime/wire", "runtime/actor", "runtime/link"],
    "runtime/http": BASE + ["runtime/link"],
    "runtime/sandbox": BASE,
    "runtime/node": BASE + ["runtime/wire", "runtime/actor", "runtime/link", "runtime/sandbox"],
    "runtime/collective": DEVICE + ["runtime/link"],
    "runtime/weights": DEVICE + ["runtime/wire", "runtime/link", "runtime/collective"],
    "kernels": DEVICE,
    "scheduler": BASE,
    "actors/messages": BASE + ["runtime/wire", "runtime/actor", "runtime/node", "scheduler/fleet"],
    "actors/rank": ["runtime", "actors/messages"],
    "actors/program": ["runtime", "actors/messages", "actors/rank"],
    "actors/jinja": BASE,
    "actors/model": DEVICE + ["kernels", "actors/jinja"],
    "actors/broadcast": ["runtime", "actors/messages"],
    "actors/rollout": ENGINES,
    "actors/learner": ENGINES,
    "actors/grade": BASE,
    "actors/reward": ["runtime", "actors/messages", "actors/grade", "actors/jinja"],
    "actors/exchange": ["runtime", "scheduler", "actors/messages", "actors/exchange/state"],
    "actors/exchange/state": ["runtime", "scheduler", "actors/messages"],
    "actors/runs": ["runtime", "scheduler", "actors/messages", "actors/exchange"],
    "actors/forecast": ["runtime", "scheduler", "actors/messages", "actors/exchange",
                        "actors/rollout"],
    "actors/timeline": ["runtime", "scheduler", "actors/messages", "actors/exchange",
                        "actors/runs"],
    "actors/replay": ["runtime", "scheduler", "actors/messages", "actors/exchange", "actors/runs",
                      "actors/learner"],
    "actors/controller": ["runtime", "scheduler", "actors/messages", "actors/exchange",
                          "actors/runs"],
    "actors/api": ["runtime", "scheduler", "actors/messages", "actors/exchange", "actors/runs",
                   "actors/controller"],
    "actors/doors": ["runtime", "actors/messages"],
    "actors/data": ["runtime"],
    "actors/job": ["runtime", "scheduler", "kernels", "actors/messages", "actors/model",
                   "actors/jinja", "actors/learner", "actors/reward", "actors/rollout",
                   "actors/data"],
    "actors/translate": ["runtime", "actors/model", "actors/job"],
    "actors/launch": ["runtime"],
    "actors/cli": ["runtime", "scheduler", "kernels", "actors/messages", "actors/job",
                   "actors/data"],
    "actors/main/roles": ["runtime", "scheduler", "kernels", "actors/messages", "actors/model",
                          "actors/rank", "actors/broadcast", "actors/learner", "actors/reward",
                          "actors/rollout", "actors/exchange", "actors/runs", "actors/job"],
    "actors/main": ["runtime", "scheduler", "kernels", "actors"],
}
NAMESPACES = {  # folder -> its namespaces; of a folder that is not here, those of the one above
    "runtime/base": ["tandem", "tandem::log"],
    "runtime/device": ["tandem::device"],
    "runtime/wire": ["tandem::wire"],
    "runtime/sqlite": ["tandem::sqlite"],
    "runtime/actor": ["tandem::actor"],
    "runtime/link": ["tandem::link"],
    "runtime/payload": ["tandem::payload"],
    "runtime/http": ["tandem::http"],
    "runtime/sandbox": ["tandem::sandbox"],
    "runtime/node": ["tandem::node"],
    "runtime/collective": ["tandem::collective"],
    "runtime/weights": ["tandem::weights"],
    "kernels": ["tandem::kernels"],
    "scheduler": ["tandem::scheduler"],
    "actors/messages": ["tandem::messages"],
    "actors/rank": ["tandem::rank"],
    "actors/program": ["tandem::program", "tandem"],  # users write tandem::Program
    "actors/jinja": ["tandem::jinja"],
    "actors/model": ["tandem::model"],
    "actors/broadcast": ["tandem::broadcast"],
    "actors/rollout": ["tandem::rollout"],
    "actors/learner": ["tandem::learner"],
    "actors/grade": ["tandem::grade"],
    "actors/reward": ["tandem::reward"],
    "actors/exchange": ["tandem::exchange"],
    "actors/runs": ["tandem::runs"],
    "actors/forecast": ["tandem::forecast"],
    "actors/timeline": ["tandem::timeline"],
    "actors/replay": ["tandem::replay"],
    "actors/controller": ["tandem::controller"],
    "actors/api": ["tandem::api"],
    "actors/doors": ["tandem::doors"],
    "actors/data": ["tandem::data"],
    "actors/job": ["tandem::job"],
    "actors/translate": ["tandem::translate"],
    "actors/launch": ["tandem::launch"],
    "actors/cli": ["tandem::cli"],
    "actors/main": ["tandem::app"],
    "actors/main/roles": ["tandem::app", "tandem::job"],  # rows of the table of keys
}
CUDA = ["kernels/cuda", "runtime/device"]  # the sources of the CUDA module
AT_HOME = {  # first part of an include in <> -> folders that may use the library
    "zmq": ["runtime/link", "runtime/payload"],
    "boost": ["runtime"],
    "CLI": ["actors/cli"],
    "yaml-cpp": ["actors/job"],
    "toml++": ["actors/translate"],
    "simdjson.h": ["actors/data"],
    "sqlite3": ["runtime/sqlite"],
    "openssl": ["runtime"],
    "xxhash": ["runtime"],
    "zstd.h": ["actors/runs", "actors/data"],
    "zlib": ["actors/data", "runtime/weights"],
    "pcre2": ["actors/model", "actors/reward"],
    "utf8proc": ["actors/jinja", "actors/model"],
    "spdlog": ["runtime", "actors"],
    "cuda_runtime": CUDA,
    "cuda_bf16": CUDA,
    "cublasLt": CUDA,
    "cudnn": CUDA,
    "oneapi": [],
    "msgpack": ["runtime/wire"],
    "omp": [],
}
WHOLE = ["tests/e2e", "tests/bench", "tests/web", "tests/layers"]
FIELDS_MAX = 20
CODE = {".h", ".cc", ".cu", ".cuh"}
LINES_MAX = {".h": 250, ".cuh": 250, ".cc": 600, ".cu": 600}
COMMENT_COLUMNS = 100
INCLUDE = re.compile(r'#include ["<]([^">]+)[">]')
THREADS = re.compile(
    r"std::(jthread|thread|\w*mutex|\w*_lock|lock_guard|condition_variable\w*|async|future|promise"
    r"|\w*semaphore|latch|barrier)\b|\bpthread_(create|mutex|cond)|#include <(thread|\w*mutex|future"
    r"|condition_variable|semaphore|latch|barrier|sys/socket\.h|netinet/in\.h|sys/epoll\.h)>"
    r"|(?<![\w>])::(socket|socketpair|accept4?|bind|listen|connect)\(")
SLEEPS = re.compile(r"\bsleep_(for|until)\b|(?<![.\w])(u|nano)?sleep\(")
IFDEF = re.compile(r"\s*#\s*(ifdef|ifndef|if|elif)\b")
IFDEF_ALLOWED = {"runtime/base/check.h"}  # DCHECK is for debug builds alone
# "//   AC-1  A mailbox …": a name, two spaces and its sentence; a mere mention has no two spaces.
DECLARED = re.compile(r"//.*?\b([A-Z]{2}-\d+)  (?=\S)")
UNNUMBERED = re.compile(r"^\s*//.*?\b([A-Z]{2}-[A-Z])  (?=\S)", re.MULTILINE)
CITED = re.compile(r"\b([A-Z]{2}-\d+)\b")
TEST_NAME = re.compile(r"^TEST\w*\(\s*\w+,\s*(\w+)\s*\)", re.MULTILINE)
# Refuses_AC1, CO1TheSumIsSerial, SE_3_older_lives
IN_TEST_NAME = re.compile(r"(?:^|_)([A-Z]{2})_?(\d+)(?!\d)")
# no operators, but their parts
SHARED_ARITHMETIC = {
    "attention_bf16", "attention_bf16_backward", "attention_chunk", "backend", "table", "tile"}


TYPE = re.compile(r"(?:struct|class|union|enum class) (?:alignas\(\w+\) )?([\w:]*\w)(?=[ {]|$)"
                  r"[^;{]*(?:\{.*)?$")  # that is defined, not only declared


def inside(path, folders):
    return any(path.startswith(folder + "/") for folder in folders)


def owner(path):
    return max((folder for folder in ALLOWED if inside(path, [folder])), key=len, default=None)


def check_include(here, name, included, quoted):
    if not quoted:
        library = re.split(r"[/.]", included)[0]
        if library in AT_HOME and not inside(name, AT_HOME[library]):
            return f"LA-2: <{included}> is not at home in {pathlib.PurePath(name).parent}"
    elif owner(included) is None:
        return f"LA-1: {included} is in no layer; include from the repository root"
    elif owner(included) != here and not inside(included, ALLOWED[here]):
        return f"LA-1: {here} may not include {included}"
    return None


def check_product_line(here, name, line):
    if match := INCLUDE.match(line):
        if error := check_include(here, name, match[1], '"' in line):
            yield error
    code = line.split("//")[0]
    if not inside(here + "/", ["runtime"]) and (match := THREADS.search(code)):
        yield f"LA-3: {match[0].strip()} outside runtime/"
    if IFDEF.match(line) and name not in IFDEF_ALLOWED:
        yield f"LA-7: {line.strip()}"


def check_file(root, path):
    name = path.relative_to(root).as_posix()
    product = not name.startswith("tests/")
    here = owner(name) if product else "tests"
    if here is None:
        yield f"{name}: LA-1: its folder is in no layer"
        return
    text = path.read_text()
    if product:
        yield from check_classes(name, text)
        yield from check_namespaces(name, text)
    lines = text.splitlines()
    if len(lines) > LINES_MAX[path.suffix]:
        yield f"{name}: LA-6: {len(lines)} lines, more than {LINES_MAX[path.suffix]}"
    for number, line in enumerate(lines, 1):
        errors = list(check_product_line(here, name, line)) if product else []
        if line.lstrip().startswith("//") and len(line) > COMMENT_COLUMNS:
            errors.append(f"LA-6: a comment of {len(line)} characters, more than {COMMENT_COLUMNS}")
        if match := SLEEPS.search(line.split("//")[0]):
            errors.append(f"LA-4: {match[0].strip('(')}: wait for what is meant, not for a while")
        yield from (f"{name}:{number}: {error}" for error in errors)


def check_operators(root):
    arithmetic = list((root / "kernels/cpu").glob("*.cc")) + list((root / "kernels/cuda").glob("*.cu"))
    for path in sorted(arithmetic):
        if path.stem not in SHARED_ARITHMETIC and not (
                root / "kernels/ops" / f"{path.stem}.h").exists():
            yield f"{path.relative_to(root).as_posix()}: LA-5: no kernels/ops/{path.stem}.h"


def citations(text):
    """The invariants that a test file cites: in a comment or message, or in a test's name."""
    yield from CITED.findall(text)
    for name in TEST_NAME.findall(text):
        yield from (f"{letters}-{number}" for letters, number in IN_TEST_NAME.findall(name))


def declarations(text):
    """(line, name, sentence) of each invariant that a header declares: the comment's text up to the
    next name, or to a line that stands no further right."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        found = list(DECLARED.finditer(line))
        for match, after in zip(found, found[1:] + [None]):
            words = [line[match.end():after.start(1) if after else None]]
            for more in lines[number:] if not after else []:
                indent = re.match(r"\s*//\s*(?=\S)", more)
                if not indent or DECLARED.search(more) or indent.end() <= match.start(1):
                    break
                words.append(more[indent.end():])
            yield number, match[1], " ".join(word.strip() for word in words)


def check_invariants(root, files):
    tests = [path for path in files if path.is_relative_to(root / "tests")]
    cited = {name for path in tests for name in citations(path.read_text())}
    declared = {}
    for path in files:
        if path.suffix not in {".h", ".cuh"}:
            continue
        text = path.read_text()
        for match in UNNUMBERED.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            yield f"{path.relative_to(root)}:{number}: LA-8: {match[1]} has no number"
        for number, name, _ in declarations(text):
            at = f"{path.relative_to(root)}:{number}"
            if name not in cited and path not in tests:
                yield f"{at}: LA-8: no test cites {name}"
            if declared.setdefault(name, at) != at:
                yield f"{at}: LA-8: {name} is declared at {declared[name]} as well"


def circles(files):
    """The strongly connected parts of more than one node of the graph node -> nodes (Tarjan)."""
    number, low, path, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        path.append(node)
        for other in files.get(node, ()):
            if other not in number:
                visit(other)
            if other in path:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            part = path[path.index(node):]
            del path[len(path) - len(part):]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(files):
        if node not in number:
            visit(node)
    return found


def check_circles(root, files):
    stems, folders = {}, {}
    for path in files:
        name = path.relative_to(root).as_posix()
        if inside(name, ["tests"]):
            continue
        included = [match[1] for match in map(INCLUDE.match, path.read_text().splitlines())
                    if match and '"' in match[0]]
        for graph, cut in [(stems, "."), (folders, "/")]:
            node = name.rpartition(cut)[0]
            graph.setdefault(node, set()).update({other.rpartition(cut)[0] for other in included} - {node})
    for graph in (stems, folders):
        for part in circles({node: sorted(others & graph.keys()) for node, others in graph.items()}):
            yield f"{part[0]}: LA-9: in a circle with {', '.join(part[1:])}"


def check_classes(name, text):
    for found in class_sizes.class_sizes(text):
        if found.has_state and found.fields > FIELDS_MAX:
            yield (f"{name}:{found.line}: LA-10: {found.name} has {found.fields} fields, "
                   f"more than {FIELDS_MAX}")


def namespaces(text):
    """(number of the first line, name, lines) of each block of a named namespace in column 0."""
    opened = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"(?:inline )?namespace ([\w:]+) \{", line)
        if match and f"}}  // namespace {match[1]}\n" in text:  # others declare foreign names
            opened.append((number, match[1], []))
        elif opened and line.startswith(f"}}  // namespace {opened[-1][1]}"):
            number, name, lines = opened.pop()
            yield number, "::".join([outer for _, outer, _ in opened] + [name]), lines
        for _, _, lines in opened[-1:]:
            lines.append((number, line))


def check_namespaces(name, text):
    folder = max((f for f in NAMESPACES if inside(name, [f])), key=len, default=None)
    if folder is None:
        yield f"{name}: LA-11: its folder has no row in NAMESPACES"
        return
    for number, namespace, lines in namespaces(text):
        fields = all(re.match(r"\s|TANDEM_WIRE|namespace |//|$", line) for _, line in lines)
        at_home = any(namespace == home or (home != "tandem" and namespace.startswith(home + "::"))
                      for home in NAMESPACES[folder])
        if not fields and not at_home:
            yield f"{name}:{number}: LA-11: {namespace} in {folder}"


def types(text):
    """(line, qualified name) of each type that a file defines in a named namespace."""
    anonymous = False
    hidden = set()
    for number, line in enumerate(text.splitlines(), 1):
        anonymous = line == "namespace {" or (anonymous and line != "}  // namespace")
        if anonymous:
            hidden.add(number)
    for _, namespace, lines in namespaces(text):
        for number, line in lines:
            match = TYPE.match(line)
            # Each instruction set is a namespace of its own, with one file of several.
            if match and number not in hidden and "TANDEM_CPU_ISA" not in namespace:
                yield number, f"{namespace}::{match[1]}"


def check_names(root, files):
    defined = {}
    for path in files:
        if path.is_relative_to(root / "tests"):
            continue
        for number, name in types(path.read_text()):
            at = f"{path.relative_to(root).as_posix()}:{number}"
            if defined.setdefault(name, at) != at:
                yield f"{at}: LA-12: {name} is defined at {defined[name]} as well"


def sources(root):
    """The files of code below root, in order."""
    return [path for top in ("runtime", "kernels", "scheduler", "actors", "tests")
            for path in sorted((root / top).rglob("*")) if path.suffix in CODE]


TESTS = re.compile(r"(?<!\w)Tests ((?:[\w/]+\.\w+(?:,\s(?://\s)?)?)+)\.$", re.MULTILINE)


def check_mirrors(root, files):
    for path in files:
        name = path.relative_to(root).as_posix()
        if not name.endswith("_test.cc") or not inside(name, ["tests"]) or inside(name, WHOLE):
            continue
        stem = root / name[len("tests/"):-len("_test.cc")]
        if any(stem.with_suffix(suffix).exists() for suffix in CODE):
            continue
        comment = re.match(r"(?://.*\n)*", path.read_text())[0]
        said = TESTS.search(comment)
        tested = re.findall(r"[\w/]+\.\w+", said[1]) if said else []
        for missing in [file for file in tested if not (root / file).exists()]:
            yield f"{name}: LA-13: it says that it tests {missing}, which is not there"
        if not tested:
            yield f"{name}: LA-13: it mirrors no file, and does not say which it tests"


def check_test_groups(root):
    for group in test_groups.groups(root):
        for path, name, other in test_groups.captured(group):
            yield (f"{path.relative_to(root).as_posix()}: LA-14: {other.name} is compiled with it "
                   f"and uses {name}: give it another name here")


def check(root):
    """All errors of the tree at root, as lines of text."""
    files = sources(root)
    errors = [error for path in files for error in check_file(root, path)]
    return (errors + list(check_operators(root)) + list(check_invariants(root, files))
            + list(check_circles(root, files)) + list(check_names(root, files))
            + list(check_mirrors(root, files)) + list(check_test_groups(root)))


def main():
    default = pathlib.Path(__file__).resolve().parents[2]
    errors = check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
