"""Counts the fields of the classes in a C++ source, by its text alone.

A class has state if one of its fields is hidden, or if a member function may change them: one that
is neither const nor static, and no constructor, destructor or operator. A struct of public values
is plain data, whatever its const functions compute from it. Pointers to functions are not counted,
so that a table of functions has no fields.
"""
import re
from typing import NamedTuple

TYPE = re.compile(r"\b(class|struct|union)\s+(?:alignas\s*\([^)]*\)\s*)?([A-Za-z_][\w:]*)\s*(?:final\s*)?"
                  r"(?::(?!:)[^{;()]*)?\{")
LABEL = re.compile(r"\s*(public|protected|private)\s*:(?!:)")
NO_FIELD = re.compile(r"(using|typedef|friend|static|inline|extern|enum|class|struct|union|template"
                      r"|constexpr)\b")
NESTED_TYPE = re.compile(r"\s*(?:template\b[^{]*)?(enum|class|struct|union)\b")
LITERAL = r'"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])*\''
REMARK = re.compile(r"//[^\n]*|/\*.*?\*/|" + LITERAL, re.DOTALL)
RAW = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TEMPLATE_ARGUMENTS = re.compile(r"<[^<>;{}]*>")


class ClassSize(NamedTuple):
    name: str
    line: int
    fields: int
    has_state: bool


def without_remarks(text):
    """The text without comments, literals and directives; its lines keep their numbers."""
    def lines_of(match):
        return ("0" if match[0][0] in "\"'R" else " ") + "\n" * match[0].count("\n")
    text = RAW.sub(lines_of, text)
    return DIRECTIVE.sub(lines_of, REMARK.sub(lines_of, text))


def end_of_block(text, start):
    """The place behind the braces that open at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at + 1
    return len(text)


def without_templates(text):
    """A declaration without the arguments of its templates, which may hold commas and parentheses."""
    text = re.sub(r"\balignas\s*\([^)]*\)|->|operator\s*[<>=!+\-*/%&|^~\[\]]+", " ", text)
    while (shorter := TEMPLATE_ARGUMENTS.sub("", text)) != text:
        text = shorter
    return text


def members(body):
    """The declarations of a class, each without what is in its braces."""
    said, at = "", 0
    while at < len(body):
        if body[at] == ";":
            yield said
            said, at = "", at + 1
        elif body[at] == "{":
            at = end_of_block(body, at)
            said = LABEL.sub("", said) if NESTED_TYPE.match(LABEL.sub("", said)) else said
            is_function = "(" in without_templates(said) and not NESTED_TYPE.match(said)
            said += "{}"
            # Behind a function's body there is no semicolon; behind a member's initialiser in a
            # constructor there is a comma, or the body.
            if is_function and body[at:].lstrip()[:1] not in (",", "{", ";"):
                yield said
                said = ""
        else:
            said += body[at]
            at += 1


def behind_parameters(declaration):
    """The part of a function's declaration behind its parameters: "const override"."""
    depth, start = 0, declaration.index("(")
    for at in range(start, len(declaration)):
        depth += (declaration[at] == "(") - (declaration[at] == ")")
        if depth == 0:
            return declaration[at + 1:]
    return ""


def may_change(function, name):
    """Whether a member function of the class `name`, which is not static, may change its fields."""
    if re.match(r"(?:[\w\s]*\s)?~?" + re.escape(name) + r"\s*\(", function) or re.search(
            r"\boperator\b", function):
        return False
    return not re.match(r"\s*(noexcept\s*)?(&\s*)?const\b", behind_parameters(function))


def size_of(name, kind, body):
    """(fields, has_state) of a class."""
    fields, hidden, changes = 0, False, False
    access = "private" if kind == "class" else "public"
    for said in members(body):
        while match := LABEL.match(said):
            access, said = match[1], said[match.end():]
        said = said.strip()
        is_operator = re.search(r"\boperator\b", said)
        said = without_templates(said).strip()
        if not said or NO_FIELD.match(said) or is_operator or re.search(r"\(\s*\*", said):
            continue
        declarator = re.split(r"[={]", said, maxsplit=1)[0]
        if "(" in declarator:
            changes = changes or may_change(said, name.rpartition("::")[2])
        else:
            fields += 1 + re.sub(r"=[^,]*|\{\}", "", said).count(",")
            hidden = hidden or access != "public"
    return fields, hidden or changes


def class_sizes(text):
    """Every class of a source, nested ones too."""
    text = without_remarks(text)
    for match in TYPE.finditer(text):
        end = end_of_block(text, match.end() - 1)
        fields, has_state = size_of(match[2], match[1], text[match.end():end - 1])
        yield ClassSize(match[2], text.count("\n", 0, match.start()) + 1, fields, has_state)
