// Real programs against tests, in whatever sandbox this machine gives; C++ where there is a
// compiler.
//
// Tests actors/reward/code_judge.h, actors/reward/code_verifier.h, actors/reward/cpp_asserts.h.
#include "actors/reward/code_judge.h"

#include <gtest/gtest.h>

#include "actors/reward/reward_sandbox.h"
#include "runtime/sandbox/probe.h"
#include "tests/actors/reward/judge_items.h"

namespace tandem::reward {
namespace {

using nlohmann::json;
using sandbox::SandboxMode;
using namespace std::chrono_literals;

class CodeRewards : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto plan = sandbox::plan_of(SandboxMode::kAuto, sandbox::probe_layers()); !plan)
      GTEST_SKIP() << render(plan.error());
  }
  // `tests` is the answer of each completion's record.
  std::vector<messages::TrajectoryScore> scores(const std::vector<std::string>& completions,
                                                const json& tests) {
    RewardParts parts = one({.type = VerifierType::kCode, .code = reward, .sandbox = mode});
    EXPECT_TRUE(enter_sandboxes(parts, {}));
    std::vector<ScoreItem> items;
    for (const std::string& completion : completions) items.push_back(item(completion, tests));
    const auto judged = judge(parts, items);
    EXPECT_TRUE(judged) << judged.error().message;
    return judged ? *judged : std::vector<messages::TrajectoryScore>(completions.size());
  }
  messages::TrajectoryScore score(const std::string& completion, const json& tests) {
    return scores({completion}, tests).front();
  }
  std::string why(const messages::TrajectoryScore& score) { return extra(score).value("why", ""); }
  CodeReward reward;
  SandboxMode mode = SandboxMode::kAuto;
};

const json kSums{{"inputs", {"1 2\n", "3 4\n", "5 6\n"}}, {"outputs", {"3\n", "7\n", "11\n"}}};

TEST_F(CodeRewards, ProgramsAreJudgedByTheirOutput) {
  const auto all = scores({"```python\nprint(sum(map(int, input().split())))\n```",
                           "import sys\nif __name__ == '__main__':\n  a, b = map(int, "
                           "sys.stdin.read().split())\n  print(a + b)",
                           "```python\nprint(3)\n```"},
                          kSums);
  EXPECT_EQ(value(all[0]), 1);
  EXPECT_EQ(extra(all[0]), json({{"passed", 3},
                                 {"cases", 3},
                                 {"language", "python"},
                                 {"results", {"passed", "passed", "passed"}}}));
  EXPECT_EQ(value(all[1]), 1);
  EXPECT_EQ(value(all[2]), 0);
  EXPECT_EQ(extra(all[2])["results"], json({"passed", "wrong", "not run"}));
  EXPECT_EQ(why(all[2]), "case 2: expected \"7\\n\", not \"3\\n\"");
}

TEST_F(CodeRewards, PackagesAreThereForTheFirstImportThatNeedsThem) {
  const json tests{{"inputs", {""}}, {"outputs", {"False True"}}};
  EXPECT_EQ(value(score(R"(
import json, sys
def has_packages(): return any(p.endswith("-packages") for p in sys.path)
before = has_packages()
try: import no_module_has_this_name
except ModuleNotFoundError: print(before, has_packages())
exit(0)
)",
                        tests)),
            1);
}

TEST_F(CodeRewards, AFractionCountsEveryCase) {
  reward.score = CodeScore::kFraction;
  const auto half = score("```py\na, b = map(int, input().split())\nprint(7)\n```", kSums);
  EXPECT_DOUBLE_EQ(value(half), 1.0 / 3);
  EXPECT_EQ(extra(half)["results"], json({"wrong", "passed", "wrong"}));
  reward.cases_max = 1;
  EXPECT_EQ(value(score("print(3)", kSums)), 1);
}

TEST_F(CodeRewards, FunctionsAreCalled) {
  const json tests{{"fn_name", "add"}, {"inputs", {{1, 2}, {3, 4}}}, {"outputs", {{3}, {7}}}};
  EXPECT_EQ(value(score("def add(a, b):\n  print('noise')\n  return a + b", tests)), 1);
  EXPECT_EQ(value(score("class Solution:\n  def add(self, a, b): return a + b", tests)), 1);
  EXPECT_EQ(why(score("def add(a, b): return a - b", tests)),
            "case 1: expected \"[3]\", not \"-1\"");
  EXPECT_EQ(why(score("import os\nos._exit(0)", tests)), "case 1: it ended without an answer");
  const auto missing = score("def sub(a, b): return 0", tests);
  EXPECT_EQ(value(missing), 0);
  expect_part(why(missing), "NameError");
}

