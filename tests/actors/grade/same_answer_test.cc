// Answers in all forms that are read, by kind; right ones in several spellings, and wrong ones that
// are close to them. Tests actors/grade/read_answer.h, actors/grade/real_set.h and
// actors/grade/normal_form.h as well, through same_answer(), and the forms of all of these answers
// (actors/grade/answer_form.h).
#include "actors/grade/same_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "actors/grade/answer_form.h"
#include "actors/grade/normal_form.h"
#include "actors/grade/read_answer.h"

namespace tandem::grade {
namespace {

struct Case {
  const char *reference, *given;
  bool same;
};

// Pairs whose forms do not tell what a comparison tells (answer_form.h).
bool form_is_coarser_or_finer(std::string_view reference, std::string_view given) {
  static constexpr std::string_view kPairs[][2] = {
      // names and units are left out
      {"x > 2", "t > 2"},
      {"x = \\pi", "y = \\pi"},
      {"f^{-1}(x)=\\frac{x}{2}", "f(x)=\\frac{x}{2}"},
      {"y=2x+1", "2x-y+1=0"},
      {"\\frac{100}{3}\\%", "\\frac{1}{3}"},
      {"\\frac{100}{3}\\%", "\\frac{100}{3}"},
      // too large for the digits of a form, a name in a denominator, defined elsewhere
      {"30!\\pi", "265252859812191058636308480000000\\pi"},
      {"x^{100}-1", "(x^{50}-1)(x^{50}+1)"},
      {"\\frac{y}{x}=2", "y=2x"},
      {"(-1)^n", "\\cos(n\\pi)"},
  };
  return std::ranges::any_of(
      kPairs, [&](const auto& pair) { return pair[0] == reference && pair[1] == given; });
}

bool names_a_unit(std::string_view text) {
  const auto answer = read_answer(text);
  return answer && any_part(*answer, [](const Node& node) {
           return node.op == Op::kMeasure || node.op == Op::kPercent;
         });
}

void check(const auto& cases) {
  for (const auto& [reference, given, same] : cases) {
    for (const auto& [a, b] : {std::pair(reference, given), std::pair(given, reference)})
      EXPECT_EQ(same_answer(a, b).value_or(false), same) << "'" << a << "' and '" << b << "'";
    const auto one = answer_form(reference), other = answer_form(given);
    const bool by_units = !same && names_a_unit(reference) && names_a_unit(given);  // left out too
    if (!one || !other || by_units) continue;
    EXPECT_EQ(one == other, same != form_is_coarser_or_finer(reference, given))
        << reference << " and " << given << " have the forms " << *one << " and " << *other;
  }
}

TEST(SameAnswer, ConstantsAreComparedByAlgebra) {
  const Case cases[] = {
      {"\\frac{\\sqrt3}{2}", "\\sqrt{3}/2", true},
      {"\\frac{\\sqrt3}{2}", "\\frac{\\sqrt{2}}{3}", false},
      {"\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt{2}}{2}", true},
      {"11\\sqrt2", "11\\sqrt{2}", true},
      {"11\\sqrt2", "\\sqrt{242}", true},
      {"11\\sqrt2", "\\sqrt{243}", false},
      {"11\\sqrt2", "1\\sqrt{2}", false},
      {"\\sqrt{2}", "1.41421356237309504880168872420969807856967187537694807317667973799", false},
      {"\\sqrt{8}+\\sqrt{18}", "5\\sqrt{2}", true},
      {"\\frac{1}{1+\\sqrt{2}}", "\\sqrt{2}-1", true},
      {"\\sqrt[3]{8}", "2", true},
      {"\\sqrt[3]{-8}", "-2", true},
      {"\\sqrt[3]{16}", "2\\sqrt[3]{2}", true},
      {"\\sqrt[3]{16}", "2\\sqrt{2}", false},
      {"\\sqrt[4]{4}", "\\sqrt{2}", true},
      {"8^{2/3}", "4", true},
      {"2^{0.5}", "\\sqrt2", true},
      {"\\pi/2", "\\dfrac{\\pi}{2}", true},
      {"\\pi/2", "\xCF\x80/2", true},
      {"\\pi/2", "\\frac{2}{\\pi}", false},
      {"\\pi/2", "1.5707963267948966", false},
      {"\\pi", "\\frac{22}{7}", false},
      {"e^{16}-1", "-1+e^{16}", true},
      {"e^{16}-1", "e^{16}+1", false},
      {"e^{\\pi\\sqrt{163}}", "262537412640768744", false},
      {"\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{2}", true},
      {"\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{3}", false},
      {"4i+3", "3+4i", true},
      {"(1+i)^2", "2i", true},
      {"\\sqrt{-4}", "2i", true},
      {"\\frac{1}{i}", "-i", true},
      {"3+4i", "3-4i", false},
      {"e^{i\\pi/3}", "\\frac{1}{2}+\\frac{\\sqrt{3}}{2}i", true},
      {"e^{i\\pi/3}", "\\frac{1}{2}-\\frac{\\sqrt{3}}{2}i", false},
      {"0.\\overline{3}", "\\frac13", true},
      {"0.1\\overline{6}", "1/6", true},
      {"0.\\overline{3}", "0.3", false},
      {"2\\frac{1}{2}\\pi", "\\frac{5\\pi}{2}", true},
      {"3 \\times 10^5 \\pi", "300000\\pi", true},
      {"10_{2}", "10_2", true},
      {"10_{2}", "10_3", false},
      {"10_{2}", "10", false},
      {"10_{2}", "2", false},
  };
  check(cases);
}

TEST(SameAnswer, FunctionsOfNumbers) {
  const Case cases[] = {
      {"\\pi\\sin 30^\\circ", "\\frac{\\pi}{2}", true},
      {"\\cos\\frac{\\pi}{12}", "\\frac{\\sqrt6+\\sqrt2}{4}", true},
      {"\\tan\\frac{\\pi}{3}", "\\sqrt3", true},
      {"\\tan\\frac{\\pi}{3}", "-\\sqrt3", false},
      {"\\cos\\frac{\\pi}{5}", "\\frac{1+\\sqrt5}{4}", true},
      {"\\arctan 1", "\\frac{\\pi}{4}", true},
      {"\\arcsin\\frac{1}{2}", "\\frac{\\pi}{6}", true},
      {"\\sin^{-1}(1)", "\\frac{\\pi}{2}", true},
      {"\\arccos(-1)", "\\pi", true},
      {"\\ln 8", "3\\ln 2", true},
      {"\\ln 8", "2\\ln 3", false},
      {"\\ln\\frac{1}{2}", "-\\ln 2", true},
      {"\\ln 6", "\\ln 2+\\ln 3", true},
      {"\\log_2 8", "3", true},
      {"\\log_2 8", "4", false},
      {"\\log 100", "2", true},
      {"\\log 2", "\\ln 2", false},
      {"\\log_4 2\\cdot\\pi", "\\frac{\\pi}{2}", true},
      {"5!", "120", true},
      {"5!", "121", false},
      {"30!\\pi", "265252859812191058636308480000000\\pi", true},
      {"\\binom{5}{2}", "10", true},
      {"\\binom{5}{2}", "20", false},
      {"\\left|{-\\sqrt2}\\right|", "\\sqrt2", true},
      {"\\lfloor \\pi \\rfloor", "3", true},
      {"\\lceil \\pi \\rceil", "3", false},
      {"\\sinh(0)+\\pi", "\\pi", true},
  };
  check(cases);
}

TEST(SameAnswer, ExpressionsInVariables) {
  const Case cases[] = {
      {"x^2+2x+1", "1+2x+x^2", true},
      {"x^2+2x+1", "(x+1)^2", true},
      {"x^2+2x+1", "(x+2)^2", false},
      {"x^2+2x+1", "y^2+2y+1", false},
      {"2xy", "2yx", true},
      {"\\frac{x^2-1}{x-1}", "x+1", true},
      {"\\frac{1}{x}+\\frac{1}{y}", "\\frac{x+y}{xy}", true},
      {"\\frac{1}{x}+\\frac{1}{y}", "\\frac{x-y}{xy}", false},
      {"\\frac{a}{b}", "a/b", true},
      {"\\frac{a}{b}", "b/a", false},
      {"|x|", "\\sqrt{x^2}", true},
      {"x", "\\sqrt{x^2}", false},
      {"a\\sqrt{2}", "\\sqrt{2}a", true},
      {"\\sin^2 x+\\cos^2 x+x", "1+x", true},
      {"2\\sin x\\cos x", "\\sin 2x", true},
      {"2\\sin x\\cos x", "\\cos 2x", false},
      {"\\sin(x)", "\\cos(\\frac{\\pi}{2}-x)", true},
      {"\\tan x", "\\frac{\\sin x}{\\cos x}", true},
      {"\\ln(x^2)", "2\\ln|x|", true},
      {"\\ln(x^2)", "\\ln x", false},
      {"e^{2x}", "(e^x)^2", true},
      {"e^{x+1}", "e\\cdot e^x", true},
      {"e^{x+1}", "e^x+1", false},
      {"2^{n+1}", "2\\cdot 2^n", true},
      {"4^n", "2^{2n}", true},
      {"4^n", "2^{n+2}", false},
      {"n(n-1)!", "n!", true},
      {"(-1)^n", "\\cos(n\\pi)", true},
      {"(-1)^n", "(-1)^{n+1}", false},
      {"\\frac{n(n-1)}{2}", "\\binom{n}{2}", true},
      {"x_1+x_2", "x_2+x_1", true},
      {"x_1+x_2", "x_1+x_3", false},
      {"\\alpha\\beta", "\\beta\\alpha", true},
      {"(x+y+z)^{12}", "(z+y+x)^{12}", true},
      {"x^{100}-1", "(x^{50}-1)(x^{50}+1)", true},
      {"\\frac{1}{2}x", "x/2", true},
      {"x^{1/2}", "\\sqrt{x}", true},
      {"\\sqrt{x-5}\\sqrt{x-5}", "x-5", true},
      {"f(x)=x^2+1", "x^2+1", true},
      {"y=2x+1", "2x+1", true},
  };
  check(cases);
}

TEST(SameAnswer, SeveralValues) {
  const Case cases[] = {
      {"19, 46, \\text{ and } 82", "19, 46, 82", true},
      {"1,2,\\sqrt2", "\\sqrt2, 1, 2", true},
      {"1,2,\\sqrt2", "\\sqrt2, 1, 3", false},
      {"\\{1,\\sqrt2\\}", "\\{\\sqrt2,1\\}", true},
      {"(1,\\sqrt2)", "(\\sqrt2,1)", false},
      {"(1,\\sqrt2)", "(1, 2^{1/2})", true},
      {"(1,\\sqrt2)", "[1, \\sqrt2]", false},
      {"\\langle 1,\\pi\\rangle", "(1,\\pi)", true},
      {"\\pm 2", "2, -2", true},
      {"\\pm 2", "2", false},
      {"1\\pm\\sqrt2", "1-\\sqrt2, 1+\\sqrt2", true},
      {"1\\pm\\sqrt2", "1-\\sqrt2, 1+\\sqrt3", false},
      {"x = 1 \\text{ or } x = 2", "1, 2", true},
      {"x = 1, y = \\sqrt2", "y = \\sqrt2, x = 1", true},
      {"x = 1, y = \\sqrt2", "x = \\sqrt2, y = 1", false},
      {"x = 1, y = 2", "(1, 2)", true},
      {"x = 1, y = 2", "(2, 1)", false},
      {"\\emptyset", "\\{\\}", true},
      {"2:3", "4:6", true},
      {"2:3", "3:2", false},
      {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", true},
      {"\\begin{pmatrix}1\\\\ 2\\end{pmatrix}", "\\begin{bmatrix}1\\\\2\\end{bmatrix}", true},
      {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}2\\\\1\\end{pmatrix}", false},
      {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}", false},
      {"\\begin{pmatrix}1&2\\end{pmatrix}", "\\begin{vmatrix}1&2\\end{vmatrix}", false},
      {"\\begin{pmatrix}\\frac12&x\\\\0&1\\end{pmatrix}",
       "\\begin{array}{cc}0.5 & x \\\\ 0 & 1\\end{array}", true},
  };
  check(cases);
}

TEST(SameAnswer, IntervalsAndRelations) {
  const Case cases[] = {
      {"x \\in [2,5]", "[2,5]", true},
      {"x \\in [2,5]", "2 \\le x \\le 5", true},
      {"x \\in [2,5]", "(2,5)", false},
      {"(2,\\infty)", "x > 2", true},
      {"(2,\\infty)", "2 < x", true},
      {"(2,\\infty)", "x < 2", false},
      {"(2,\\infty)", "x \\ge 2", false},
      {"x > 2", "t > 2", false},
      {"(-\\infty,2)\\cup(3,\\infty)", "x<2 \\text{ or } x>3", true},
      {"(-\\infty,2)\\cup(3,\\infty)", "x<2 \\text{ and } x>3", false},
      {"(-\\infty,2)\\cup(2,\\infty)", "x \\neq 2", true},
      {"(-\\infty,2)\\cup(2,\\infty)", "\\mathbb{R}\\setminus\\{2\\}", true},
      {"(-\\infty,2)\\cup(2,\\infty)", "\\mathbb{R}", false},
      {"[1,2]\\cup[2,3]", "[1,3]", true},
      {"[1,2)\\cup(2,3]", "[1,3]", false},
      {"\\mathbb{R}", "(-\\infty,\\infty)", true},
      {"(\\sqrt2, \\pi]", "\\sqrt{2} < x \\leq \\pi", true},
      {"2x+3y=6", "4x+6y=12", true},
      {"2x+3y=6", "6=2x+3y", true},
      {"2x+3y=6", "2x+3y=7", false},
      {"2x+3y=6", "2x-3y=6", false},
      {"y=2x+1", "2x-y+1=0", true},
      {"y=2x+1", "x=2y+1", false},
      {"x^2+y^2=1", "2y^2=2-2x^2", true},
      {"\\frac{y}{x}=2", "y=2x", true},
      {"\\sin x = \\frac12", "2\\sin x = 1", true},
      {"2x+y>4", "4<2x+y", true},
      {"2x+y>4", "-2x-y<-4", true},
      {"2x+y>4", "-2x-y>-4", false},
      {"2x+y>4", "2x+y\\ge 4", false},
      {"\\theta = 3", "3", true},
      {"x_1=\\pi", "\\pi", true},
      {"x = \\pi", "y = \\pi", false},
      {"x = 5", "x = 5", true},
      {"x = 5", "x \\neq 5", false},
      {"(p,q)=(3,2)", "(3,2)", true},
      {"(p,q)=(3,2)", "(p, q) = (3, 2)", true},
      {"(p,q)=(3,2)", "p=3, q=2", true},
      {"(p,q)=(3,2)", "(2,3)", false},
      {"(p,q)=(3,2)", "(q,p)=(3,2)", false},
  };
  check(cases);
}

TEST(SameAnswer, WordsUnitsAndPercentages) {
  const Case cases[] = {
      {"\\text{(B)}", "B", true},
      {"\\text{(B)}", "(B)", true},
      {"B", "\\textbf{(B)}", true},
      {"B", "\\text{C}", false},
      {"\\text{even}", "Even", true},
      {"\\text{even}", "odd", false},
      {"\\text{Monday}", "dayMon", false},
      {"2\\sqrt3\\text{ cm}", "2\\sqrt{3}", true},
      {"2\\sqrt3\\text{ cm}", "2\\sqrt{3}\\text{ centimeters}", true},
      {"2\\sqrt3\\text{ cm}", "2\\sqrt{3}\\text{ km}", false},
      {"2\\pi\\text{ cm}^2", "2\\pi", true},
      {"2\\pi\\text{ million}", "2\\pi", false},
      {"60^\\circ", "60", true},
      {"\\frac{100}{3}\\%", "\\frac{1}{3}", true},
      {"\\frac{100}{3}\\%", "\\frac{100}{3}", false},  // not whole
      {"\\frac{100}{3}\\%", "\\frac{10}{3}", false},
  };
  check(cases);
  EXPECT_EQ(same_answer("B", "\\textbf{(B)}\\ 5"), true);
  EXPECT_FALSE(same_answer("B", "\\textbf{(C)}\\ B").value_or(false));
}

TEST(SameAnswer, UnitsOnBothSidesMustAgree) {
  const Case cases[] = {
      {"5\\text{ am}", "5\\text{ pm}", false},
      {"5\\text{ a.m.}", "5\\text{ p.m.}", false},
      {"5\\text{ a.m.}", "5\\text{ am}", true},
      {"5:30\\text{ pm}", "5:30\\text{ am}", false},
      {"5:30\\text{ pm}", "1:6\\text{ pm}", false},
      {"5:30\\text{ pm}", "5:30 \\text{ p.m.}", true},
      {"5:00", "6:00", false},
      {"60^\\circ", "60\\text{ radians}", false},
      {"60^\\circ", "60\\text{ degrees}", true},
      {"20^\\circ C", "20^\\circ\\text{F}", false},
      {"20^\\circ C", "20\\text{ degrees Celsius}", true},
      {"20^\\circ C", "20^\\circ", true},
      {"5\\pi\\text{ mph}", "5\\pi\\text{ km/h}", false},
      {"5\\pi\\text{ mph}", "5\\pi\\text{ miles per hour}", true},
      {"5\\pi\\text{ km/h}", "5\\pi\\text{ kilometers per hour}", true},
      {"5\\pi\\text{ km/h}", "5\\pi\\ \\mathrm{km\\,h^{-1}}", true},
      {"5\\pi\\text{ km/h}", "5\\pi\\ \\frac{\\text{km}}{\\text{h}}", true},
      {"5\\pi\\text{ km/h}", "5\\pi km/h", true},
      {"5\\pi\\text{ km/h}", "5\\pi\\text{ km}", false},
      {"5\\text{ m}^2", "5\\text{ m}", false},
      {"5\\text{ m}^2", "5\\text{ m}^3", false},
      {"5\\text{ m}^2", "5\\text{ square meters}", true},
      {"5\\text{ m}^2", "5\\ \\mathrm{m^2}", true},
      {"5\\text{ m}^2", "5\\text{ square units}", true},
      {"5\\text{ m}^2", "5\\text{ units}", false},
      {"5\\text{ m/s}", "5\\text{ m}", false},
      {"5\\text{ m/s}", "5\\text{ meters per second}", true},
      {"5\\text{ m/s}^2", "5\\text{ meters per second squared}", true},
      {"5\\text{ m/s}^2", "5\\text{ m/s}", false},
      {"5\\%", "5\\text{ cm}", false},
      {"5^\\circ", "5\\text{ cm}", false},
      {"\\$5", "5\\%", false},
      {"\\$5", "5\\text{ dollars}", true},
      {"\\$5", "\\$5\\text{ dollars}", true},
      {"\\$5", "5\\text{ cents}", false},
      {"\\$5",
       "\xE2\x82\xAC"
       "5",
       false},
      {"\\$5\\text{ per hour}", "5\\text{ dollars per hour}", true},
      {"\\$5\\text{ per hour}", "\\$5\\text{ per day}", false},
      {"5\\text{ boys}", "5\\text{ girls}", false},
      {"5\\text{ boys}", "5\\text{ boy}", true},
      {"5\\text{ boys}", "5", true},
      {"5\\text{ red balls}", "5\\text{ blue balls}", false},
      {"5\\text{ red balls}", "5\\text{ balls in total}", true},
      {"5\\text{ years}", "5\\text{ years old}", true},
      {"5\\text{ inches}", "5\\text{ in}^2", false},
      {"5\\text{ kW}", "5\\text{ kilowatts}", true},
      {"5\\text{ kW}", "5\\text{ MW}", false},
      {"5\\text{ mm}", "5\\text{ Mm}", false},
      {"(5\\text{ cm}, 6\\text{ cm})", "(5\\text{ cm}, 6\\text{ m})", false},
      {"0^\\circ < x < 90^\\circ", "(0, 90)", true},
      {"0^\\circ < x < 90^\\circ", "(0\\text{ cm}, 90\\text{ cm})", false},
      {"A+B=90^\\circ", "2A+2B=180^\\circ", true},
      {"\\angle A=60^\\circ", "60^\\circ", true},
      {"\\angle A=60^\\circ", "m\\angle A=60", true},
      {"\\angle A=60^\\circ", "\\angle B=60^\\circ", false},
      {"(60^\\circ)", "60\\text{ cm}", false},
      {"2", "2abe", false},
      {"2", "2DE", false},
      {"\\sqrt3\\ \\mathrm{m}", "\\sqrt3", true},
  };
  check(cases);
}

TEST(SameAnswer, NamesInCapitalsAreNoProducts) {
  const Case cases[] = {
      {"AB", "BA", false},
      {"2AB", "2BA", false},
      {"ABC", "BCA", false},
      {"DE", "ED", false},
      {"A\\cdot B", "B\\cdot A", true},
      {"AB^2+BC^2", "BC^2+AB^2", true},
      {"AB=5", "5", true},
      {"ab", "ba", true},
      {"NO", "\\text{No}", true},
      {"NO", "\\text{on}", false},
      {"x<1 OR x>2", "(-\\infty,1)\\cup(2,\\infty)", true},
  };
  check(cases);
}

TEST(SameAnswer, WhatAPercentageEquals) {
  struct Percentage {
    const char* reference;
    const char* given;
    std::string_view readings;  // those that make them equal: w, b, v, n
  };
  const Percentage cases[] = {
      {"50", "50\\%", "wbn"},
      {"0.5", "50\\%", "wbv"},
      {"0.5", "0.5\\%", "bn"},
      {"50", "5000\\%", "wbv"},
      {"\\frac{1}{3}", "\\frac{100}{3}\\%", "wbv"},
      {"\\frac{100}{3}", "\\frac{100}{3}\\%", "bn"},
      {"50\\%", "50\\text{ percent}", "wbvn"},
      {"50", "50\\text{percent}", "wbn"},
      {"50", "50\\ \\text{percent}", "wbn"},
      {"50", "5\\%", ""},
      {"\\sqrt2", "\\sqrt2\\%", "bn"},
  };
  using enum PercentReading;
  for (const auto& [letter, reading] :
       {std::pair{'w', kWhole}, {'b', kBoth}, {'v', kValue}, {'n', kNumber}})
    for (const Percentage& c : cases) {
      const bool same = c.readings.find(letter) != std::string_view::npos;
      EXPECT_EQ(same_answer(c.reference, c.given, reading), same) << c.given << ", " << letter;
      EXPECT_EQ(same_answer(c.given, c.reference, reading), same) << c.given << ", " << letter;
    }
}

TEST(SameAnswer, MatricesInEachSpelling) {
  const std::string matrix = "\\begin{pmatrix}0&-1\\\\1&0\\end{pmatrix}";
  for (const char* columns : {"cc", "ll", "rr", "c|c"})
    for (const char* brackets : {"()", "[]"}) {
      const std::string array = std::string("\\left") + brackets[0] + "\\begin{array}{" + columns +
                                "}0&-1\\\\1&0\\end{array}\\right" + brackets[1];
      EXPECT_EQ(same_answer(matrix, array), true) << array;
      EXPECT_EQ(same_answer(array, matrix), true) << array;
    }
  const std::string determinant = "\\begin{vmatrix}0&-1\\\\1&0\\end{vmatrix}";
  const std::string bars = "\\left|\\begin{array}{cc}0&-1\\\\1&0\\end{array}\\right|";
  EXPECT_EQ(same_answer(determinant, bars), true);
  EXPECT_FALSE(same_answer(matrix, bars).value_or(false));
  const Case cases[] = {
      {"\\frac12\\begin{pmatrix}2&4\\\\6&8\\end{pmatrix}",
       "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", true},
      {"\\frac12\\begin{pmatrix}2&4\\\\6&8\\end{pmatrix}",
       "\\begin{pmatrix}1&2\\\\3&5\\end{pmatrix}", false},
      {"-\\begin{pmatrix}1\\\\x\\end{pmatrix}", "\\begin{pmatrix}-1\\\\-x\\end{pmatrix}", true},
      {"2\\begin{vmatrix}1&0\\\\0&1\\end{vmatrix}", "\\begin{vmatrix}2&0\\\\0&2\\end{vmatrix}",
       false},
  };
  check(cases);
}

TEST(SameAnswer, NamedPointsSetsAndBases) {
  const Case cases[] = {
      {"(x,y)=(1,2)", "(1,2)", true},
      {"(x,y)=(1,2)", "(2,1)", false},
      {"(y,x)=(1,2)", "(1,2)", false},
      {"(x,y)=(1,2)", "x=1, y=2", true},
      {"(x,y)=(1,2)", "x=2, y=1", false},
      {"y=1, x=2", "(1,2)", false},
      {"y=1, x=2", "(2,1)", true},
      {"f^{-1}(x)=\\frac{x}{2}", "\\frac{x}{2}", true},
      {"f^{-1}(x)=\\frac{x}{2}", "f(x)=\\frac{x}{2}", false},
      {"\\{2,3\\}\\cup\\{5\\}", "\\{2,3,5\\}", true},
      {"\\{2,3\\}\\cup\\{5\\}", "\\{2,3\\}", false},
      {"\\{1,\\sqrt2,\\sqrt2\\}", "\\{1,\\sqrt2\\}", true},
      {"1,\\sqrt2,\\sqrt2", "1,\\sqrt2", false},
      {"1,\\sqrt2,\\sqrt2", "1,1,\\sqrt2", false},
      {"1011_{two}", "1011_2", true},
      {"1011_{\\text{two}}", "1011_{2}", true},
      {"1011_{three}", "1011_2", false},
      {"1011_{six}", "1011_6", true},
      {"5_{10}\\pi", "5\\pi", true},
      {"x>2\\text{ and }x<5", "(2,5)", true},
      {"x>2 and x<5", "(2,5)", true},
      {"x>2 or x<5", "(2,5)", false},
      {"x\\ge2\\text{ and }x<5", "(2,5)", false},
      {"x>2\\text{ and }x<5\\text{ or }x>9", "(2,5)", false},
      {"x>2\\text{ and }y<5", "(2,5)", false},
      {"\\{x\\mid x>2\\}", "(2,\\infty)", true},
      {"\\{x\\in\\mathbb{R}: x>2\\}", "x>2", true},
      {"\\{x\\mid x>2\\}", "[2,\\infty)", false},
      {"\\{x\\mid x>2, x\\le 5\\}", "(2,5]", true},
      {"\\{x\\mid y>2\\}", "(2,\\infty)", false},
      {"|x|<2", "-2<x<2", true},
      {"|x|\\le 2", "-2<x<2", false},
      {"|x-1|<\\sqrt2", "(1-\\sqrt2,1+\\sqrt2)", true},
      {"|x|>2", "(-\\infty,-2)\\cup(2,\\infty)", true},
      {"|x|>2", "x>2", false},
  };
  check(cases);
}

TEST(SameAnswer, ChoicesWithTheirTextsAndSeveralChoices) {
  for (const char* given : {"B) 12", "(B) 12", "B)", "(B).", "\\textbf{(B)}\\ \\frac12"})
    EXPECT_EQ(same_answer("B", given), true) << given;
  for (const char* given : {"C) 12", "(B) or (C)", "(B), (C)", "(B) or C", "B or C", "B and C",
                            "(B) is wrong, (C)", "A) B"})
    EXPECT_FALSE(same_answer("B", given).value_or(false)) << given;
}

// Unicode and plain text give the same tree as LaTeX.
TEST(SameAnswer, SpellingsOfOneThing) {
  const Case cases[] = {
      {"\\sqrt{3}",
       "\xE2\x88\x9A"
       "3",
       true},
      {"\\sqrt{12}\\pi",
       "\xE2\x88\x9A"
       "12\xCF\x80",
       true},
      {"\\sqrt{3}", "sqrt(3)", true},
      {"x^2", "x\xC2\xB2", true},
      {"x^2", "x**2", true},
      {"-\\pi", "\xE2\x88\x92\xCF\x80", true},
      {"2\\times\\pi", "2\xC3\x97\xCF\x80", true},
      {"x\\le\\pi", "x \xE2\x89\xA4 pi", true},
      {"[\\pi,\\infty)", "[pi, \xE2\x88\x9E)", true},
      {"\\left(\\frac{\\pi}{2}\\right)", "\\frac\\pi2", true},
      {"\\dfrac{\\sqrt{2}}{2}", "\\displaystyle\\tfrac{\\sqrt{2}}{2}", true},
      {"10\\,000\\pi", "10000\\pi", true},
      {"1,000\\pi", "1000\\pi", true},
      {"\\$2\\sqrt2", "2\\sqrt2", true},
  };
  check(cases);
}

// A reading that could be another one is none.
TEST(SameAnswer, AmbiguousTextsAreNotRead) {
  for (const char* text : {"1/2x",
                           "1/2\\sqrt{3}",
                           "\\sqrt12",
                           "\\sin x/2",
                           "\\sin 2(x+1)",
                           "2 3",
                           "\\ln(x)^2",
                           "2^3^2",
                           "x \\approx 2",
                           "\\int_0^1 x",
                           "2x3",
                           "\\frac{1}{2",
                           "5'",
                           "x = ",
                           "(1,2",
                           "1)",
                           "\\unknown",
                           "\\frac{1}",
                           "||",
                           "",
                           "\\begin{pmatrix}1\\\\2&3\\end{pmatrix}"})
    EXPECT_FALSE(read_answer(text)) << text;
}

TEST(SameAnswer, ArithmeticMustBeWorkedOut) {
  for (const char* open :
       {"2+3", "\\frac{2+3}{1}", "10-5", "\\frac{1}{2}\\cdot 10", "\\sqrt{20+5}"})
    EXPECT_EQ(same_answer("5", open), false) << open;
  EXPECT_EQ(same_answer("6", "2 \\times 3"), false);
  EXPECT_EQ(same_answer("6", "(2)(3)"), false);
  EXPECT_EQ(same_answer("x=6", "x = 2 \\cdot 3"), false);
  for (const char* done : {"\\frac{10}{2}", "\\sqrt{25}", "\\log_2 32"})
    EXPECT_EQ(same_answer("5", done).value_or(true), true) << done;
  EXPECT_EQ(same_answer("300000", "3\\times 10^5"), true);
}

// Whatever a text asks for, it takes at most the 50 ms that a completion may cost.
TEST(SameAnswer, LimitsMakeItNoAnswer) {
  EXPECT_FALSE(read_answer(std::string(3000, 'x')));
  EXPECT_FALSE(read_answer(std::string(40, '(') + "x" + std::string(40, ')')));
  EXPECT_TRUE(read_answer("((((x))))"));
  EXPECT_FALSE(read_answer(std::string("x\0y", 3)));
  EXPECT_FALSE(read_answer("x \xFF"));
}

// Sums that differ by less than any digit there is are not taken for equal.
TEST(SameAnswer, WhatDigitsCannotTellIsNotEqual) {
  EXPECT_FALSE(*same_answer("\\sin(1)+10^{-300}", "\\sin(1)"));
  EXPECT_FALSE(*same_answer("\\sin(1)+e^{-120}", "\\sin(1)"));
  EXPECT_FALSE(*same_answer("\\sin(10^{-150})", "10^{-150}"));
  EXPECT_FALSE(*same_answer("\\ln(2)", "0.693147180559945309417232121458176568"));
}

TEST(NormalForm, AlgebraDecidesWhereItsNamesAreIndependent) {
  const auto verdict = [](const char* a, const char* b) {
    Work work;
    return compare_exactly(*read_answer(a), *read_answer(b), work);
  };
  EXPECT_EQ(verdict("\\sqrt2\\sqrt3", "\\sqrt6"), Verdict::kSame);
  EXPECT_EQ(verdict("\\sqrt2+\\sqrt3", "\\sqrt5"), Verdict::kDifferent);
  EXPECT_EQ(verdict("\\pi^2", "10"), Verdict::kDifferent);
  EXPECT_EQ(verdict("\\pi+e", "e\\pi"), Verdict::kOpen);
  EXPECT_EQ(verdict("(x+y)(x-y)", "x^2-y^2"), Verdict::kSame);
  EXPECT_EQ(verdict("\\sin x", "x"), Verdict::kOpen);
  EXPECT_EQ(verdict("\\sin(-x)", "-\\sin x"), Verdict::kSame);
  EXPECT_EQ(verdict("(x+1)^{4000}", "x"), Verdict::kOpen);  // past a bound
}

TEST(AnswerForm, IsTheSameForEqualAnswersInAnyOrder) {
  const auto form = [](const char* text) { return answer_form(text).value_or("not read"); };
  EXPECT_EQ(form("\\frac{1}{2}"), form("0.5"));
  EXPECT_EQ(form("\\frac{1}{2}"), "1/2") << "VF-1";
  EXPECT_EQ(form("\\log_2 8"), "3/1") << "VF-1, by evaluation";
  EXPECT_EQ(form("(1,2)"), form("( 1, 2 )"));
  EXPECT_NE(form("(1,2)"), form("(2,1)"));
  EXPECT_EQ(form("y = 2, x = 1"), form("(1,2)"));
  EXPECT_EQ(form("\\{3,1,2\\}"), form("1, 2 and 3"));
  EXPECT_EQ(form("17 = x"), form("17"));
  EXPECT_EQ(form("-2x > 4y"), form("x < -2y"));
  EXPECT_NE(form("-2x > 4y"), form("x > -2y"));
  EXPECT_EQ(form("2+3"), form("3+2"));
  EXPECT_NE(form("2+3"), form("5")) << "it is not worked out";
  EXPECT_NE(form("\\sqrt{x^2}"), form("x")) << "VF-2, below 0";
  EXPECT_EQ(answer_form("\\int x"), std::nullopt);
}

}  // namespace
}  // namespace tandem::grade
