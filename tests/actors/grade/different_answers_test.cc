// Random answers whose values the test knows by arithmetic of its own, in doubles: answers with
// different values must not be taken for equal, and an answer must equal its own rewritings.
// Tests actors/grade/same_answer.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "actors/grade/answer_form.h"
#include "actors/grade/same_answer.h"
#include "tests/seeds.h"

namespace tandem::grade {
namespace {

struct Tree {
  char kind = 0;  // n number, x y variables, p π, e, + - * / ^ r(oot) s(in) c(os) l(n) a(bs)
  int number = 0;
  std::vector<Tree> parts;
};

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  Tree tree(int depth, bool names) {
    if (depth == 0 || below(5) == 0) {
      const int which = below(names ? 8 : 5);
      if (which < 4) return {.kind = 'n', .number = 1 + below(12)};
      return {.kind = "pxyx"[which - 4]};
    }
    static constexpr char kKinds[] = "++--**//^rsclarr";
    const char kind = kKinds[below(16)];
    Tree made{.kind = kind, .number = kind == '^' ? 2 + below(2) : 0};
    made.parts.push_back(tree(depth - 1, names));
    if (std::string_view("+-*/").find(kind) != std::string_view::npos)
      made.parts.push_back(tree(depth - 1, names));
    return made;
  }

  // The same, written in one of several ways.
  std::string text(const Tree& tree) {
    const auto part = [&](std::size_t i) { return text(tree.parts[i]); };
    const auto group = [&](std::size_t i) {
      const bool tight = tree.parts[i].parts.empty();
      return tight && below(2) == 0 ? part(i)
             : below(2) == 0        ? "(" + part(i) + ")"
                                    : "\\left(" + part(i) + "\\right)";
    };
    switch (tree.kind) {
      case 'n':
        return below(4) == 0 ? std::to_string(tree.number) + ".0" : std::to_string(tree.number);
      case 'p':
        return below(2) == 0 ? "\\pi " : "\xCF\x80";
      case '+': {
        const bool turned = below(2) == 0;
        return group(turned ? 1 : 0) + (below(2) == 0 ? " + " : "+") + group(turned ? 0 : 1);
      }
      case '-':
        return below(2) == 0 ? group(0) + "-" + group(1) : "-" + group(1) + "+" + group(0);
      case '*': {
        const bool turned = below(2) == 0;
        return group(turned ? 1 : 0) + (below(2) == 0 ? "\\cdot " : "\\times ") +
               group(turned ? 0 : 1);
      }
      case '/':
        return below(2) == 0 ? "\\frac{" + part(0) + "}{" + part(1) + "}"
                             : "(" + part(0) + ")/(" + part(1) + ")";
      case '^':
        return "(" + part(0) + ")^" +
               (below(2) == 0 ? "{" + std::to_string(tree.number) + "}"
                              : std::to_string(tree.number));
      case 'r':
        return below(2) == 0 ? "\\sqrt{" + part(0) + "}" : "(" + part(0) + ")^{1/2}";
      case 's':
        return "\\sin(" + part(0) + ")";
      case 'c':
        return "\\cos\\left(" + part(0) + "\\right)";
      case 'l':
        return "\\ln(" + part(0) + ")";
      case 'a':
        return "|" + part(0) + "|";
      default:
        return std::string(1, tree.kind);
    }
  }

  // The same tree with one number or operation changed.
  Tree changed(Tree tree) {
    if (tree.parts.empty() || below(3) == 0) {
      if (tree.kind == 'n' || tree.kind == '^') {
        tree.number += 1 + below(3);
      } else if (tree.parts.size() == 2) {
        tree.kind = "+-*/"[below(4)];
      } else if (tree.parts.size() == 1) {
        tree.kind = "rscla"[below(5)];
      } else {
        tree = {.kind = 'n', .number = 1 + below(12)};
      }
      return tree;
    }
    Tree& part = tree.parts[static_cast<std::size_t>(below(static_cast<int>(tree.parts.size())))];
    part = changed(part);
    return tree;
  }

