// Answers as numbers: texts that hold one, texts that do not, and a list of pairs that the package
// math-verify has judged.
#include "actors/reward/math_answer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <span>
#include <string>

#include "runtime/base/json.h"
#include "tests/seeds.h"

namespace tandem::reward {
namespace {

struct AnswerCase {
  const char* reference;
  const char* completion;
  bool equal;
};

// Numbers as people and models write them.
const AnswerCase kNumbers[] = {
    {"5", "5", true},
    {"5", "6", false},
    {"5", "5.0", true},
    {"5", "05", true},
    {"5", "+5", true},
    {"5", "-5", false},
    {"-5", "-5", true},
    {"-5", "- 5", true},
    {"-5",
     "\xE2\x88\x92"
     "5",
     true},
    {"0", "-0", true},
    {"0", "0.000", true},
    {"0.5", ".5", true},
    {"3", "3.", true},
    {"0.1", "0.10000000000000000000000000000001", false},
    {"0.3", "3/10", true},
    {"1/3", "0.333333", false},
    {"1/3", "2/6", true},
    {"1/3", "\\frac{1}{3}", true},
    {"1/3", "\\dfrac{2}{6}", true},
    {"1/3", "\\tfrac13", true},
    {"-1/3", "-\\frac{1}{3}", true},
    {"-1/3", "\\frac{-1}{3}", true},
    {"1/3", "\\frac{-1}{-3}", true},
    {"1.5", "1 1/2", true},
    {"1.5", "1\\frac{1}{2}", true},
    {"-1.5", "-1 1/2", true},
    {"2.5", "1\\frac{3}{2}", false},
    {"1.5", "1\\frac{3}{2}", false},  // a product, which is no answer
    {"2.5", "1 3/2", false},
    {"2", "1\\frac{2}{2}", false},
    {"0.6", "\\frac{1.5}{2.5}", true},
    {"1/0", "1/0", true},  // not a number, but the same text
    {"5", "5/0", false},
    {"1234", "1,234", true},
    {"1234567.8", "1,234,567.8", true},
    {"1234", "1{,}234", true},
    {"1234", "12,34", false},
    {"1,234", "1234", true},
    {"50%", "0.5", true},
    {"50%", "50\\%", true},
    {"50%", "50", true},
    {"50", "50\\%", true},
    {"50%", "5", false},
    {"0.125", "12.5%", true},
    {"5", "$5", true},
    {"5", "\\$5", true},
    {"5", "$5$", true},
    {"5", "\\(5\\)", true},
    {"5", "5 \\text{ cm}", true},
    {"1200", "1.2e3", true},
    {"0.0012", "1.2E-3", true},
    {"100000000000000000000000001", "100000000000000000000000001", true},
    {"100000000000000000000000001", "100000000000000000000000002", false},
    {"037", "37", true},
};

// Texts that hold the digits of the reference and are another number, or no number.
const AnswerCase kOthers[] = {
    {"5", "\\boxed{\\sqrt{5}}", false},
    {"5", "\\boxed{10^{5}}", false},
    {"100000", "\\boxed{10^{5}}", true},
    {"5", "10^{5}", false},
    {"5", "5\\pi", false},
    {"5", "\\boxed{5\\pi}", false},
    {"2", "\\boxed{\\frac{\\pi}{2}}", false},
    {"2", "\\frac{\\pi}{2}", false},
    {"2", "x^2", false},
    {"2", "\\boxed{x^2}", false},
    {"3", "x\\neq 3", false},
    {"3", "\\boxed{x\\neq 3}", false},
    {"3", "x >= 3", false},
    {"3", "x \xE2\x89\xA0 3", false},
    {"5", "\\boxed{5!}", false},
    {"5", "\\boxed{2+3}", false},
    {"3", "2+3", false},
    {"4", "The answer is \\frac{3}{4}.", false},
    {"3/4", "The answer is \\frac{3}{4}.", true},
    {"3/4", "The answer is $\\frac{3}{4}$.", true},
    {"5", "The answer is $5$ million.", false},
    {"5", "5 million", false},
    {"5", "\\boxed{5\\text{ million}}", false},
    {"72", "\\boxed{72\\text{ clips}}", true},
    {"72", "\\boxed{72 clips}", true},
    {"5", "\\boxed{5 pi}", false},
    {"5", "<answer>5</answer>", true},
    {"5", "**5**", true},
    {"3", "2**3", false},
    {"1/2", "It is 1 1/2", false},
    {"3/2", "It is 1 1/2", true},
    {"234", "It is 1 234", false},
    {"3", "\\boxed{\\sqrt{9}}", true},
    {"1.5", "\\sqrt{\\frac{9}{4}}", true},
    {"1024", "2^{10}", true},
    {"-4", "-2^2", true},
    {"4", "(-2)^2", true},
    {"1/8", "2^{-3}", true},
    {"300000", "3 \\times 10^{5}", true},
    {"6", "\\boxed{2 \\times 3}", false},
    {"90", "90^\\circ", true},
    {"5", "\\boxed{x = 5}", true},
    {"5", "5\\text{ cm}^2", true},
    {"5", "$5 and then $5", true},
    {"\\text{Monday}", "\\boxed{\\text{Tuesday}}", false},
    {"\\text{Monday}", "\\boxed{Monday}", true},
    {"\\{1,2\\}", "\\boxed{2, 1}", true},
    {"(1,2)", "(2,1)", false},
    {"(1,2)", "\\left( 1, \\frac{4}{2} \\right)", true},
    {"[0,\\infty)", "[0, \\infty)", true},
    {"[0,\\infty)", "(0, \\infty)", false},
    {"5", "\\boxed{5} or \\boxed{6", false},
    {"12x", "1 2x", false},
};

// Where the answer stands.
const AnswerCase kSolutions[] = {
    {"5", "The answer is 5.", true},
    {"5", "The answer is 5 apples, not 6.", false},
    {"5", "2+3=5", true},
    {"5", "First 7, so \\boxed{5} and never 9.", true},
    {"5", "\\boxed{4} no, \\boxed{5}", true},
    {"1/2", "thus \\boxed{\\frac{1}{2}}.", true},
    {"1/2", "thus \\boxed{\\frac{1}{2}",
     false},  // the outer brace never closes; the last number is 2
    {"5", "\\boxed {5}", true},
    {"5", "\\boxed{x = 5}", true},
    {"72", "She sold 48+24 = 72 clips.\n#### 72", true},
    {"#### 72", "#### 72", true},
    {"She sold 48+24 = 72 clips.\n#### 72", "It is 72", true},
    {"72", "#### 73\nsurely 72", false},
    {"1234", "so it is #### 1,234", true},
    {"\\boxed{3}", "3", true},
    {"7", "16-9 leaves 7", true},
    {"-7", "it is -7", true},
    {"7", "a range of 5-7", false},
    {"-7", "a range of 5-7", false},
    {"0.5", "about 50%", true},
    {"5", "no number here", false},
    {"5", "", false},
    {"3.14", "pi is 3.14.", true},
    {"3.14", "version 1.3.14", false},
    {"2", "\\boxed{}", false},
};

// Answers that are no numbers.
const AnswerCase kTexts[] = {
    {"x+1", "\\boxed{x + 1}", true},      {"x+1", "x+1", true},
    {"x+1", "\\boxed{x+2}", false},       {"(1,2)", "\\boxed{\\left(1,\\,2\\right)}", true},
    {"\\text{Monday}", "Tuesday", false}, {"Monday", "Monday.", true},
    {"Monday", "It is Monday", false},
};

// Both as plain numbers, which are compared without actors/grade.
const AnswerCase kUnits[] = {
    {"5\\text{ pm}", "5\\text{ am}", false},
    {"5\\text{ p.m.}", "5\\text{ a.m.}", false},
    {"5\\text{ pm}", "5 pm", true},
    {"60\\text{ radians}", "60^\\circ", false},
    {"5\\text{ km/h}", "5\\text{ mph}", false},
    {"5\\text{ km/h}", "5\\text{ kilometers per hour}", true},
    {"5\\text{ m}", "5\\text{ m}^2", false},
    {"5\\text{ m}^3", "5\\text{ m}^2", false},
    {"5\\text{ m}", "5\\text{ m/s}", false},
    {"5\\text{ cm}", "5\\%", false},
    {"5\\text{ cm}", "5^\\circ", false},
    {"5\\text{ cm}", "5\\text{ centimeter}", true},
    {"5\\%", "\\$5", false},
    {"5\\text{ percent}", "5\\text{ cm}", false},
    {"5\\text{ cm}", "5\\text{ percent}", false},
    {"50\\text{ percent}", "0.5", true},
    {"5\\%", "$5", false},
    {"5\\%", "$5$", true},
    {"5\\text{ girls}", "5\\text{ boys}", false},
    {"5\\text{ girls}", "5 girls", true},
    {"\\{5\\text{ cm}, 6\\}", "\\{5\\text{ m}, 6\\}", false},
    {"3\\ \\mathrm{m^2}", "3\\ \\mathrm{m^2}", true},
    {"3", "\\boxed{3\\ \\mathrm{m^2}}", true},
    {"50", "50\\text{percent}", true},
    {"50", "50\\ \\text{ percent}", true},
    {"50\\%", "50\\text{ percent}", true},
    {"0.5", "0.5\\%", false},
    {"2", "2DE", false},
    {"\\{1,2\\}", "\\{1,2,2\\}", true},
    {"1, 2", "1, 2, 2", false},
};

// Where an answer that is no number stands.
const AnswerCase kStatements[] = {
    {"\\frac{\\sqrt3}{2}", "**Answer:** $\\frac{\\sqrt3}{2}$", true},
    {"\\frac{\\sqrt3}{2}", "**Answer:** $\\frac{\\sqrt3}{3}$", false},
    {"\\frac{\\sqrt3}{2}", "The answer is **$\\frac{\\sqrt3}{2}$**.", true},
    {"nx", "The answer is $x**(n)$.", false},
    {"x^n", "The answer is $x**n$.", true},
    {"AB", "BA", false},
    {"B", "The answer is (B).", true},
    {"B", "**Answer: B**", true},
    {"\\text{(B)}", "So the correct answer is B.", true},
    {"B", "The answer is (C).", false},
    {"B", "The answer is (B) or (C).", false},
    {"B", "The answer is (B). No, the answer is (C).", false},
    {"B", "The answer is not (B).", false},
    {"B", "The answer is B minus 1.", false},
};

const AnswerCase kBoxes[] = {
    {"(1,2),(2,1)", "They are \\[ \\boxed{(1, 2)}, \\boxed{(2, 1)} \\]", true},
    {"(1,2),(2,1)", "$\\boxed{(1, 2)}$ and $\\boxed{(3, 1)}$", false},
    {"1, 2", "$\\boxed{1} \\quad \\text{and} \\quad \\boxed{2}$", true},
    {"\\{1,2,3\\}", "\\boxed{1}, \\boxed{2}, \\fbox{3}", true},
    {"k = 45, n = 2", "$$\\boxed{k = 45} \\quad \\text{and} \\quad \\boxed{n = 2}$$", true},
    {"\\boxed{1}\\text{ or }\\boxed{2}", "1, 2", true},
    {"2", "\\boxed{1}, \\boxed{2}", false},
    {"1", "\\boxed{1} or \\boxed{2}", false},
    {"2", "\\boxed{2} and \\boxed{2}", true},
    {"2", "\\boxed{2}; \\boxed {2}", true},
    {"0.5", "$\\boxed{\\frac{1}{2}}$, or $\\boxed{0.5}$", true},
    {"5", "$\\boxed{x=5}$ or $\\boxed{5}$", true},
    {"1, 2, 3", "$\\boxed{1}$, $\\boxed {2}$, and $\\boxed{3}$", true},
    {"x>2 \\text{ and } x<5", "$\\boxed{x>2}$ and $\\boxed{x<5}$", true},
    {"x>2 \\text{ and } x<5", "$\\boxed{x>2}$ or $\\boxed{x<5}$", false},
    {"x<2 \\text{ or } x>3", "$\\boxed{x<2}$ and $\\boxed{x>3}$", true},  // as in one box
    {"(-\\infty,2)\\cup(3,\\infty)", "\\boxed{x<2} \\text{ or } \\boxed{x>3}", true},
    {"2", "$\\boxed{1}$ and or $\\boxed{2}$", true},
    {"2", "first \\boxed{1}, then \\boxed{2}", true},
    {"2", "$\\boxed{1}$ $\\boxed{2}$", true},
    {"2", "\\boxed{\\boxed{2}}", true},
    {"2", "\\boxed{1, \\boxed{2}", true},
    {"C", "\\boxed{B} or \\boxed{C}", false},
    {"125", "The distance is $\\boxed{125\\textnormal{ miles}}$.", true},
};

void check(std::span<const AnswerCase> cases) {
  for (const AnswerCase& c : cases)
    EXPECT_EQ(math_equal(c.reference, c.completion), c.equal)
        << "'" << c.reference << "' and '" << c.completion << "'";
}

TEST(MathAnswer, Numbers) { check(kNumbers); }
TEST(MathAnswer, DigitsInSomethingElseAreNoNumber) { check(kOthers); }
TEST(MathAnswer, WhereTheAnswerStands) { check(kSolutions); }
TEST(MathAnswer, BoxesThatAreJoinedAreOneAnswer) {
  check(kBoxes);
  const auto boxes = [](int count) {
    std::string text = "\\boxed{0}";
    for (int i = 1; i < count; ++i) text += ", \\boxed{" + std::to_string(i) + "}";
    return text;
  };
  EXPECT_TRUE(final_answer(boxes(32)));
  EXPECT_FALSE(final_answer(boxes(33)));
  std::string again = "\\boxed{5}";
  while (again.size() < (1 << 20)) again += ", \\boxed{5}";
  EXPECT_TRUE(math_equal("5", again)) << "and takes no time";
}
TEST(MathAnswer, AnswersThatAreNoNumbers) { check(kTexts); }
TEST(MathAnswer, UnitsOnBothSidesMustAgree) { check(kUnits); }
TEST(MathAnswer, WhereASymbolicAnswerStands) { check(kStatements); }

TEST(MathAnswer, PercentagesAreReadAsTheKeySays) {
  using enum PercentReading;
  EXPECT_TRUE(math_equal("50", "50\\%", kWhole) && math_equal("0.5", "50\\%", kWhole));
  EXPECT_TRUE(math_equal("0.5", "0.5\\%", kBoth) && math_equal("0.5", "50\\%", kBoth));
  EXPECT_TRUE(math_equal("0.5", "50\\%", kValue) && !math_equal("50", "50\\%", kValue));
  EXPECT_TRUE(math_equal("50", "50\\%", kNumber) && !math_equal("0.5", "50\\%", kNumber));
}

TEST(MathAnswer, LongGarbageIsNoNumberAndTakesNoTime) {
  const std::string digits(100'000, '7');
  EXPECT_FALSE(parse_value(digits));
  EXPECT_FALSE(parse_value("1e999999999"));
  EXPECT_FALSE(math_equal("7", digits));
  EXPECT_FALSE(math_equal("7", std::string(100'000, '{')));
  EXPECT_FALSE(math_equal("7", "\\boxed{" + std::string(1000, '{')));
}

// Whatever a completion holds, it is judged in bounded time, is equal to itself or not a number,
// and pays 5 only for a text that is 5.
TEST(MathAnswer, HostileTextsAreJudgedAndValuesEqualThemselves) {
  const std::vector<std::string> pieces = {
      "5",      "10",      "0",       "999", ".",       ",",
      "-",      "/",       "^",       "{",   "}",       "(",
      ")",      "[",       "]",       "\\{", "\\}",     "\\frac",
      "\\sqrt", "\\text{", "$",       "\\(", "%",       "e",
      " ",      "\n",      "=",       "x",   "\\pi",    "\\boxed{",
      "####",   "\\infty", "\\times", "10^", "million", "\xE2\x89\xA0",
      "\xFF",   "**",      "<b>",     "\\"};
  for_seeds(2000, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string text;
    for (std::uint64_t left = random() % 60; left > 0; --left)
      text += pieces[random() % pieces.size()];
    if (const auto value = parse_value(text)) {
      EXPECT_TRUE(same_value(*value, *value, PercentReading::kWhole)) << text;
      EXPECT_TRUE(math_equal(text, "\\boxed{" + text + "}") || text.find('#') != text.npos ||
                  text.find("boxed") != text.npos || text.find_first_of("{}") != text.npos)
          << text;
    }
    if (!math_equal("5", text)) return;
    const auto given = final_answer(text);
    ASSERT_TRUE(given) << text;
    EXPECT_TRUE(parse_value(*given)) << text;
  });
}

// The list that scripts/make_math_pairs.py holds against math-verify.
TEST(MathAnswer, JudgesEachPairOfTheListRightly) {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/golden/math_pairs.jsonl");
  int pairs = 0;
  for (std::string line; std::getline(file, line); ++pairs) {
    const nlohmann::json pair = nlohmann::json::parse(line);
    EXPECT_EQ(
        math_equal(pair["reference"].get<std::string>(), pair["completion"].get<std::string>()),
        pair["right"].get<bool>())
        << line;
  }
  EXPECT_GE(pairs, 300);
}

TEST(MathAnswer, LimitsMakeItNoNumber) {
  const auto repeated = [](const std::string& what, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += what;
    return all;
  };
  EXPECT_FALSE(parse_value(repeated("(", 1000) + "5" + repeated(")", 1000)));
  EXPECT_FALSE(parse_value(repeated("(", 20) + "5" + repeated(")", 20)));
  EXPECT_TRUE(parse_value("((5))"));
  EXPECT_FALSE(parse_value("10^{99999999999999999999}"));
  EXPECT_FALSE(parse_value("999^{1024}"));
  EXPECT_FALSE(parse_value("10^{1e9}"));
  EXPECT_FALSE(parse_value("9^9^9"));
  EXPECT_FALSE(math_equal("5", repeated("\\frac{5}", 200'000)));
  EXPECT_FALSE(math_equal("5", repeated("$5 + ", 200'000)));
}

}  // namespace
}  // namespace tandem::reward
