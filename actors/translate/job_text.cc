#include "actors/translate/job_text.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "actors/job/job_table.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::translate {
namespace {

using nlohmann::json;

// A value in YAML's flow form, as a printed job has it.
std::string flow(const json& value) {
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    return job::print_value(&text);
  }
  if (value.is_number_float()) {
    double number = value.get<double>();
    return job::print_value(&number);
  }
  if (!value.is_structured()) return dump_json(value);
  std::string items;
  for (const auto& [key, item] : value.items())
    items += (items.empty() ? "" : ", ") + (value.is_object() ? flow(key) + ": " : "") + flow(item);
  return value.is_array() ? "[" + items + "]" : "{" + items + "}";
}

// The place of a key in the job file: its row in the table. Parts of the reward come behind the
// reward's own keys, in the order in which they were set.
std::tuple<std::size_t, std::size_t, std::size_t> place_of(const std::string& path,
                                                           std::vector<std::string>& parts) {
  const job::TablePath in_table = job::table_path(path);
  const auto keys = job::job_keys();
  std::size_t row = 0, end_of_reward = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].path == in_table.path) row = i;
    if (keys[i].path.starts_with("reward.")) end_of_reward = i;
  }
  if (in_table.part.empty()) return {row, 0, 0};
  auto part = std::ranges::find(parts, in_table.part);
  if (part == parts.end()) part = parts.insert(parts.end(), in_table.part);
  return {end_of_reward, 1 + static_cast<std::size_t>(part - parts.begin()), row};
}

}  // namespace

std::vector<job::PrintedKey> printed_values(const std::vector<JobValue>& values) {
  std::vector<std::string> parts;
  std::vector<std::pair<std::tuple<std::size_t, std::size_t, std::size_t>, job::PrintedKey>> rows;
  for (const JobValue& value : values)
    rows.push_back({place_of(value.path, parts),
                    {value.path, flow(value.value), visible(value.comment, Lines::kOne)}});
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  std::vector<job::PrintedKey> keys;
  for (auto& row : rows) keys.push_back(std::move(row.second));
  return keys;
}

std::string job_text(const std::vector<JobValue>& values) {
  std::vector<job::PrintedKey> keys = printed_values(values);
  for (job::PrintedKey& key : keys) key.comment.clear();
  return job::print_keys(keys);
}

}  // namespace tandem::translate