TEST_F(CodeRewards, AssertsMustRunToTheirEnd_CJ1) {
  const json tests{"assert square(2) == 4", "assert square(3) == 9"};
  EXPECT_EQ(value(score("def square(x): return x * x", tests)), 1);
  const auto wrong = score("def square(x): return 4", tests);
  EXPECT_EQ(value(wrong), 0);
  EXPECT_EQ(extra(wrong)["results"], json({"passed", "wrong"}));
  for (const char* early : {"import os\nos._exit(0)", "import sys\nsys.exit(0)", "raise SystemExit",
                            "def square(x):\n  import os\n  os._exit(0)", "exit()"}) {
    const auto left = score(early, tests);
    EXPECT_EQ(value(left), 0) << early;
    EXPECT_EQ(extra(left)["results"][0], "error") << early;
  }
}

TEST_F(CodeRewards, CppAssertsMustRunToTheirEnd_CJ1) {
  if (compiler_here().empty()) GTEST_SKIP() << "no C++ compiler";
  const json tests{"assert(square(2) == 4);", "assert(square(3) == 9);", "assert(square(4) > 4);"};
  const std::string right = "int square(int x) { return x * x; }\n";
  const auto passed = score(right, tests);
  EXPECT_EQ(value(passed), 1) << why(passed);
  EXPECT_EQ(extra(passed)["language"], "cpp");
  const auto wrong = score("int square(int) { return 4; }", tests);
  EXPECT_EQ(value(wrong), 0);
  EXPECT_EQ(extra(wrong)["results"], json({"passed", "wrong", "not run"}));
  EXPECT_EQ(why(wrong), "case 2: an assert failed: square(3) == 9");
  reward.score = CodeScore::kFraction;
  const auto part =
      score("int square(int x) { std::cout << x; if (x == 3) std::abort(); return x * x; }", tests);
  EXPECT_EQ(extra(part)["results"], json({"passed", "error", "passed"})) << why(part);
  EXPECT_DOUBLE_EQ(value(part), 2.0 / 3);
  reward.cases_max = 1;
  EXPECT_EQ(value(score("int square(int) { return 4; }", tests)), 1);
  for (const auto& left :
       scores({"int square(int) { std::exit(0); }", "int square(int) { std::_Exit(0); }",
               "struct Early { Early() { std::exit(0); } } early; int square(int) { return 4; }"},
              tests)) {
    EXPECT_EQ(value(left), 0);
    EXPECT_EQ(extra(left)["results"], json({"error"}));
    EXPECT_EQ(why(left), "case 1: it ended before the asserts did");
  }
}

TEST_F(CodeRewards, AProgramHasNoSayInTheAssertsOfCpp) {
  if (compiler_here().empty()) GTEST_SKIP() << "no C++ compiler";
  const auto all =
      scores({"int square(int x) { return x * x; }\nint main() { square(1); return 1; }",
              "#define int long long\nint square(int x) { return x * x; }\nsigned main() {}  // \\",
              "#define NDEBUG\n#include <cassert>\nint square(int) { return 4; }",
              "#undef assert\n#define assert(x)\nint square(int) { return 4; }",
              "int cases, chosen, word;\nint square(int x) { return x * x; }",
              "int y1 = 3;\nint square(int) { return y1 * y1; }\nint main() {}",
              "#define int long long\nint y1 = 3;\nint square(int) { return y1 * y1; }",
              "#define chosen best\nint square(int x) { return x * x; }",
              "#include <cstdio>\nint y1;\nint square(int) { return 4; }\n"
              "extern \"C\" int __wrap_main(int, char**) {\n"
              "  char word[256];\n  std::scanf(\"%*u %255s\", word);\n  std::puts(word);\n"
              "  return 0;\n}\n#define __wrap_main unused"},
             json::array({"assert(square(3) == 9);"}));
  EXPECT_EQ(value(all[0]), 1) << why(all[0]);
  EXPECT_EQ(value(all[1]), 1) << why(all[1]);
  EXPECT_EQ(why(all[2]), "case 1: an assert failed: square(3) == 9");
  EXPECT_EQ(why(all[3]), "case 1: an assert failed: square(3) == 9");
  EXPECT_EQ(value(all[4]), 1) << "names of its own are not in the way: " << why(all[4]);
  EXPECT_EQ(value(all[5]), 1) << "nor one that <cmath> has: " << why(all[5]);
  EXPECT_EQ(value(all[6]), 1) << "nor that with another `int`: " << why(all[6]);
  EXPECT_EQ(value(all[7]), 1) << "nor a macro: " << why(all[7]);
  EXPECT_EQ(value(all[8]), 0) << "a start of its own is none, also beside such a name";
}

