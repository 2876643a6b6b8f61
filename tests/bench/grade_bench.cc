// The answers that the reward `math` judges in a second, one thread: grade/KIND/VERDICT. Integers,
// as GSM8K and arithmetic have them, stand in a box, behind "####" or at the end of a solution of a
// few sentences; the other kinds are decided by algebra and by evaluation. A wrong completion also
// costs the form of its answer, by which it votes (actors/reward/math_answer.h).
#include <benchmark/benchmark.h>

#include <string>

#include "actors/reward/math_answer.h"
#include "runtime/base/check.h"

namespace tandem::bench {
namespace {

// A solution as models write it, with numbers in it that are not the answer.
const char* const kSolution =
    "Natalia sold 48 clips to her friends in April, and half as many in May. In May she sold 48 / "
    "2 "
    "= 24 clips. Altogether she sold 48 + 24 = 72 clips in April and May. Each clip costs $0.50, "
    "so "
    "that the 72 clips bring 72 * 0.50 = $36, of which 25% are spent on wire and paint.\n";

struct Case {
  const char* name;
  std::string reference;
  std::string right, wrong;  // completions
};

const Case kCases[] = {
    {"integer/bare", "72", "72", "73"},
    {"integer/boxed", "72", "\\boxed{72}", "\\boxed{73}"},
    {"integer/gsm8k", "72", kSolution + std::string("#### 72"), kSolution + std::string("#### 73")},
    {"integer/sentence", "72", kSolution + std::string("The answer is 72."),
     kSolution + std::string("The answer is 73.")},
    {"integer/boxed_solution", "72", kSolution + std::string("So we get \\boxed{72}."),
     kSolution + std::string("So we get \\boxed{73}.")},
    {"fraction", "\\frac{1}{2}", "\\boxed{0.5}", "\\boxed{\\frac{2}{3}}"},
    {"radical", "2\\sqrt{3}", "\\boxed{\\sqrt{12}}", "\\boxed{\\sqrt{13}}"},
    {"polynomial", "x^2-5x+6", "\\boxed{(x-2)(x-3)}", "\\boxed{(x-2)(x+3)}"},
    {"nested_radical", "\\sqrt{2}+\\sqrt{3}", "\\boxed{\\sqrt{5+2\\sqrt{6}}}",
     "\\boxed{\\sqrt{5+3\\sqrt{6}}}"},
};

void judge(benchmark::State& state, const Case& given, bool right) {
  const std::string& completion = right ? given.right : given.wrong;
  for (auto _ : state) {
    const reward::MathVerdict verdict = reward::judge_math(given.reference, completion);
    CHECK(verdict.right == right);
    benchmark::DoNotOptimize(verdict);
  }
  state.SetItemsProcessed(state.iterations());
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  using namespace tandem::bench;
  for (const Case& given : kCases)
    for (const bool right : {true, false})
      benchmark::RegisterBenchmark(
          ("grade/" + std::string(given.name) + (right ? "/right" : "/wrong")).c_str(),
          [&given, right](benchmark::State& state) { judge(state, given, right); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
