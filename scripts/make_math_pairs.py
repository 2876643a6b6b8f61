#!/usr/bin/env python3
"""Writes tests/golden/math_pairs.jsonl: pairs of a reference answer and a completion, whether the
completion is right, and what the package math-verify says of it; and the table in
docs/guides/rewards.md of where and why math-verify differs from that.

The pairs and the verdicts are ours: FORMS has what equals a reference and what does not. The test
of the reward `math` holds it to each. A pair on which math-verify differs must have its reason in
DIFFERENCES, or the script fails.

usage: scripts/make_math_pairs.py       (needs math-verify 0.9)
"""
import json
import logging
import pathlib
import sys

from math_verify import parse, verify

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/golden/math_pairs.jsonl"

# reference: (right completions, wrong completions)
FORMS = {
    "5": (["5", "5.0", "05", "+5", "5.", "$5$", "\\boxed{5}", "\\boxed{5.00}", "\\boxed{05}",
           "The answer is 5.", "The answer is $5$.", "So we get 2 + 3 = 5", "2+3 makes\n#### 5",
           "x = 5", "$x=5$", "\\boxed{x = 5}", "\\frac{10}{2}", "10/2", "\\boxed{\\dfrac{15}{3}}",
           "\\sqrt{25}", "\\boxed{\\sqrt{25}}", "\\boxed{5\\text{ cm}}", "5 \\text{ apples}",
           "\\boxed{5 \\,}", "\\boxed{ 5 }", "$\\boxed{5}$", "First \\boxed{4}, no: \\boxed{5}",
           "\\boxed{\\frac{5}{1}}", "**5**", "Answer: 5", "\\(5\\)", "\\[ 5 \\]", "\\$5", "$5",
           "\\boxed{\\$5}", "\\boxed{5^{1}}", "\\boxed{5\\%}", "0.5 \\times 10^{1}", "\\boxed{5^\\circ}"],
          ["6", "-5", "55", "0.5", "15", "50", "5.1", "4.999999", "", "no idea", "\\boxed{}",
           "\\boxed{\\sqrt{5}}", "10^{5}", "5\\pi", "\\boxed{5\\pi}", "\\boxed{5^2}", "x^5",
           "\\boxed{x^5}", "\\frac{5}{2}", "\\boxed{\\frac{5}{2}}", "x \\neq 5", "\\boxed{x \\neq 5}",
           "\\boxed{x > 5}", "\\boxed{x \\le 5}", "5/0", "\\boxed{5!}", "\\boxed{5i}", "\\boxed{5x}",
           "\\boxed{5e}", "\\boxed{\\log 5}", "\\boxed{\\ln(5)}", "\\boxed{2, 5}", "\\boxed{(5, 5)}",
           "\\boxed{5", "#### 6\n5 was a guess", "\\boxed{5} is wrong, \\boxed{6}", "5 million",
           "\\boxed{5 \\times 10^3}", "\\boxed{\\frac{1}{5}}", "\\boxed{5^{-1}}",
           "\\boxed{\\sqrt[3]{5}}", "\\boxed{|5|+1}", "\\boxed{-|5|}", "\\boxed{5_{8}}"]),
    "2": (["2", "\\boxed{2}", "\\frac{4}{2}", "\\sqrt{4}", "\\boxed{2.0}", "2 dollars",
           "so the result is 2.", "\\boxed{\\frac{6}{3}}", "\\boxed{y=2}", "\\boxed{2\\text{ hours}}",
           "\\boxed{2\\ \\text{m}}", "#### 2.00", "#### $2"],
          ["\\frac{\\pi}{2}", "\\boxed{\\frac{\\pi}{2}}", "x^2", "\\boxed{x^2}", "\\boxed{2\\sqrt{2}}",
           "\\boxed{\\sqrt{2}}", "\\boxed{2^{x}}", "\\boxed{e^2}", "\\boxed{\\log_2 8}", "\\boxed{a_2}",
           "\\boxed{2a}", "\\boxed{2+2}", "\\boxed{-2}", "\\boxed{1/2}", "\\boxed{2:1}", "\\boxed{22}",
           "\\boxed{2.2}", "\\boxed{(2,3)}", "\\boxed{\\sin 2}", "\\boxed{\\pm 2}"]),
    "3": (["3", "\\boxed{3}", "\\boxed{\\frac{9}{3}}", "\\boxed{3.000}", "\\sqrt{9}", "x=3",
           "\\boxed{n = 3}", "There are 3 of them.", "\\boxed{\\text{3}}"],
          ["x\\neq 3", "\\boxed{x\\neq 3}", "\\boxed{x\\ne 3}", "\\boxed{x<3}", "\\boxed{x\\geq 3}",
           "\\boxed{\\sqrt[3]{2}}", "\\boxed{3^3}", "\\boxed{3\\pi}", "\\boxed{\\frac{3}{4}}",
           "\\boxed{33}", "\\boxed{13}", "\\boxed{0.3}", "\\boxed{3\\cdot 2}"]),
    "-3": (["-3", "\\boxed{-3}", "- 3", "\\boxed{-3.0}", "\\boxed{\\frac{-6}{2}}", "\\boxed{-\\frac{6}{2}}",
            "x = -3", "\u22123", "\\boxed{-\\sqrt{9}}", "The answer is -3."],
           ["3", "\\boxed{3}", "\\boxed{+3}", "\\boxed{5-3}", "\\boxed{--3}", "\\boxed{-3^2}",
            "\\boxed{-30}", "\\boxed{-0.3}", "\\boxed{x-3}"]),
    "0": (["0", "-0", "0.0", "\\boxed{0}", "\\boxed{\\frac{0}{5}}", "\\boxed{x=0}", "\\sqrt{0}",
           "\\boxed{0\\%}", "\\boxed{0.000}"],
          ["1", "\\boxed{10}", "\\boxed{0.01}", "\\boxed{\\frac{1}{0}}", "\\boxed{\\emptyset}",
           "\\boxed{x}", "", "\\boxed{0x+1}", "\\boxed{O}"]),
    "1/2": (["1/2", "0.5", ".5", "\\frac12", "\\frac{1}{2}", "\\dfrac{1}{2}", "\\tfrac{1}{2}",
             "\\boxed{\\frac{1}{2}}", "\\boxed{0.50}", "\\boxed{2/4}", "\\boxed{\\frac{2}{4}}", "50\\%",
             "\\boxed{50\\%}", "\\boxed{\\frac{-1}{-2}}", "\\boxed{2^{-1}}", "\\boxed{\\sqrt{\\frac{1}{4}}}",
             "\\boxed{\\left(\\frac{1}{2}\\right)}", "P = \\frac{1}{2}", "\\boxed{x=\\frac{1}{2}}"],
            ["1", "2", "12", "1.2", "2/1", "\\boxed{\\frac{2}{1}}", "\\boxed{-\\frac{1}{2}}",
             "\\boxed{\\frac{1}{2}\\pi}", "\\boxed{\\frac{\\pi}{2}}", "\\boxed{\\frac{1}{\\sqrt{2}}}",
             "\\boxed{0.51}", "\\boxed{5\\%}", "\\boxed{\\frac{x}{2}}", "\\boxed{1:3}"]),
    "\\frac{2}{3}": (["2/3", "\\frac{2}{3}", "\\frac23", "\\boxed{\\frac{4}{6}}", "\\boxed{2/3}",
                      "\\boxed{\\frac{-2}{-3}}"],
                     ["0.666667", "0.67", "\\boxed{\\frac{3}{2}}", "\\boxed{-\\frac{2}{3}}", "\\boxed{23}",
                      "\\boxed{2.3}", "\\boxed{66\\%}", "\\boxed{\\frac{2}{3}x}"]),
    "1.5": (["1.5", "3/2", "1 1/2", "1\\frac{1}{2}", "\\boxed{1\\frac12}", "\\boxed{\\frac{3}{2}}",
             "\\boxed{1.50}", "150\\%", "\\boxed{150\\%}"],
            ["1", "15", "11/2", "\\boxed{\\frac{1}{2}}", "\\boxed{-1.5}", "\\boxed{1,5}", "\\boxed{1.5\\%}"]),
    "50": (["50", "50\\%", "\\boxed{50\\%}", "\\boxed{50}", "50%", "\\boxed{50.0}", "\\boxed{50^\\circ}",
            "\\boxed{50\\text{ km/h}}", "\\boxed{\\$50}", "5 \\times 10^1", "\\boxed{5\\times 10^{1}}"],
           ["5", "500", "0.5", "\\boxed{0.5}", "\\boxed{5\\%}", "\\boxed{\\sqrt{50}}", "\\boxed{50\\pi}",
            "\\boxed{50!}", "\\boxed{50x}", "\\boxed{1/50}"]),
    "1234": (["1234", "1,234", "1{,}234", "\\boxed{1,234}", "\\boxed{1234.0}", "\\$1,234", "#### 1,234",
              "\\boxed{1.234 \\times 10^{3}}"],
             ["12,34", "1.234", "234", "\\boxed{123}", "\\boxed{1 234 5}", "\\boxed{1,2,3,4}"]),
    "1000000": (["1000000", "1,000,000", "10^6", "10^{6}", "\\boxed{10^{6}}", "1e6", "1 \\times 10^6",
                 "\\boxed{1{,}000{,}000}"],
                ["10^5", "10^{-6}", "100000", "\\boxed{10^{7}}", "\\boxed{10^{6}x}", "\\boxed{6}", "1,000",
                 "\\boxed{10_6}"]),
    "1024": (["2^{10}", "\\boxed{2^{10}}", "1024", "\\boxed{1,024}", "\\boxed{4^5}", "32^2"],
             ["2^{11}", "210", "\\boxed{2^{x}}", "\\boxed{10^2}", "\\boxed{2^{1}0}"]),
    "\\sqrt{2}": (["\\sqrt{2}", "\\boxed{\\sqrt{2}}", "\\boxed{ \\sqrt{2} }", "$\\sqrt{2}$"],
                  ["2", "1.414", "\\boxed{-\\sqrt{2}}", "\\boxed{\\sqrt{3}}", "\\boxed{2\\sqrt{2}}",
                   "\\boxed{\\sqrt[3]{2}}"]),
    "\\frac{\\pi}{4}": (["\\frac{\\pi}{4}", "\\boxed{\\frac{\\pi}{4}}", "\\boxed{\\frac{\\pi}{4} }"],
                        ["4", "\\frac{1}{4}", "\\boxed{\\frac{\\pi}{2}}", "\\boxed{\\pi}", "0.785"]),
    "x^2+1": (["x^2+1", "\\boxed{x^2+1}", "\\boxed{x^2 + 1}"],
              ["1", "\\boxed{x^2}", "\\boxed{x^2-1}", "\\boxed{2}", "\\boxed{y^2+1}"]),
    "(1, 2)": (["(1,2)", "\\boxed{(1, 2)}", "\\boxed{\\left(1, 2\\right)}", "\\boxed{(1.0, 2)}",
                "\\boxed{(1,\\frac{4}{2})}"],
               ["(2,1)", "\\boxed{(1,3)}", "\\boxed{[1,2]}", "\\boxed{(1,2,3)}", "\\boxed{1}", "\\boxed{12}"]),
    "[0, 1)": (["[0,1)", "\\boxed{[0, 1)}", "\\boxed{\\left[0,1\\right)}"],
               ["\\boxed{(0,1)}", "\\boxed{[0,1]}", "\\boxed{[0,2)}", "\\boxed{0}"]),
    "[0, \\infty)": (["[0,\\infty)", "\\boxed{[0, \\infty)}", "\\boxed{[0,+\\infty)}"],
                     ["\\boxed{(0,\\infty)}", "\\boxed{[1,\\infty)}", "\\boxed{\\infty}"]),
    "\\{1, 2\\}": (["\\{1,2\\}", "\\boxed{\\{2, 1\\}}", "\\boxed{\\{1, 2\\}}"],
                   ["\\boxed{\\{1\\}}", "\\boxed{\\{1,3\\}}", "\\boxed{(1,2)}", "\\boxed{3}"]),
    "\\text{Monday}": (["\\boxed{\\text{Monday}}", "\\text{Monday}"],
                       ["\\boxed{\\text{Tuesday}}", "\\boxed{1}", ""]),
    "6.02e23": (["6.02e23", "6.02 \\times 10^{23}", "\\boxed{6.02\\times10^{23}}",
                 "\\boxed{6.02 \\cdot 10^{23}}"],
                ["6.02", "6.02e22", "\\boxed{6.02 \\times 10^{-23}}", "\\boxed{602}"]),
    "0.1": (["0.1", "1/10", "\\frac{1}{10}", "10^{-1}", "\\boxed{10\\%}"],
            ["0.10000000000000000000000000000001", "0.01", "10", "\\boxed{0.11}"]),
    # symbolic answers, the first ones from public reports of bugs
    "19, 46, \\text{ and } 82": (["So we get \\boxed{19, 46, 82}.", "\\boxed{82, 19, 46}"],
                                ["\\boxed{19, 46}", "\\boxed{(19, 46, 82)}", "\\boxed{19, 46, 83}"]),
    "\\dfrac{\\pi}{2}": (["So we get \\boxed{\\pi/2}.", "\\boxed{\\frac12\\pi}", "It is $\\pi/2$."],
                         ["\\boxed{\\pi}", "\\boxed{1.5707963}", "\\boxed{2/\\pi}"]),
    "e^{16}-1": (["So we get \\boxed{-1+e^{16}}.", "\\boxed{e^{16} - 1}"],
                 ["\\boxed{e^{16}}", "\\boxed{e^{15}-1}", "\\boxed{1-e^{16}}"]),
    "42": (["2+40=42\n#### 42 and that is what I found", "\\fbox{42}", "\\boxed{\\boxed{42}}"],
           ["#### 43 and not 42", "\\fbox{24}", "#### 42 million"]),
    "\\sqrt{3}/2": (["So we get \\boxed{\\frac{\\sqrt{3}}{2}}.", "\\boxed{\\frac{\\sqrt3}{2}}",
                     "\\boxed{\\sqrt{\\frac{3}{4}}}", "\\boxed{\u221a3/2}"],
                    ["\\boxed{\\frac{3}{2}}", "\\boxed{0.866}", "\\boxed{\\frac{\\sqrt{2}}{3}}"]),
    "\\frac{\\sqrt{2}}{2}": (["So we get \\boxed{\\frac{1}{\\sqrt{2}}}."], ["\\boxed{\\sqrt{2}}"]),
    "x^2+2x+1": (["So we get \\boxed{1+2x+x^2}.", "\\boxed{(x+1)^2}"],
                 ["\\boxed{x^2+2x}", "\\boxed{(x-1)^2}", "\\boxed{y^2+2y+1}"]),
    "\\begin{pmatrix}1\\\\2\\end{pmatrix}": (
        ["So we get \\boxed{\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}}.",
         "\\boxed{\\begin{pmatrix}1\\\\ 2\\end{pmatrix}}", "\\boxed{\\begin{bmatrix}1\\\\2\\end{bmatrix}}"],
        ["\\boxed{\\begin{pmatrix}1 & 2\\end{pmatrix}}", "\\boxed{\\begin{pmatrix}2\\\\1\\end{pmatrix}}"]),
    "[2,5]": (["So we get \\boxed{x \\in [2, 5]}.", "\\boxed{2 \\le x \\le 5}"],
              ["\\boxed{(2,5)}", "\\boxed{2 < x < 5}", "\\boxed{x \\in [2, 6]}"]),
    "10_2": (["So we get \\boxed{10_{2}}."], ["\\boxed{10}", "\\boxed{10_{3}}", "\\boxed{11_{2}}"]),
    "3+4i": (["So we get \\boxed{4i+3}."], ["\\boxed{3-4i}", "\\boxed{7}", "\\boxed{4+3i}"]),
    "3.0": (["So we get \\boxed{\\theta = 3}.", "So we get \\boxed{x_1=3}."], ["\\boxed{\\theta \\ne 3}"]),
    "2.0": (["So we get \\boxed{\\sqrt[3]{8}}.", "\\boxed{\\log_2 4}"], ["\\boxed{1+1}", "\\boxed{\\sqrt[3]{9}}"]),
    "7": (["the answer is \\boxed 7", "\\boxed 7.", "$\\boxed 7$"], ["the answer is \\boxed 8", "\\boxed 77"]),
    "\\text{(B)}": (["\\boxed{B}", "\\boxed{\\textbf{(B)}\\ 12}", "\\boxed{(B)}"],
                    ["\\boxed{\\text{(C)}}", "\\boxed{A}", "\\boxed{12}"]),
    "1\\pm\\sqrt{2}": (["\\boxed{1+\\sqrt2, 1-\\sqrt2}", "\\boxed{x = 1 \\pm \\sqrt{2}}"],
                        ["\\boxed{1+\\sqrt2}", "\\boxed{1\\pm\\sqrt3}"]),
    "2x+3y=6": (["\\boxed{4x+6y=12}", "\\boxed{6=3y+2x}"], ["\\boxed{2x-3y=6}", "\\boxed{2x+3y=5}"]),
    "(-\\infty,2)\\cup(3,\\infty)": (["\\boxed{x<2 \\text{ or } x>3}", "\\boxed{(3,\\infty)\\cup(-\\infty,2)}"],
                                     ["\\boxed{(2,3)}", "\\boxed{x<2 \\text{ or } x\\ge 3}"]),
    "2\\sin x\\cos x": (["\\boxed{\\sin 2x}", "\\boxed{\\sin(2x)}"], ["\\boxed{\\cos 2x}", "\\boxed{2\\sin x}"]),
    "\\frac{1}{3}": (["\\boxed{0.\\overline{3}}"], ["\\boxed{0.3}", "\\boxed{0.333}"]),
    "x=1, y=2": (["\\boxed{y=2, x=1}", "\\boxed{(1,2)}"], ["\\boxed{x=2, y=1}", "\\boxed{(2,1)}"]),
    "5\\text{ cm}": (["\\boxed{5}", "\\boxed{5\\text{ centimeters}}"], ["\\boxed{5\\text{ km}}"]),
    "5\\text{ pm}": (["\\boxed{5\\text{ p.m.}}", "\\boxed{5}"], ["\\boxed{5\\text{ am}}", "\\boxed{6\\text{ pm}}"]),
    "60\\text{ radians}": (["\\boxed{60}"], ["\\boxed{60^\\circ}"]),
    "5\\text{ km/h}": (["\\boxed{5\\text{ kilometers per hour}}"], ["\\boxed{5\\text{ mph}}", "\\boxed{5\\text{ km}}"]),
    "5\\text{ m}": (["\\boxed{5\\text{ meters}}"], ["\\boxed{5\\text{ m}^2}", "\\boxed{5\\text{ m/s}}", "\\boxed{5\\%}"]),
    "5\\text{ girls}": (["\\boxed{5}", "\\boxed{5\\text{ girls}}"], ["\\boxed{5\\text{ boys}}"]),
    "5\\%": (["\\boxed{5\\text{ percent}}", "\\boxed{0.05}"], ["\\boxed{\\$5}", "\\boxed{0.05\\%}"]),
    "BA": (["\\boxed{BA}"], ["\\boxed{AB}"]),
    "3\\ \\mathrm{m^2}": (["\\boxed{3\\ \\mathrm{m^2}}", "\\boxed{3}"], ["\\boxed{3\\ \\mathrm{m^3}}"]),
    "\\frac{\\sqrt{3}}{3}": (["**Answer:** $\\frac{\\sqrt3}{3}$"], ["**Answer:** $\\frac{\\sqrt3}{2}$"]),
    "(2,5)": (["\\boxed{(x,y)=(2,5)}", "\\boxed{x>2\\text{ and }x<5}"], ["\\boxed{(x,y)=(5,2)}"]),
    "2x+1": (["\\boxed{f^{-1}(x)=2x+1}"], ["\\boxed{f^{-1}(x)=2x-1}"]),
    "\\{2,3,5\\}": (["\\boxed{\\{2,3\\}\\cup\\{5\\}}", "\\boxed{\\{2,3,5,5\\}}"], ["\\boxed{\\{2,3\\}}"]),
    "60^\\circ": (["\\boxed{\\angle A=60^\\circ}"], ["\\boxed{\\angle A=30^\\circ}"]),
    "1011_2": (["\\boxed{1011_{two}}"], ["\\boxed{1011_{three}}"]),
}

