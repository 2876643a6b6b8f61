// The reward `code` without its programs: which program a completion holds, which tests a record
// holds, and whether a result is the one that was asked for. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/reward/code_choices.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::reward {

struct CodeProgram {
  CodeLanguage language = CodeLanguage::kPython;  // not kAuto
  std::string text;
};

// The last fenced block (```python, ```cpp, …) that is marked as `wanted`, or not marked; else the
// last one; without any, the whole completion. A block that is not closed ends with the text. With
// kAuto every mark of a known language fits, and a program without one is C++ where it includes a
// header.
CodeProgram program_in(std::string_view completion, CodeLanguage wanted);

enum class CaseKind : std::uint8_t {
  kOutput,  // `input` is read from stdin, `expected` is a text that stdout must hold
  kCall,    // `input` is a JSON list of arguments, `expected` the JSON that the function returns
  kAssert,  // `input` is a text of Python, or of C++, that must run to its end
};

struct CodeCase {
  std::string input, expected;
};

struct CodeTests {
  CaseKind kind = CaseKind::kOutput;
  std::string function;         // of kCall
  std::string before;           // of kAssert: a text before each case
  std::vector<CodeCase> cases;  // not empty
};

// The tests of a record: its answer, or where that is null the column `tests`, `test_cases`,
// `input_output`, `test_list` or `test` of the record. Forms, as JSON or as a text that holds it:
//
//   {"inputs": […], "outputs": […], "fn_name": "f"}        APPS, TACO, verl; fn_name may lack
//   [{"input": …, "output": …}, …]                         also stdin and stdout
//   ["assert f(1) == 2", …], {"assert_case": […]}, {"test_list": […], "test_setup_code": …}  MBPP
//   {"test": "def check(candidate): …", "entry_point": "f"}                               HumanEval
//   a text that is no JSON and must run to its end              HumanEval-X, MultiPL-E, of C++
//
// A `test` of C++ that has a `main` is not called by its entry point. kInvalid, with what is wrong,
// for anything else.
Result<CodeTests> tests_of(const nlohmann::json& answer, const nlohmann::json& record);

// The language that a program must be written in for these tests. It is `wanted`, unless that is
// kAuto and the tests are asserts or calls, which are of a language: C++ where an assert includes a
// header, has a `main`, or has a line that ends with `;`, else Python. kInvalid where `wanted` is a
// language in which the tests are not: asserts of C++ have parentheses, those of Python no `;`, and
// functions are called in Python alone.
Result<CodeLanguage> language_for(const CodeTests& tests, CodeLanguage wanted);

// Whether a text of C++ defines a `main`.
bool has_main(std::string_view text);

// Whether an output is right: equal lines, trailing white space aside, or else equal words, of
// which numbers with a point or an exponent may differ by 1e-6, absolutely or relatively.
bool same_output(std::string_view expected, std::string_view output);

// Whether a returned value is right: equal JSON, numbers that are not whole as in same_output().
// APPS wraps some values in a list of one, which is taken off.
bool same_value(const nlohmann::json& expected, const nlohmann::json& value);

}  // namespace tandem::reward
