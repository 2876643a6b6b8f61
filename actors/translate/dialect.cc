#include "actors/translate/dialect.h"

#include <algorithm>

namespace tandem::translate {
namespace {

bool fits(std::string_view pattern, std::string_view key) {
  if (!pattern.ends_with('*')) return pattern == key;
  return key.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

bool learns_the_same(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& finding) {
    return finding.severity == Severity::kDiffers || finding.severity == Severity::kUnknown;
  });
}

const Rule* find_rule(const Dialect& dialect, std::string_view key) {
  const Rule* best = nullptr;
  for (const Rule& rule : dialect.rules)
    if (fits(rule.key, key) && (!best || rule.key.size() > best->key.size())) best = &rule;
  return best;
}

}  // namespace tandem::translate
