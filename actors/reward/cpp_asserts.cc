#include "actors/reward/cpp_asserts.h"

#include <string_view>

#include "runtime/base/check.h"

namespace tandem::reward {
namespace {

constexpr std::string_view kAllNames = R"(#if __has_include(<bits/stdc++.h>)
#include <bits/stdc++.h>
#endif
)";

// bits/stdc++.h would take a compiler three times as long.
constexpr std::string_view kUsualNames = R"(#include <algorithm>
#include <cassert>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <stack>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
)";

constexpr std::string_view kStart = R"(#include <cstdio>
#include <cstdlib>
namespace tandem_tests { static unsigned tandem_chosen; }
extern "C" int __real_main(int, char**);
extern "C" int __wrap_main(int count, char** words) {
  char word[256];
  if (std::scanf("%u %255s", &tandem_tests::tandem_chosen, word) != 2) std::_Exit(97);
  if (const int code = __real_main(count, words)) return code;
  std::fputs(word, stdout);
  std::fflush(stdout);
  std::_Exit(0);
}
)";

constexpr std::string_view kRename = "#define main tandem_main_of_the_program\n";

// A program may define NDEBUG or `assert`, which the header defines anew each time.
constexpr std::string_view kBetween = R"(
#undef NDEBUG
#include <cassert>
)";

// A program may have defined `int` as something else.
constexpr std::string_view kOwnMain =
    "signed main() { tandem_cases[tandem_tests::tandem_chosen](); }\n";

std::string_view without_brace(std::string_view text) {
  const auto at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && text[at] == '}' ? text.substr(at + 1) : text;
}

}  // namespace

std::string cpp_program(const std::string& program, CppNames names) {
  // The empty line ends a program that ends with a backslash.
  const std::string renamed = std::string(kRename).append(program).append("\n\n#undef main\n");
  std::string source;
  if (names == CppNames::kAll) source += kAllNames;
  if (names != CppNames::kOwn) source += kUsualNames;
  // The start comes first, so that no macro of the program changes it.
  return source.append(kStart).append(renamed);
}

std::string cpp_with_tests(const std::string& program, const CodeTests& tests, CppNames names) {
  std::string source = cpp_program(program, names).append(kBetween);
  if (names == CppNames::kAll) source += "using namespace std;\n";
  source.append(tests.before).append("\n");
  if (has_main(tests.cases[0].input)) {
    CHECK(tests.cases.size() == 1);
    return source.append(without_brace(tests.cases[0].input));
  }
  std::string list;
  for (std::size_t i = 0; i < tests.cases.size(); ++i) {
    const std::string name = "tandem_case_" + std::to_string(i);
    source += "void " + name + "() {\n" + tests.cases[i].input + ";}\n";
    list += name + ", ";
  }
  return source.append("void (*const tandem_cases[])() = {" + list + "};\n").append(kOwnMain);
}

}  // namespace tandem::reward