UNIT_FORMS = ("5\\text{ pm}", "60\\text{ radians}", "5\\text{ km/h}", "5\\text{ m}", "5\\text{ girls}", "5\\%", "BA",
              "3\\ \\mathrm{m^2}")

GUIDE = ROOT / "docs/guides/rewards.md"
BEGIN, END = "<!-- math-verify: scripts/make_math_pairs.py -->", "<!-- end -->"

# Why math-verify differs: the first that fits a pair is its reason.
DIFFERENCES = [
    ("it takes several `\\boxed` together, and `####` for text; we take the last, or a list of those "
     "with a comma or a word between them",
     lambda r, c: c.count("\\boxed") > 1 or "####" in c),
    ("it compares with six digits; we compare exactly",
     lambda r, c: c in ("0.666667", "0.10000000000000000000000000000001", "\\boxed{1.5707963}")),
    ("it reads the number and leaves what stands beside it",
     lambda r, c: c in ("5 million", "\\boxed{5_{8}}", "\\boxed{2:1}", "\\boxed{5\\text{ km}}") or r in ("10_2", "1011_2")),
    ("an answer must be worked out: a sum of numbers is no number for us", lambda r, c: c == "\\boxed{1+1}"),
    ("it takes two different units, words or names in capitals for the same",
     lambda r, c: r in UNIT_FORMS),
    ("to it a tuple equals a set", lambda r, c: c in ("\\boxed{(1,2)}", "\\boxed{(19, 46, 82)}", "\\boxed{(2,1)}")),
    ("it does not take inequalities for an interval here",
     lambda r, c: c in ("\\boxed{2 \\le x \\le 5}", "\\boxed{x<2 \\text{ or } x>3}",
                       "\\boxed{x>2\\text{ and }x<5}")),
    ("it has not this notation",
     lambda r, c: "e23" in r or c in ("+5", "- 3", "\u22123", "1 1/2", "1e6", "\\boxed{\u221a3/2}",
                                      "\\boxed{0.\\overline{3}}", "\\boxed{\\textbf{(B)}\\ 12}")),
    ("it reads LaTeX only in `$…$` or `\\boxed{}`: of other text no value, or its digits alone",
     lambda r, c: ("\\" in c or "^" in c or c.startswith(("(", "[", "1{"))) and "boxed" not in c),
]