TEST_F(CodeRewards, CppTestsMayHaveAMain) {
  if (compiler_here().empty()) GTEST_SKIP() << "no C++ compiler";
  const std::string right =
      "std::vector<int> twice(std::vector<int> x) { for (int& one : x) one *= "
      "2; return x; }\nint main() { return 7; }";
  const std::string human_x =
      "#undef NDEBUG\n#include<assert.h>\nbool same(vector<int> a,vector<int> b){return a==b;}\n"
      "int main(){\n    assert (same(twice({1,2}),{2,4}));\n}\n";
  const std::string multiple =
      "}\nint main() {\n    auto candidate = twice;\n    "
      "assert(candidate((std::vector<int>({(int)1}))) == (std::vector<int>({(int)2})));\n}\n";
  for (const json& tests : {json(multiple), json{{"test", human_x}, {"entry_point", "twice"}}}) {
    const auto one = score(right, tests);
    EXPECT_EQ(value(one), 1) << why(one);
  }
  reward.score = CodeScore::kFraction;
  const auto wrong =
      score("#include <vector>\nstd::vector<int> twice(std::vector<int>) { return {2}; }",
            json::array({human_x, multiple}));
  EXPECT_EQ(extra(wrong)["results"], json({"wrong", "passed"})) << why(wrong);
  expect_part(why(wrong), "an assert failed: same(twice({1,2}),{2,4})");
  const json check{{"test", "template <class F>\nvoid check(F f) {\n  assert(f(2) == 4);\n}\n"},
                   {"entry_point", "square"}};
  EXPECT_EQ(value(score("int square(int x) { return x * x; }", check)), 1);
  EXPECT_EQ(why(score("int square(int x) { return x * x; }",
                      "int main() { if (square(2) == 4) return 3; }")),
            "case 1: it exited with code 3");
}

TEST_F(CodeRewards, WhatDoesNotCompileOfCppAssertsIsNamed) {
  if (compiler_here().empty()) GTEST_SKIP() << "no C++ compiler";
  const json tests{"assert(square(2) == 4);", "assert(square(3) == 9);"};
  const auto program = score("int square(int x) { return y; }", tests);
  EXPECT_EQ(value(program), 0);
  EXPECT_EQ(extra(program)["results"], json({"error", "not run"}));
  expect_part(why(program), "case 1: it does not compile: error: ");
  for (const auto& [with, odd] :
       {std::pair{"int cube(int x) { return x; }", tests},
        std::pair{"int square(int x) { return x * x; }",
                  json{"assert(square(2) == 4);", "assert(square(3 == 9);"}}}) {
    const auto one = score(with, odd);
    EXPECT_EQ(value(one), 0);
    EXPECT_EQ(extra(one)["results"], json({"error", "not run"}));
    expect_part(why(one), "case 1: it compiles, but not with its tests: error: ");
  }
}

TEST_F(CodeRewards, FaultsOfAProgramAreZerosWithTheirReason) {
  reward.case_timeout = 1s;
  reward.memory_bytes = 256u << 20;
  const json tests{{"inputs", {"1\n"}}, {"outputs", {"1\n"}}};
  const auto all =
      scores({"print(1 / 0)", "print(", "while True: pass", "print('x' * (64 << 20))",
              "x = bytearray(1 << 30)\nprint(1)", "import os\nwhile True: os.fork()",
              "import os\nos.kill(os.getpid(), 11)", "import socket\nsocket.socket()\nprint(1)",
              "import time\ntime.sleep(1000)", ""},
             tests);
  for (const auto& one : all) EXPECT_EQ(value(one), 0) << reason(one);
  expect_part(why(all[0]), "ZeroDivisionError");
  expect_part(why(all[1]), "SyntaxError");
  EXPECT_EQ(extra(all[2])["results"], json({"timeout"}));
  expect_part(why(all[3]), "it wrote more than");
  EXPECT_EQ(extra(all[4])["results"], json({"error"}));
  expect_part(why(all[6]), "Segmentation fault");
  expect_part(why(all[7]), "Permission");
  EXPECT_EQ(extra(all[8])["results"], json({"timeout"}));
  EXPECT_EQ(extra(all[9])["results"], json({"wrong"}));
}

