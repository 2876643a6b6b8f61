#include "actors/reward/math_answer.h"

#include <gtest/gtest.h>

#include <span>

namespace tandem::actors {
namespace {

struct Case {
  const char* reference;
  const char* completion;
  bool equal;
};

// Numbers as people and models write them.
const Case kNumbers[] = {
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
    {"50%", "50", false},
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

// Where the answer stands.
const Case kSolutions[] = {
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
    {"7", "a range of 5-7", true},
    {"-7", "a range of 5-7", false},
    {"0.5", "about 50%", true},
    {"5", "no number here", false},
    {"5", "", false},
    {"3.14", "pi is 3.14.", true},
    {"3.14", "version 1.3.14", false},
    {"2", "\\boxed{}", false},
};

// Answers that are no numbers.
const Case kTexts[] = {
    {"x+1", "\\boxed{x + 1}", true},      {"x+1", "x+1", true},
    {"x+1", "\\boxed{x+2}", false},       {"(1,2)", "\\boxed{\\left(1,\\,2\\right)}", true},
    {"\\text{Monday}", "Tuesday", false}, {"Monday", "Monday.", true},
    {"Monday", "It is Monday", false},
};

void check(std::span<const Case> cases) {
  for (const Case& c : cases)
    EXPECT_EQ(math_equal(c.reference, c.completion), c.equal)
        << "'" << c.reference << "' and '" << c.completion << "'";
}

TEST(MathAnswer, Numbers) { check(kNumbers); }
TEST(MathAnswer, WhereTheAnswerStands) { check(kSolutions); }
TEST(MathAnswer, AnswersThatAreNoNumbers) { check(kTexts); }

TEST(MathAnswer, LongGarbageIsNoNumberAndTakesNoTime) {
  const std::string digits(100'000, '7');
  EXPECT_FALSE(parse_number(digits));
  EXPECT_FALSE(parse_number("1e999999999"));
  EXPECT_FALSE(math_equal("7", digits));
  EXPECT_FALSE(math_equal("7", std::string(100'000, '{')));
  EXPECT_FALSE(math_equal("7", "\\boxed{" + std::string(1000, '{')));
}

}  // namespace
}  // namespace tandem::actors