 private:
  std::mt19937_64 random_;
};

double value(const Tree& tree, double x, double y) {
  const auto part = [&](std::size_t i) { return value(tree.parts[i], x, y); };
  switch (tree.kind) {
    case 'n':
      return tree.number;
    case 'p':
      return M_PI;
    case 'x':
      return x;
    case 'y':
      return y;
    case '+':
      return part(0) + part(1);
    case '-':
      return part(0) - part(1);
    case '*':
      return part(0) * part(1);
    case '/':
      return part(0) / part(1);
    case '^':
      return std::pow(part(0), tree.number);
    case 'r':
      return std::sqrt(part(0));
    case 's':
      return std::sin(part(0));
    case 'c':
      return std::cos(part(0));
    case 'l':
      return std::log(part(0));
    default:
      return std::fabs(part(0));
  }
}

constexpr double kPoints[][2] = {{1.37, 2.41}, {0.61, 0.83}, {3.9, 0.2},
                                 {-1.2, 1.9},  {2.2, -0.7},  {11.3, 7.1}};

// Whether both are clearly another number at some point where both are defined.
bool differ(const Tree& a, const Tree& b) {
  return std::ranges::any_of(kPoints, [&](const auto& at) {
    const double left = value(a, at[0], at[1]), right = value(b, at[0], at[1]);
    if (!std::isfinite(left) || !std::isfinite(right)) return false;
    if (std::fabs(left) > 1e9 || std::fabs(right) > 1e9) return false;
    return std::fabs(left - right) > 1e-4 * std::max({1.0, std::fabs(left), std::fabs(right)});
  });
}
// Whether it is defined, and of an ordinary size, at most points.
bool tame(const Tree& tree) {
  return 4 <= std::ranges::count_if(kPoints, [&](const auto& at) {
           const double size = std::fabs(value(tree, at[0], at[1]));
           return std::isfinite(size) && size < 1e6;
         });
}

TEST(DifferentAnswers, NoWrongExpressionIsTakenForRight) {
  int wrong = 0;
  for_seeds(4000, [&](std::uint64_t seed) {
    Writer writer(seed);
    const Tree one = writer.tree(1 + writer.below(3), seed % 3 != 0);
    const Tree two = seed % 2 == 0 ? writer.changed(one) : writer.tree(2, seed % 3 != 0);
    if (!differ(one, two)) return;
    ++wrong;
    const std::string a = writer.text(one), b = writer.text(two);
    EXPECT_FALSE(same_answer(a, b).value_or(false)) << a << " and " << b;
    EXPECT_FALSE(same_answer("(1," + a + ")", "(1," + b + ")").value_or(false)) << a << ", " << b;
    EXPECT_FALSE(same_answer("x^5=" + a, "x^5=" + b).value_or(false)) << a << " and " << b;
  });
  RecordProperty("pairs", wrong);
}

TEST(DifferentAnswers, AnExpressionEqualsItsRewritings) {
  int pairs = 0, undecided = 0;
  for_seeds(2000, [&](std::uint64_t seed) {
    Writer writer(seed);
    const Tree tree = writer.tree(1 + writer.below(3), seed % 3 != 0);
    if (!tame(tree)) return;
    ++pairs;
    const std::string a = writer.text(tree), b = writer.text(tree);
    if (!same_answer(a, b).value_or(true)) {
      // Arithmetic that is not worked out is refused beside a number: 2+3 for 5.00.
      ++undecided;
      ADD_FAILURE() << a << " and " << b;
    }
  });
  EXPECT_LE(undecided, pairs / 20);
}

// Tuples, sets and intervals of small fractions and roots.
TEST(DifferentAnswers, NoOtherTupleSetOrIntervalIsTakenForRight) {
  for_seeds(3000, [](std::uint64_t seed) {
    Writer writer(seed);
    struct Item {
      double value;
      std::string text;
    };
    const auto item = [&]() -> Item {
      const int above = 1 + writer.below(6), below = 1 + writer.below(4);
      if (writer.below(2) == 0)
        return {1.0 * above / below,
                "\\frac{" + std::to_string(above) + "}{" + std::to_string(below) + "}"};
      return {above * std::sqrt(below),
              std::to_string(above) + "\\sqrt{" + std::to_string(below) + "}"};
    };
    const auto all = [&](int count) {
      std::vector<Item> items;
      for (int i = 0; i < count; ++i) items.push_back(item());
      return items;
    };
    const auto joined = [](const std::vector<Item>& items) {
      std::string text;
      for (const Item& each : items) text += (text.empty() ? "" : ",") + each.text;
      return text;
    };
    const auto values = [](const std::vector<Item>& items) {
      std::vector<long> rounded;
      for (const Item& each : items) rounded.push_back(std::lround(each.value * 1e6));
      return rounded;
    };
    const auto set_of = [](std::vector<long> list) {
      std::ranges::sort(list);
      list.erase(std::unique(list.begin(), list.end()), list.end());
      return list;
    };
    const std::vector<Item> a = all(1 + writer.below(3)), b = all(1 + writer.below(3));
    if (a.size() > 1 && b.size() > 1) {
      EXPECT_EQ(same_answer("(" + joined(a) + ")", "(" + joined(b) + ")").value_or(false),
                values(a) == values(b))
          << joined(a) << " and " << joined(b);
      EXPECT_EQ(same_answer("[" + joined(a) + ")", "[" + joined(b) + ")").value_or(false),
                values(a) == values(b))
          << joined(a) << " and " << joined(b);
      EXPECT_FALSE(same_answer("[" + joined(a) + ")", "(" + joined(b) + ")").value_or(false));
    }
    EXPECT_EQ(same_answer("\\{" + joined(a) + "\\}", "\\{" + joined(b) + "\\}").value_or(false),
              set_of(values(a)) == set_of(values(b)))
        << joined(a) << " and " << joined(b);
    const double end = a[0].value, other = b[0].value;
    EXPECT_EQ(same_answer("x < " + a[0].text, "(-\\infty," + b[0].text + ")").value_or(false),
              std::fabs(end - other) < 1e-9)
        << joined(a) << " and " << joined(b);
    EXPECT_FALSE(same_answer("x < " + a[0].text, "x > " + b[0].text).value_or(false));
    EXPECT_FALSE(same_answer("x < " + a[0].text, "x \\le " + b[0].text).value_or(false));
  });
}

// Units and their spellings, as \text{…} has them.
const std::vector<std::vector<std::string>> kUnitSpellings = {
    {"mm", "millimeter", "millimetres"},
    {"cm", "centimeters", "centimetre"},
    {"m", "meters", "metre"},
    {"km", "kilometers"},
    {"in", "inches", "in."},
    {"ft", "feet", "foot"},
    {"mi", "miles"},
    {"g", "grams"},
    {"kg", "kilogram"},
    {"lb", "pounds"},
    {"s", "seconds", "sec"},
    {"min", "minutes"},
    {"h", "hours", "hr"},
    {"days", "day"},
    {"weeks", "week"},
    {"dollars", "USD"},
    {"cents", "cent"},
    {"L", "liters", "litre"},
    {"mL", "milliliters", "ml"},
    {"degrees", "degree"},
    {"radians", "rad"},
    {"am", "a.m.", "AM"},
    {"pm", "p.m.", "PM"},
    {"boys", "boy"},
    {"girls", "girl"},
    {"people", "person"},
    {"boxes", "box"},
};

// A unit by the rows of the table above and their powers, and one of its texts.
struct WrittenUnit {
  std::vector<std::pair<int, int>> powers;
  std::string text;
};

WrittenUnit written_unit(Writer& writer) {
  const auto spelled = [&](int row) {
    const auto& spellings = kUnitSpellings[static_cast<std::size_t>(row)];
    return spellings[static_cast<std::size_t>(writer.below(static_cast<int>(spellings.size())))];
  };
  const int known = 20;  // rows whose powers and quotients make sense
  const int row = writer.below(static_cast<int>(kUnitSpellings.size()));
  const int power = row < known ? 1 + writer.below(3) : 1;
  WrittenUnit unit{.powers = {{row, power}}, .text = " " + spelled(row)};
  if (power > 1 && writer.below(2) == 0)
    unit.text = (power == 2 ? " square" : " cubic") + unit.text;
  else if (power > 1)
    unit.text += "^" + std::to_string(power);
  const int below = writer.below(known);
  if (row < known && below != row && writer.below(2) == 0) {
    unit.powers.emplace_back(below, -1);
    unit.text += (writer.below(2) == 0 ? "/" : " per ") + spelled(below);
  }
  unit.text = "\\text{" + unit.text + "}";
  return unit;
}

// One number with two units is one answer exactly where the units are.
TEST(DifferentAnswers, NoOtherUnitIsTakenForRight) {
  int same = 0, tried = 0;
  for_seeds(4000, [&](std::uint64_t seed) {
    Writer writer(seed);
    const WrittenUnit one = written_unit(writer);
    WrittenUnit two = written_unit(writer);
    for (int tries = 0; seed % 3 == 0 && tries < 300 && two.powers != one.powers; ++tries)
      two = written_unit(writer);
    for (const std::string number : {"5", "5\\sqrt{2}", "\\frac{5}{2}"})
      EXPECT_EQ(same_answer(number + one.text, number + two.text).value_or(false),
                one.powers == two.powers)
          << number + one.text << " and " << number + two.text;
    EXPECT_TRUE(same_answer("5" + one.text, "5").value_or(false)) << one.text;
    EXPECT_FALSE(same_answer("5\\%", "5" + one.text).value_or(false)) << one.text;
    same += one.powers == two.powers ? 1 : 0;
    ++tried;
  });
  EXPECT_GT(40 * same, tried) << "the other case is tried as well";
}

TEST(DifferentAnswers, NoWordThatMakesAnotherValueIsTakenForAUnit) {
  for (const std::string words : {"millions",
                                  "hundreds",
                                  "dozens",
                                  "mil",
                                  "lakh",
                                  "lakhs",
                                  "grand",
                                  "quadrillion",
                                  "zillion",
                                  "fifth",
                                  "fifths",
                                  "sixths",
                                  "eighths",
                                  "tenths",
                                  "thousandths",
                                  "millionths",
                                  "degrees below zero",
                                  "m below",
                                  "twice",
                                  "doubled",
                                  "fewer",
                                  "at most",
                                  "at least",
                                  "short of",
                                  "out of ten",
                                  "in ten",
                                  "BC",
                                  "B.C.",
                                  "permille",
                                  "basis points",
                                  "percentage points",
                                  "per cent of all",
                                  "thirds",
                                  "quarters",
                                  "pairs",
                                  "minimum"})
    EXPECT_FALSE(same_answer("5", "5\\text{ " + words + "}").value_or(false)) << words;
  for (const std::string words : {"points", "real roots", "seconds", "logs", "feet high"})
    EXPECT_TRUE(same_answer("5", "5\\text{ " + words + "}").value_or(false)) << words;
}

TEST(DifferentAnswers, NoOtherNumberInWordsIsTakenForRight) {
  const auto same = [](const char* a, const char* b) {
    const bool forth = same_answer(a, b).value_or(false);
    EXPECT_EQ(same_answer(b, a).value_or(false), forth) << a << " and " << b;
    return forth;
  };
  EXPECT_FALSE(same("\\text{1.5 m}", "\\text{15 m}"));
  EXPECT_FALSE(same("\\text{2.5 hours}", "\\text{25 hours}"));
  EXPECT_FALSE(same("\\text{1 1/2 cups}", "\\text{11/2 cups}"));
  EXPECT_FALSE(same("\\text{about 1 1/2}", "\\text{about 11/2}"));
  EXPECT_FALSE(same("\\text{about .5}", "\\text{about 5}"));
  EXPECT_FALSE(same("\\text{Yes, 1.5}", "\\text{Yes, 15}"));
  EXPECT_FALSE(same("\\text{Yes, 1 5}", "\\text{Yes, 15}"));
  EXPECT_FALSE(same("\\text{5 MW}", "\\text{5 mW}"));
  EXPECT_FALSE(same("\\text{about 5 MW}", "\\text{about 5 mW}"));
  EXPECT_FALSE(same("\\text{5 cm}", "\\text{5 m}"));
  EXPECT_FALSE(same("\\text{5 million}", "5"));
  EXPECT_TRUE(same("\\text{5 m}", "\\text{5 m.}"));
  EXPECT_TRUE(same("\\text{5 Hours}", "\\text{5 hours}"));
  EXPECT_TRUE(same("\\text{3.5 hours}", "3.5\\text{ hours}"));
  EXPECT_TRUE(same("\\text{1 1/2 cups}", "1\\frac{1}{2}\\text{ cups}"));
  EXPECT_TRUE(same("\\text{July 4}", "\\text{July 4.}"));
  EXPECT_TRUE(same("\\text{July 4}", "\\text{July  4}"));
  EXPECT_TRUE(same("\\text{no. Solutions}", "\\text{No solutions}"));
}

TEST(DifferentAnswers, PercentIsOneThingInEachSpelling) {
  for (const std::string percent :
       {"percent", "per cent", "pct", "percentage", "Percent", "\\text{ per cent}"}) {
    EXPECT_TRUE(same_answer("10\\%", "10 " + percent).value_or(false)) << percent;
    EXPECT_TRUE(same_answer("0.1", "10 " + percent).value_or(false)) << percent;
    EXPECT_FALSE(same_answer("10\\text{ cm}", "10 " + percent).value_or(false)) << percent;
  }
  EXPECT_FALSE(same_answer("5\\%", "5 percentage points").value_or(false));
  EXPECT_FALSE(same_answer("5\\%", "5\\text{ percentage points}").value_or(false));
}

// A name in capitals equals itself alone.
TEST(DifferentAnswers, NoOtherNameInCapitalsIsTakenForRight) {
  for_seeds(500, [](std::uint64_t seed) {
    Writer writer(seed);
    const auto name = [&] {
      std::string letters;
      for (int left = 2 + writer.below(2); left > 0; --left) letters += "ABCD"[writer.below(4)];
      return letters;
    };
    const std::string a = name(), b = name();
    EXPECT_EQ(same_answer("2" + a, "2" + b).value_or(false), a == b) << a << " and " << b;
  });
}

struct Pair {
  const char *one, *other;
};

void expect_different(std::initializer_list<Pair> pairs) {
  for (const auto& [one, other] : pairs) {
    EXPECT_FALSE(same_answer(one, other).value_or(false)) << one << " and " << other;
    EXPECT_FALSE(same_answer(other, one).value_or(false)) << other << " and " << one;
  }
}

void expect_same(std::initializer_list<Pair> pairs) {
  for (const auto& [one, other] : pairs) {
    EXPECT_TRUE(same_answer(one, other).value_or(false)) << one << " and " << other;
    EXPECT_TRUE(same_answer(other, one).value_or(false)) << other << " and " << one;
    EXPECT_EQ(answer_form(one), answer_form(other)) << one << " and " << other;
  }
}

TEST(DifferentAnswers, TimesOfDayAreNoFractions) {
  expect_different({{"2:30\\text{ pm}", "1:15"},
                    {"2:30\\text{ pm}", "1:15\\text{ pm}"},
                    {"3:20", "6:40"},
                    {"10:30", "1:3"},
                    {"1:30", "2:60"},
                    {"t=3:20", "t=6:40"},
                    {"5:00", "6:00"}});
  expect_same({{"2:30\\text{ pm}", "2:30"},
               {"5:30", "05:30"},
               {"05:00", "5:00"},
               {"2:3", "4:6"},
               {"24:36", "2:3"}});
  EXPECT_NE(answer_form("3:20"), answer_form("6:40"));
}

TEST(DifferentAnswers, PointsAreNotMergedAsIntervals) {
  expect_different({{"(1,5)", "(1,3)\\text{ or }(2,5)"},
                    {"(1,5)\\text{ or }(2,3)", "(1,3)\\text{ or }(2,5)"},
                    {"(1,5)", "(1,3)\\text{ and }(2,5)"}});
  expect_same({{"(2,5)\\text{ or }(1,3)", "(1,3)\\text{ or }(2,5)"},
               {"[1,5)", "[1,3)\\text{ or }(2,5)"},
               {"(1,3)\\text{ or }(4,5)", "(4,5)\\cup(1,3)"},
               {"x<1\\text{ or }x>2", "(-\\infty,1)\\text{ or }(2,\\infty)"}});
  EXPECT_NE(answer_form("(1,5)"), answer_form("(1,3)\\text{ or }(2,5)"));
}

TEST(DifferentAnswers, NamedValuesAreInTheOrderOfTheirNames) {
  expect_same({{"x_1=1,x_2=2,x_{10}=3", "(1,2,3)"},
               {"x_{10}=3,x_2=2,x_1=1", "(1,2,3)"},
               {"a=1,B=2", "(1,2)"},
               {"y=2,x=1", "(1,2)"}});
  expect_different({{"x_1=1,x_2=2,x_{10}=3", "(1,3,2)"}, {"a=1,B=2", "(2,1)"}});
}

TEST(DifferentAnswers, AUnitInBracketsHasNoPower) {
  expect_different({{"(5\\text{ m})^2", "25\\text{ m}"},
                    {"{(5\\text{ m})}^2", "25\\text{ m}"},
                    {"((5\\text{ m}))^2", "25\\text{ m}"},
                    {"(60^\\circ)^2", "3600"},
                    {"(3\\text{ m})!", "6\\text{ m}"},
                    {"(\\sqrt2\\text{ m})(\\sqrt2\\text{ m})", "2\\text{ m}"}});
  expect_same({{"(60^\\circ)", "60^\\circ"}, {"2(\\pi\\text{ m})", "2\\pi\\text{ m}"}});
}

TEST(DifferentAnswers, ANumberInAnotherBaseIsNoProduct) {
  expect_different({{"F_{16}", "1F_{16}"},
                    {"F_{16}", "1\\mathrm{F}_{16}"},
                    {"1F_{16}", "1E_{16}"},
                    {"AF_{16}", "1AF_{16}"},
                    {"2A3F_{16}", "2A3_{16}"}});
  expect_same({{"1F_{16}", "1F_{\\text{sixteen}}"}, {"2A_1", "2\\cdot A_1"}});
}

}  // namespace
}  // namespace tandem::grade