TEST_F(CodeRewards, MalformedTestsAreFailuresAndNoZeros) {  // RW-2
  const auto failed = score("print(1)", {{"inputs", {"1"}}});
  expect_part(reason(failed), "the record's tests cannot be read");
  reward.language = CodeLanguage::kCpp;
  if (compiler_here().empty()) return;
  for (const json& tests :
       {json{"assert f()"},
        json{{"fn_name", "f"}, {"inputs", {{1, 2}, {3, 4}}}, {"outputs", {3, 7}}}})
    expect_part(reason(score("int main() {}", tests)), "`reward.language` is cpp");
}

TEST_F(CodeRewards, CppIsCompiledAndRun) {
  if (compiler_here().empty()) GTEST_SKIP() << "no C++ compiler";
  const auto all = scores(
      {"```cpp\n#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + "
       "b; "
       "}\n```",
       "```cpp\nint main() { return *(volatile int*)0; }\n```",
       "```c++\nint main() { for (;;) asm volatile(\"\"); }\n```", "```cpp\nint main() { x }\n```",
       "```cpp\n#include \"/etc/shadow\"\nint main() {}\n```",
       "```python\nprint(sum(map(int, input().split())))\n```"},
      kSums);
  EXPECT_EQ(value(all[0]), 1) << why(all[0]);
  EXPECT_EQ(extra(all[0])["language"], "cpp");
  EXPECT_EQ(value(all[1]), 0);
  expect_part(why(all[1]), "Segmentation fault");
  EXPECT_EQ(extra(all[2])["results"][0], "timeout");
  EXPECT_EQ(value(all[3]), 0);
  expect_part(why(all[3]), "it does not compile: error:");
  expect_part(why(all[4]), "it does not compile");
  EXPECT_EQ(value(all[5]), 1);
}

// RW-2
TEST(CodeCompiler, OneThatCompilesNothingIsAFailureAndNoZero) {
  const CodeProgram program{CodeLanguage::kCpp, "int main() {}"};
  const CodeTests tests{.kind = CaseKind::kOutput, .cases = {{.input = "", .expected = ""}}};
  CodeTools tools{.box = {sandbox::no_sandbox(), {}}, .compiler = "/bin/false"};
  EXPECT_EQ(reason(judge_code(tools, program, tests, -1)),
            "/bin/false does not even compile an empty program: it exited with code 1");
  // As a plain container on Linux 6.11 has it.
  const sandbox::Layers layers{.landlock_abi = 5, .seccomp = true};
  tools.box.plan = sandbox::plan_of(SandboxMode::kAuto, layers).value();
  tools.compiler = compiler_here();
  if (tools.compiler.empty()) GTEST_SKIP() << "no C++ compiler";
  EXPECT_EQ(reason(judge_code(tools, program, tests, -1)),
            "a C++ compiler starts processes, and the sandbox of this node refuses them");
}

TEST_F(CodeRewards, WithoutASandboxProgramsHaveTheRightsOfTheReward) {
  const json tests{{"inputs", {""}}, {"outputs", {"1"}}};
  const std::string program = "import socket\nsocket.socket()\nprint(1)";
  EXPECT_EQ(value(score(program, tests)), 0);
  mode = SandboxMode::kOff;
  EXPECT_EQ(value(score(program, tests)), 1);
}

TEST_F(CodeRewards, TheLogSaysWhatWasReached) {
  RewardParts parts = one({.type = VerifierType::kCode, .sandbox = SandboxMode::kAuto});
  ASSERT_TRUE(enter_sandboxes(parts, {}));
  const std::string said = describe(parts);
  expect_part(said, "type=code language=auto score=all case_timeout_s=4.0");
  expect_part(said, "sandbox=\"auto: ");
}

TEST(CodeInterpreter, IsTheRealOneOrAnError) {
  EXPECT_FALSE(interpreter_of("no-such-python"));
  const auto none = interpreter_of("true");
  ASSERT_FALSE(none);
  expect_part(none.error().message, "is no Python that runs");
  const auto found = interpreter_of("python3");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->starts_with('/'));
}

}  // namespace
}  // namespace tandem::reward