def says(reference, completion):
    """math-verify's verdict, the reference being LaTeX, as trainers give it."""
    return bool(verify(parse("\\boxed{" + reference + "}"), parse(completion)))


def table(rows):
    """The differing pairs by reason; fails where one has none."""
    by_reason = {reason: [] for reason, _ in DIFFERENCES}
    for row in rows:
        if row["right"] == row["math_verify"]:
            continue
        fits = [reason for reason, test in DIFFERENCES if test(row["reference"], row["completion"])]
        if not fits:
            sys.exit(f"math-verify differs on {row}, and DIFFERENCES has no reason")
        by_reason[fits[0]].append(row)
    lines = ["| pairs | why math-verify differs | for instance |", "|---|---|---|"]
    for reason, found in by_reason.items():
        if not found:
            sys.exit(f"no pair has the reason: {reason}")
        some = ", ".join(f"`{row['completion']}` for `{row['reference']}` is "
                         f"{'right' if row['right'] else 'wrong'}" for row in found[:2]).replace("\n", " ")
        lines.append(f"| {len(found)} | {reason} | {some} |".replace("\\|", "|"))
    return "\n".join(lines)


def main():
    logging.disable(logging.CRITICAL)
    rows = []
    for reference, (right, wrong) in FORMS.items():
        for completion in right + wrong:
            rows.append({"reference": reference, "completion": completion, "right": completion in right,
                         "math_verify": says(reference, completion)})
    text = GUIDE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    OUT.write_text("".join(json.dumps(row) + "\n" for row in rows))
    GUIDE.write_text(before + BEGIN + "\n\n" + table(rows) + "\n\n" + END + after)
    print(f"{len(rows)} pairs, math-verify differs on "
          f"{sum(row['right'] != row['math_verify'] for row in rows)}")


if __name__ == "__main__":
    main()
