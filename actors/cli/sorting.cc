#include "actors/cli/sorting.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "actors/cli/arguments.h"
#include "actors/cli/cells.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

// The value at a path of members, or null where one of them is missing. Borrows `item`.
const json* value_at(const json& item, const std::string& path) {
  const json* value = &item;
  for (const auto part : std::views::split(path, '.')) {
    if (!value->is_object()) return nullptr;
    const auto found = value->find(std::string(part.begin(), part.end()));
    if (found == value->end()) return nullptr;
    value = &*found;
  }
  return value;
}

// Numbers by value and before everything else; other values by the text of their cell.
bool is_less(const json& a, const json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() < b.get<double>();
  if (a.is_number() != b.is_number()) return a.is_number();
  return cells::text(a) < cells::text(b);
}

}  // namespace

Result<json> sorted_by(const std::string& field, json items) {
  const bool descending = field.starts_with('-');
  std::string path = field.substr(descending ? 1 : 0);
  // kubectl writes JSONPath, with a dot in front.
  if (path.starts_with('.')) path.erase(0, 1);
  if (path.empty() || items.empty()) return items;
  // Items without a value are kept apart: in no order are they the greatest or the least.
  std::vector<json> with, without;
  std::vector<std::string> names;
  bool known = false;
  for (json& item : items) {
    const json* value = value_at(item, path);
    known = known || value;
    if (item.is_object())
      for (const auto& [name, member] : item.items()) names.push_back(name);
    (value && !value->is_null() ? with : without).push_back(std::move(item));
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  // A misspelt field must not pass for one that all items lack.
  if (!known)
    return usage_error("there is no field `" + path + "` to sort by",
                       did_you_mean(path, names, "one of " + joined(names, ", ")));
  std::ranges::stable_sort(with, [&](const json& a, const json& b) {
    const json &left = *value_at(a, path), &right = *value_at(b, path);
    return descending ? is_less(right, left) : is_less(left, right);
  });
  json sorted(std::move(with));
  for (json& item : without) sorted.push_back(std::move(item));
  return sorted;
}

}  // namespace tandem::cli
