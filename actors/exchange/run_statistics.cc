#include "actors/exchange/run_statistics.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem::exchange {
namespace {

constexpr Duration kRateWindow = std::chrono::seconds(10);

}  // namespace

void WarningsSaid::take(const std::string& text) {
  if (std::ranges::find(first, text) != first.end()) return;
  if (first.size() < kWarningsKept)
    first.push_back(text);
  else
    ++left_out;
}

void RunStatistics::add_publication(const messages::Publication& publication) {
  ++work.publish_count;
  work.publish_bytes += publication.bytes;
  add_publish_seconds(publication.seconds);
}

void RunStatistics::add_publish_seconds(double seconds) {
  publish_seconds.push_back(seconds);
  if (publish_seconds.size() > kPublishSecondsKept) publish_seconds.pop_front();
}

void RunStatistics::add_rate_point(Time now) {
  rate_points.push_back({now, work.tokens_generated, trained.tokens});
  // Two points stay however old they are: a rate needs both.
  while (rate_points.size() > 2 && now - rate_points.front().time > kRateWindow)
    rate_points.pop_front();
}

double RunStatistics::publish_seconds_p50() const {
  if (publish_seconds.empty()) return 0;
  std::vector<double> sorted(publish_seconds.begin(), publish_seconds.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  // The upper median of an even number.
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

bool RunStatistics::add_evaluation(EvaluationRecord record, const BestBy& by) {
  const std::optional<double> value = figure_of(record.figures, by.key);
  const auto is_better = [&] { return by.least ? *value < best->value : *value > best->value; };
  const bool is_best = value && record.version >= PolicyVersion{0} && (!best || is_better());
  if (is_best) best = BestCheckpoint{record.version, *value};
  evaluations_failed += record.figures.all.failed;
  evaluations[name(record.kind)] = record.figures;
  evaluations["last"] = record.figures;
  evaluation_records.push_back(std::move(record));
  if (evaluation_records.size() > kEvaluationsKept) evaluation_records.pop_front();
  return is_best;
}

}  // namespace tandem::exchange
