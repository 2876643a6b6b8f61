// Sums and small selections. The journal keeps totals as JSON in which a missing field takes its
// default, so that a run can be resumed from a journal of an older version.
#include "actors/exchange/run_statistics.h"

#include <algorithm>
#include <vector>

#include "runtime/base/json.h"

namespace tandem::actors {
namespace {

constexpr Duration kRateWindow = std::chrono::seconds(10);

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StalenessCount, trajectories)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TrainedTotals, staleness, tokens,
                                                logprob_diff_max_at_staleness_0,
                                                tokens_at_staleness_0, steps_skipped)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkTotals, tokens_generated, publish_count,
                                                publish_bytes, wall_seconds, running_seconds,
                                                learner_busy_seconds, rollout_busy_seconds,
                                                rollout_actor_seconds)

std::string to_text(const RunTotals& totals) {
  nlohmann::json line{{"trained", totals.trained}, {"work", totals.work}};
  if (totals.publish_seconds) line["publish_seconds"] = *totals.publish_seconds;
  return dump_json(line);
}

std::optional<RunTotals> totals_from(const std::string& text) {
  const auto line = parse_json(text);
  if (!line.is_object()) return std::nullopt;
  RunTotals totals{.trained = line.value("trained", TrainedTotals{}),
                   .work = line.value("work", WorkTotals{}),
                   .publish_seconds = {}};
  if (line.contains("publish_seconds"))
    totals.publish_seconds = line["publish_seconds"].get<double>();
  return totals;
}

std::int64_t StalenessCount::max() const {
  return trajectories.empty() ? 0 : trajectories.rbegin()->first;
}

double StalenessCount::mean() const {
  double sum = 0, count = 0;
  for (const auto& [staleness, number] : trajectories) {
    sum += static_cast<double>(staleness * number);
    count += static_cast<double>(number);
  }
  return count > 0 ? sum / count : 0;
}

// The map is ordered by staleness, so the counts add up from the lowest.
std::int64_t StalenessCount::quantile(double q) const {
  std::int64_t total = 0;
  for (const auto& [staleness, number] : trajectories) total += number;
  std::int64_t seen = 0;
  for (const auto& [staleness, number] : trajectories) {
    seen += number;
    if (static_cast<double>(seen) >= q * static_cast<double>(total)) return staleness;
  }
  return 0;
}

void StalenessCount::add(const StalenessCount& other) {
  for (const auto& [staleness, number] : other.trajectories) trajectories[staleness] += number;
}

void RunStatistics::add_publication(const Publication& publication) {
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

void RunStatistics::add_evaluation(const std::string& kind, const EvaluationFigures& figures) {
  evaluations_failed += figures.all.failed;
  evaluations[kind] = figures;
  evaluations["last"] = figures;
}

}  // namespace tandem::actors
