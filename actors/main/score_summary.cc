#include "actors/main/score_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>
#include <vector>

#include "actors/cli/table.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/node/last_lines.h"

namespace tandem::app {
namespace {

using nlohmann::json;

constexpr const char* kOthers = "others";
constexpr std::size_t kReasonBytesMax = 300;

double with_two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return std::strtod(text, nullptr);
}

std::string number(const json& value) {
  if (!value.is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value.get<double>());
  return text;
}

// "0: 57, 1: 40" for few values, else "-2 ▁▂▇▁▁▁▁▁▁▂ 3" from the least to the greatest reward.
std::string shown_histogram(const json& figures) {
  const json& bins = figures["histogram"];
  if (bins.empty()) return "-";
  std::string text;
  if (bins.front()["from"] == bins.front()["to"]) {
    for (const json& bin : bins)
      text += (text.empty() ? "" : ", ") + number(bin["from"]) + ": " + bin["count"].dump();
    return text;
  }
  static constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::int64_t most = 1;
  for (const json& bin : bins) most = std::max(most, bin["count"].get<std::int64_t>());
  for (const json& bin : bins) {
    const auto count = bin["count"].get<std::int64_t>();
    text += kBars[(count * 8 + most - 1) / most];  // a bin that is not empty shows a bar
  }
  return number(figures["min"]) + " " + text + " " + number(figures["max"]);
}

cli::Row row_of(const std::string& source, const json& figures) {
  return {source,
          figures["count"].dump(),
          figures["failed"].dump(),
          number(figures["mean"]),
          number(figures["std"]),
          number(figures["min"]),
          number(figures["max"]),
          shown_histogram(figures)};
}

// The entry of `name`, or that of all others once `most` names are known.
template <class T>
T& entry(std::map<std::string, T>& named, const std::string& name, std::size_t most) {
  const bool known = named.contains(name) || named.size() < most;
  return named[known ? name : kOthers];
}

}  // namespace

void RewardFigures::scored(double reward) {
  least_ = scored_ == 0 ? reward : std::min(least_, reward);
  greatest_ = scored_ == 0 ? reward : std::max(greatest_, reward);
  ++scored_;
  const double before = reward - mean_;
  mean_ += before / static_cast<double>(scored_);
  squares_ += before * (reward - mean_);
  ++values_[rounded_ ? with_two_digits(reward) : reward];
  if (rounded_ || values_.size() <= kValuesExact) return;
  rounded_ = true;
  for (const auto& [value, count] : std::exchange(values_, {}))
    values_[with_two_digits(value)] += count;
}

json RewardFigures::json() const {
  nlohmann::json figures{{"count", scored_ + failed_},
                         {"scored", scored_},
                         {"failed", failed_},
                         {"mean", nullptr},
                         {"std", nullptr},
                         {"min", nullptr},
                         {"max", nullptr},
                         {"histogram", nlohmann::json::array()}};
  if (scored_ == 0) return figures;
  figures["mean"] = mean_;
  figures["std"] = std::sqrt(squares_ / static_cast<double>(scored_));
  figures["min"] = least_;
  figures["max"] = greatest_;
  nlohmann::json& bins = figures["histogram"];
  if (values_.size() <= kHistogramBins) {
    for (const auto& [value, count] : values_)
      bins.push_back({{"from", value}, {"to", value}, {"count", count}});
    return figures;
  }
  std::vector<std::int64_t> counts(kHistogramBins);
  // Divided first: the range of two rewards may be over that of a double.
  const double width = greatest_ / kHistogramBins - least_ / kHistogramBins;
  for (const auto& [value, count] : values_) {
    // A rounded value may lie beside the range.
    const double bin = std::clamp((value - least_) / width, 0.0, kHistogramBins - 1.0);
    counts[static_cast<std::size_t>(bin)] += count;
  }
  for (std::size_t i = 0; i < kHistogramBins; ++i) {
    const double from = least_ + width * static_cast<double>(i);
    const double to = i + 1 == kHistogramBins ? greatest_ : from + width;
    bins.push_back({{"from", from}, {"to", to}, {"count", counts[i]}});
  }
  return figures;
}

void ScoreSummary::add(const std::string& source, const messages::TrajectoryScore& score) {
  ++count_;
  RewardFigures* own = source.empty() ? nullptr : &entry(sources_, source, kSourcesShownMax);
  if (const auto* scored = std::get_if<messages::Scored>(&score)) {
    all_.scored(scored->value);
    if (own) own->scored(scored->value);
    return;
  }
  ++failures_;
  all_.failed();
  if (own) own->failed();
  const std::string& reason = std::get<messages::ScoreFailed>(score).reason;
  ++entry(reasons_, node::one_line(reason, kReasonBytesMax), kReasonsKept);
}

json ScoreSummary::json() const {
  nlohmann::json summary = all_.json();
  summary["skipped"] = skipped_;
  summary["sources"] = nlohmann::json::object();
  for (const auto& [name, figures] : sources_) summary["sources"][name] = figures.json();
  summary["failures"] = reasons_;
  return summary;
}

std::string ScoreSummary::text(int width) const {
  using enum cli::Align;
  const std::vector<cli::Column> columns = {{.title = "SOURCE"},
                                            {.title = "COUNT", .align = kRight},
                                            {.title = "FAILED", .align = kRight},
                                            {.title = "MEAN", .align = kRight},
                                            {.title = "STD", .align = kRight},
                                            {.title = "MIN", .align = kRight},
                                            {.title = "MAX", .align = kRight},
                                            {.title = "REWARDS"}};
  std::vector<cli::Row> rows;
  for (const auto& [name, figures] : sources_) rows.push_back(row_of(name, figures.json()));
  // A single source is all there is, unless some completions have none.
  const nlohmann::json all = all_.json();
  if (sources_.size() != 1 || rows.front()[1] != all["count"].dump())
    rows.push_back(row_of("all", all));
  std::string text = cli::render_table(columns, rows, width);
  std::vector<std::pair<std::int64_t, std::string>> reasons;
  for (const auto& [reason, count] : reasons_) reasons.emplace_back(count, reason);
  std::ranges::stable_sort(reasons, std::greater<>(), &std::pair<std::int64_t, std::string>::first);
  for (const auto& [count, reason] : reasons)
    text += std::to_string(count) + " failed: " + visible(reason, Lines::kOne) + "\n";
  if (skipped_ > 0)
    text += std::to_string(skipped_) + " skipped: they have an error and no completion\n";
  return text;
}

}  // namespace tandem::app
