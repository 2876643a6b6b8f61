// The C++ source that judges a model's program by the asserts of its record: headers, the program,
// and the tests. Pure functions.
//
// A `main` of the program is renamed, so that one is there only if the tests have it; without one,
// a `main` is added that runs the case that stdin chooses. NDEBUG is not defined in the tests,
// whatever the program defines.
//
// Stdin holds the index of the case and, behind a space, a word. The word is written to stdout when
// the tests' `main` has returned 0, and nothing is written behind it. For this the executable must
// be linked with kCppAssertsFlag, by which its start calls __wrap_main() in place of main().
#pragma once

#include <cstdint>
#include <string>

#include "actors/reward/code_tests.h"

namespace tandem::reward {

inline constexpr const char* kCppAssertsFlag = "-Wl,--wrap=main";

// The names that are there beside those of the program's own headers.
enum class CppNames : std::uint8_t {
  kUsual,  // of <cassert>, containers, algorithms, mathematics and streams
  kOwn,    // of <cstdio> and <cstdlib>: the others would clash with names of the program, such as
           // a variable `y1`
  kAll,    // of the whole library, and the tests use namespace std, as HumanEval-X and MultiPL-E
           // have it in their prompts
};

// The program without tests. It compiles to an object.
std::string cpp_program(const std::string& program, CppNames names);

// The program with all cases of the tests, or with the only one, which may have a `main`. A `}` at
// the beginning of such a case is left out: MultiPL-E ends the program with it.
std::string cpp_with_tests(const std::string& program, const CodeTests& tests, CppNames names);

}  // namespace tandem::reward
