#include "actors/translate/dialects.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "actors/translate/frameworks.h"

namespace tandem::translate {
namespace {

const std::array kDialects = {verl_dialect(),    trl_dialect(),     openrlhf_dialect(),
                              areal_dialect(),   nemo_rl_dialect(), skyrl_dialect(),
                              prime_rl_dialect()};

// The program or the key by which the configuration is known to be of this dialect; empty: it has
// none.
std::string evidence(const Dialect& dialect, const ForeignConfig& config) {
  for (const std::string_view part : dialect.programs)
    if (config.program.find(part) != std::string::npos) return "the program " + config.program;
  for (const std::string_view mark : dialect.marks) {
    const bool section = mark.ends_with('.');
    if (section ? config.has_section(mark.substr(0, mark.size() - 1))
                : config.find(mark) != nullptr)
      return "`" + std::string(mark) + "`";
  }
  return "";
}

std::string looked_for() {
  std::string all;
  for (const Dialect& dialect : kDialects) {
    all += (all.empty() ? "" : "; ") + std::string(dialect.name) + ": ";
    for (std::size_t i = 0; i < std::min<std::size_t>(dialect.marks.size(), 4); ++i)
      all += (i > 0 ? ", `" : "`") + std::string(dialect.marks[i]) + "`";
  }
  return all;
}

}  // namespace

std::span<const Dialect> dialects() { return kDialects; }

const Dialect* find_dialect(std::string_view name) {
  const auto at = std::ranges::find(kDialects, name, &Dialect::name);
  return at == kDialects.end() ? nullptr : &*at;
}

Result<const Dialect*> recognise(const ForeignConfig& config) {
  const Dialect* found = nullptr;
  std::string seen;
  int fitting = 0;
  for (const Dialect& dialect : kDialects) {
    const std::string mark = evidence(dialect, config);
    if (mark.empty()) continue;
    ++fitting;
    found = &dialect;
    seen += (seen.empty() ? "" : ", ") + mark + " of " + std::string(dialect.title);
  }
  if (fitting == 1) return found;
  if (fitting > 1)
    return Error{ErrorCode::kInvalid, "the file could be of several frameworks: " + seen,
                 config.origin(), "say which by `--from NAME`"};
  return Error{ErrorCode::kInvalid, "the file is of no framework that is known here",
               config.origin(),
               "looked for these keys: " + looked_for() + "; `--from NAME` says which it is"};
}

}  // namespace tandem::translate
