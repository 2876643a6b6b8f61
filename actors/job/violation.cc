#include "actors/job/violation.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tandem::job {
namespace {

bool is_variable_name(std::string_view name) {
  const auto letter = [](unsigned char c) { return c == '_' || (c < 128 && std::isalpha(c)); };
  return !name.empty() && letter(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(
             name, [&](unsigned char c) { return letter(c) || (c < 128 && std::isdigit(c)); });
}

}  // namespace

void check_variables(const std::map<std::string, std::string>& env, const std::string& key,
                     std::vector<Violation>& broken) {
  for (const auto& [name, value] : env)
    if (!is_variable_name(name))
      broken.push_back({key, "`" + name + "` cannot name an environment variable",
                        "letters, digits and `_`, not starting with a digit"});
}

}  // namespace tandem::job
