#include "actors/runs/wandb_samples.h"

#include <array>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::runs {
namespace {

using nlohmann::json;

constexpr std::array<const char*, SampleTable::kColumns> kColumnNames{
    "step", "prompt", "completion", "answer", "reward", "data_source", "finish_reason"};

// Texts and numbers as they are, and anything else as JSON: a column of a table has one type.
json cell_of(const json& sample, const char* name) {
  const auto it = sample.find(name);
  if (it == sample.end() || it->is_null()) return nullptr;
  if (it->is_number()) return *it;
  return cut_utf8(it->is_string() ? it->get_ref<const std::string&>() : dump_json(*it),
                  kCellBytesMax);
}

}  // namespace

void SampleTable::add(const json& sample, std::size_t rows_max) {
  json row = json::array();
  for (const char* const name : kColumnNames) row.push_back(cell_of(sample, name));
  if (rows_.size() == rows_max) rows_.erase(rows_.begin());
  rows_.push_back(std::move(row));
}

std::string SampleTable::text() const {
  return dump_json({{"columns", kColumnNames}, {"data", rows_}});
}

void WandbSamples::add(std::string_view sample_line) {
  const json sample = parse_json(sample_line);
  if (!sample.is_object()) return;
  const auto step = sample.find("step");
  if (step == sample.end() || !step->is_number_integer()) return;
  if (!sample.contains("eval")) return training_.add(sample, kTrainingRowsMax);
  evaluations_[step->get<std::int64_t>()].add(sample, kTableRowsMax);
  if (evaluations_.size() > kEvaluationsMax) evaluations_.erase(evaluations_.begin());
}

SampleTable WandbSamples::take_evaluation(std::int64_t version) {
  SampleTable table;
  if (const auto it = evaluations_.find(version); it != evaluations_.end())
    table = std::move(it->second);
  evaluations_.erase(evaluations_.begin(), evaluations_.upper_bound(version));
  return table;
}

}  // namespace tandem::runs
