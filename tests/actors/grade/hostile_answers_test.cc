// Texts that are made to take a judge's time. The work is counted by what it allocates: evaluation
// has a budget of its own (budget.h), and all else that could grow makes expressions, terms or
// texts. Tests actors/grade/same_answer.h, actors/grade/answer_form.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "actors/grade/answer_form.h"
#include "actors/grade/same_answer.h"
#include "tests/allocations.h"

namespace tandem::grade {
namespace {

TEST(HostileAnswers, AreJudgedByBoundedWork) {
  constexpr std::size_t kAllocationsMax = 300'000;
  const auto repeated = [](const std::string& what, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += what;
    return all;
  };
  const std::string texts[] = {
      "10^{10^{10}}",
      "((10^{10})^{10})^{10}",
      "99999999999!",
      "(((9!)!)!)!",
      "\\binom{1000000000}{500000000}",
      "e^{e^{e^{e^{x}}}}",
      "(a+b+c+d+e+f+g)^{4000}",
      "(x+1)^{4000}-(x-1)^{4000}",
      repeated("(x+y+z)^9", 60),
      repeated("\\sqrt{x+", 30) + "1" + repeated("}", 30),
      repeated("{", 2000),
      repeated("(", 2000),
      repeated("-", 2000),
      repeated("|", 2000),
      repeated("\\sin ", 400) + "x",
      repeated("\\ln|", 200),
      repeated("\\frac{1}{x+", 30) + "1" + repeated("}", 30),
      repeated("1\\frac1{", 25) + "2" + repeated("}", 25) + repeated(",1", 390),
      repeated("\\arctan{x}+", 180) + "1",
      repeated("\\ln{x}+", 280) + "1",
      repeated("x,", 1000) + "x",
      repeated("\\sin{x},", 250) + "x",
      "\\{" + repeated("\\sqrt{x+1},", 180) + "x\\}",
      repeated("\\pm ", 600) + "1",
      repeated("1 \\pm 2,", 150) + "1",
      repeated("(1,2)\\cup ", 190) + "(1,2)",
      repeated("\\begin{pmatrix}", 100),
      repeated("x^", 900) + "2",
      repeated("5!", 1000),
      repeated("5", 2048),
      "0." + repeated("3", 2000),
      repeated("\\text{", 300),
      "\\sin(10^{40})",
      "x\\ne(" + repeated("1cm,2m,3in,4ft,", 100) + "5)",
      repeated("5\\text{ red ball/cubic cm},", 60) + "5",
      "5\\text{" + repeated("cm/", 600) + "}",
      repeated("\\{1\\}\\cup ", 180) + "\\{1\\}",
      repeated("x<1 and ", 200) + "x<1",
      repeated("(x+y+z)^9(x+y+z)^9(x+y+z)^8\\sin x,", 30) + "1",
      "(" + repeated("x+y+z,", 100) + "1)",
      repeated("((x+1)^{1/3}+y)^{", 14) + "2" + repeated("}", 14),
  };
  std::size_t most = 0;
  for (const std::string& text : texts)
    for (const std::string& other : {text + "+x", std::string("x"), text}) {
      const std::size_t before = test::allocations();
      (void)same_answer(text, other);
      const std::size_t judged = test::allocations() - before;
      EXPECT_LT(judged, kAllocationsMax) << text.substr(0, 60);
      most = std::max(most, judged);
    }
  for (const std::string& text : texts) {
    const std::size_t before = test::allocations();
    (void)answer_form(text);
    EXPECT_LT(test::allocations() - before, kAllocationsMax) << text.substr(0, 60);
  }
  EXPECT_GT(most, kAllocationsMax / 10) << "the limit says little";
}

}  // namespace
}  // namespace tandem::grade
