// Tests actors/grade/choice.h: which choice a text names, and which texts name several or none.
#include "actors/grade/choice.h"

#include <gtest/gtest.h>

namespace tandem::grade {
namespace {

char letter_of(std::string_view text) {
  const auto choice = choice_of(text);
  return choice ? choice->letter : '-';
}

TEST(Choice, StandsAloneInEachSpelling) {
  for (const char* text : {"B", "(B)", "B.", "B)", "B:", "(B).", " ( B ) ", "\\text{(B)}",
                           "\\text{B}", "\\textbf{(B)}", "\\left(B\\right)",
                           "\\left( \\text{B} \\right)", "$\\mathrm{B}$", "{(B)}"}) {
    const auto choice = choice_of(text);
    ASSERT_TRUE(choice) << text;
    EXPECT_EQ(choice->letter, 'B') << text;
    EXPECT_TRUE(choice->alone) << text;
  }
}

TEST(Choice, MayHaveItsOwnWordsBehindIt) {
  for (const char* text : {"(B) 5", "B) 5", "B) 12", "\\textbf{(B)}\\ \\frac12", "\\text{(B) }12",
                           "(B) -5", "(B) $x^2$", "(B) the triangle ABC", "(B) Bob",
                           "(B) is right, so B.", "(B) f(x)", "(B) 2(a+b)", "(B), since 3 > 2",
                           "(B) A triangle", "(B) A cat", "B) A cat", "(B). I checked it."}) {
    EXPECT_EQ(letter_of(text), 'B') << text;
    EXPECT_FALSE(choice_of(text)->alone) << text;
  }
}

TEST(Choice, IsNoneWhereTheWordsMayNameAnother) {
  for (const char* text : {"A) B) C) D)",
                           "(A) (B) (C)",
                           "(A) B C D",
                           "A) 1 B) 2",
                           "A)1B)2",
                           "A)B)C)",
                           "(A),(B),(C)",
                           "\\text{(B) is wrong, so C}",
                           "\\text{(B)} is wrong, so \\textbf{C}",
                           "(B) or (C)",
                           "(B) or C",
                           "(B)/(C)",
                           "(B) & C",
                           "(B) or (c)",
                           "(B) is what most say but it is C.",
                           "(B) is wrong, (C)",
                           "(B)\nC",
                           "(B) so {C}",
                           "\\text{(B)}\\text{C}",
                           "(B) A",
                           "(B) A is right",
                           "(B) A or",
                           "(B) A.",
                           "(B), so A cat",
                           "B or C",
                           "B and C",
                           "A B",
                           "BC",
                           "(B"})
    EXPECT_EQ(letter_of(text), '-') << text;
}

TEST(Choice, IsNoneInAFormula) {
  for (const char* text :
       {"(C)^2", "(C) ^2", "{(C)}^2", "(C)^{2}", "(A)x", "\\text{(A)}x", "(C)_1", "(C)!", "(C)+1",
        "(C)\\cdot 2", "(C)/2", "B^2", "B+1", "\\sqrt{B}", "x", ""})
    EXPECT_EQ(letter_of(text), '-') << text;
}

}  // namespace
}  // namespace tandem::grade
