#include "actors/reward/code_tests.h"

#include <gtest/gtest.h>

namespace tandem::reward {
namespace {

using nlohmann::json;

TEST(CodeProgram, IsTheLastBlockThatFits) {
  const std::string text =
      "First:\n```python\nprint(1)\n```\nThen:\n```cpp\nint main() "
      "{}\n```\nOutput:\n```text\n1\n```";
  EXPECT_EQ(program_in(text, CodeLanguage::kPython).text, "print(1)\n");
  EXPECT_EQ(program_in(text, CodeLanguage::kCpp).text, "int main() {}\n");
  const CodeProgram found = program_in(text, CodeLanguage::kAuto);
  EXPECT_EQ(found.language, CodeLanguage::kCpp);
  EXPECT_EQ(found.text, "int main() {}\n");
}

TEST(CodeProgram, KnowsEachMarkAndGuessesWithoutOne) {
  for (const char* mark : {"python", "py", "Python", "python3", "py {.cell}"})
    EXPECT_EQ(program_in("```" + std::string(mark) + "\nx\n```", CodeLanguage::kAuto).language,
              CodeLanguage::kPython)
        << mark;
  for (const char* mark : {"cpp", "c++", "C++", "cc", "cxx"})
    EXPECT_EQ(program_in("```" + std::string(mark) + "\nx\n```", CodeLanguage::kAuto).language,
              CodeLanguage::kCpp)
        << mark;
  EXPECT_EQ(program_in("```\n#include <cstdio>\n```", CodeLanguage::kAuto).language,
            CodeLanguage::kCpp);
  EXPECT_EQ(program_in("print(1)", CodeLanguage::kAuto).text, "print(1)");
  EXPECT_EQ(program_in("```python\nprint(1)", CodeLanguage::kAuto).text, "print(1)") << "cut off";
  EXPECT_EQ(program_in("  ```py\n  x = 1\n  ```", CodeLanguage::kAuto).text, "  x = 1\n");
  EXPECT_EQ(program_in("", CodeLanguage::kAuto).text, "");
  EXPECT_EQ(program_in("```", CodeLanguage::kAuto).text, "");
}

CodeTests read(const json& answer, const json& record = json::object()) {
  const auto tests = tests_of(answer, record);
  EXPECT_TRUE(tests) << tests.error().message;
  return tests ? *tests : CodeTests{};
}

TEST(CodeTestsOf, ReadsInputsAndOutputs) {
  const json object{{"inputs", {"1 2\n", {"3", "4"}}}, {"outputs", {"3", "7\n"}}};
  for (const json& answer : {object, json(object.dump())}) {
    const CodeTests tests = read(answer);
    EXPECT_EQ(tests.kind, CaseKind::kOutput);
    ASSERT_EQ(tests.cases.size(), 2u);
    EXPECT_EQ(tests.cases[0].input, "1 2\n");
    EXPECT_EQ(tests.cases[1].input, "3\n4\n") << "a list is its lines";
    EXPECT_EQ(tests.cases[1].expected, "7\n");
  }
  for (const json& list : {json::array({{{"input", "a"}, {"output", "b"}}}),
                           json::array({{{"stdin", "a"}, {"stdout", "b"}}})}) {
    const CodeTests tests = read(list);
    ASSERT_EQ(tests.cases.size(), 1u);
    EXPECT_EQ(tests.cases[0].input + tests.cases[0].expected, "ab");
  }
}

TEST(CodeTestsOf, ReadsCalls) {
  const CodeTests tests = read(
      {{"fn_name", "add"}, {"inputs", {{1, 2}, "[3]\n\"x\""}}, {"outputs", {{3}, "{\"a\": 1}"}}});
  EXPECT_EQ(tests.kind, CaseKind::kCall);
  EXPECT_EQ(tests.function, "add");
  ASSERT_EQ(tests.cases.size(), 2u);
  EXPECT_EQ(tests.cases[0].input, "[1,2]");
  EXPECT_EQ(tests.cases[0].expected, "[3]");
  EXPECT_EQ(tests.cases[1].input, "[[3],\"x\"]") << "a line is an argument";
  EXPECT_EQ(tests.cases[1].expected, "{\"a\":1}");
}

TEST(CodeTestsOf, ReadsAsserts) {
  const json list{"assert f(1) == 1", "assert f(2) == 4"};
  for (const json& answer : {list, json(list.dump()), json{{"assert_case", list}}}) {
    const CodeTests tests = read(answer);
    EXPECT_EQ(tests.kind, CaseKind::kAssert);
    ASSERT_EQ(tests.cases.size(), 2u);
    EXPECT_EQ(tests.cases[1].input, "assert f(2) == 4\n");
  }
  const auto first = [](const CodeTests& tests) { return tests.before + tests.cases[0].input; };
  EXPECT_EQ(first(read({{"test_list", list}, {"test_setup_code", "import math"}})),
            "import math\nassert f(1) == 1\n");
  EXPECT_EQ(read("assert f(1) == 1\nassert f(2) == 4").cases.size(), 1u);
  const json human{{"test", "def check(c):\n    assert c(1) == 1\n"}, {"entry_point", "f"}};
  EXPECT_EQ(first(read(human)), "def check(c):\n    assert c(1) == 1\n\ncheck(f)\n");
  const std::string whole = "int main() {\n  assert(f(1) == 1);\n}";
  for (const json& answer : {json(whole), json{{"test", whole}}, json::array({whole}),
                             json{{"test", whole}, {"entry_point", "f"}}})
    EXPECT_EQ(first(read(answer)), whole + "\n");
  EXPECT_EQ(read("int main() { return f(1) != 1; }").cases.size(), 1u);
}

TEST(CodeTestsOf, SayTheLanguageOfTheProgram) {
  const auto language = [](const json& tests, CodeLanguage wanted = CodeLanguage::kAuto) {
    const auto found = language_for(read(tests), wanted);
    return found ? std::string(spelling(*found)) : found.error().message;
  };
  const json sums{{"inputs", {"1"}}, {"outputs", {"2"}}};
  EXPECT_EQ(language(sums), "auto");
  EXPECT_EQ(language(sums, CodeLanguage::kCpp), "cpp");
  const json call{{"fn_name", "f"}, {"inputs", {{1, 2}, {3, 4}}}, {"outputs", {3, 7}}};
  EXPECT_EQ(language(call), "python");
  EXPECT_EQ(language(call, CodeLanguage::kCpp),
            "the record's tests are of Python (they have an `fn_name`), and `reward.language` is "
            "cpp");
  for (const char* python : {"assert f(1) == 1", "assert  not f(1)",
                             "def check(f):\n  assert(f(1))", "# a; b;\nassert f(';')\n# c;"}) {
    EXPECT_EQ(language(python), "python") << python;
    EXPECT_EQ(language(python, CodeLanguage::kCpp),
              "the record's tests are of Python, and `reward.language` is cpp");
  }
  for (const char* cpp : {"assert(f(1) == 1);", "assert (f(1) == 1); \n", "  assert(f(\n1));",
                          "#include <cassert>\nassert(f(1))", "}\nint main() { assert(f(1)); }",
                          "signed\nmain ( ) { assert(f(1)); }"}) {
    EXPECT_EQ(language(cpp), "cpp") << cpp;
    EXPECT_EQ(language(cpp, CodeLanguage::kPython),
              "the record's tests are of C++, and `reward.language` is python");
  }
  EXPECT_EQ(language("assert(f(1) == 1)"), "python") << "either, and records were of Python first";
  EXPECT_EQ(language("assert(f(1) == 1)", CodeLanguage::kCpp), "cpp");
  EXPECT_EQ(language("assert(main() == 1)"), "python");
}

TEST(CodeTestsOf, LooksIntoTheRecordWhereThereIsNoAnswer) {
  const json pair{{"inputs", {"1"}}, {"outputs", {"2"}}};
  for (const char* column : {"tests", "test_cases", "input_output"}) {
    const json answer = nullptr;
    EXPECT_EQ(read(answer, {{column, pair}}).cases.size(), 1u) << column;
  }
  const CodeTests of_mbpp =
      read(nullptr, {{"test_list", {"assert f()"}}, {"test_setup_code", "a = 1"}});
  EXPECT_EQ(of_mbpp.before, "a = 1\n");
  EXPECT_EQ(of_mbpp.cases[0].input, "assert f()\n");
  EXPECT_EQ(read(nullptr, {{"test", "def check(f): pass"}, {"entry_point", "g"}}).kind,
            CaseKind::kAssert);
}

TEST(CodeTestsOf, RefusesWhatItDoesNotKnow) {
  const auto why = [](const json& answer) {
    const auto tests = tests_of(answer, json::object());
    return tests ? "read" : tests.error().message;
  };
  EXPECT_EQ(why(nullptr),
            "the record's tests cannot be read: it has no answer, and no column `tests`");
  for (const json& odd :
       {json(7), json(true), json("42"), json::array(), json::object(), json("[]"),
        json{{"inputs", {"1"}}, {"outputs", {"1", "2"}}}, json{{"inputs", {1}}, {"outputs", {2}}},
        json{{"inputs", json::array()}, {"outputs", json::array()}},
        json{{"fn_name", "f"}, {"inputs", {"{"}}, {"outputs", {1}}},
        json::array({{{"input", "1"}}}), json::array({"assert 1", 2}),
        json{{"test_list", "assert 1"}}})
    EXPECT_NE(why(odd), "read") << odd;
}

TEST(CodeOutput, IsComparedByLinesAndThenByWords) {
  const auto same = [](const char* expected, const char* output) {
    return same_output(expected, output);
  };
  EXPECT_TRUE(same("1 2\n3\n", "1 2  \r\n3\n\n\n"));
  EXPECT_TRUE(same("1\n2\n", "1 2"));
  EXPECT_TRUE(same("0.5", "0.5000001"));
  EXPECT_TRUE(same("1e9", "1000000000"));
  EXPECT_TRUE(same("2.0", "2"));
  EXPECT_TRUE(same("", "\n"));
  EXPECT_FALSE(same("2", "2.0")) << "a whole number is written as one";
  EXPECT_FALSE(same("0.5", "0.50001"));
  EXPECT_FALSE(same("YES", "yes"));
  EXPECT_FALSE(same("1 2", "12"));
  EXPECT_FALSE(same("1", "1 1"));
  EXPECT_FALSE(same("1", ""));
  EXPECT_FALSE(same("1.0", "nan"));
  EXPECT_FALSE(same("inf", "1e999"));
}

TEST(CodeValue, IsComparedAsJson) {
  EXPECT_TRUE(same_value({1, 2}, {1, 2}));
  EXPECT_TRUE(same_value(json::array({3}), 3)) << "APPS wraps it";
  EXPECT_TRUE(same_value(0.3, 0.1 + 0.2));
  EXPECT_TRUE(same_value({{"a", 1.0}}, {{"a", 1}}));
  EXPECT_FALSE(same_value({1, 2}, {2, 1}));
  EXPECT_FALSE(same_value(3, json::array({3})));
  EXPECT_FALSE(same_value(1, true));
  EXPECT_FALSE(same_value(1, "1"));
  EXPECT_FALSE(same_value({{"a", 1}}, {{"a", 1}, {"b", 2}}));
  EXPECT_FALSE(same_value(9007199254740993, 9007199254740992)) << "exactly";
}

}  // namespace
}  // namespace tandem::reward
