#include "scheduler/fleet/fleet_sizes.h"

#include <set>

namespace tandem::scheduler {
namespace {

constexpr std::int64_t kAroundPresent = 1, kAroundMatched = 2;

void add_around(std::set<std::int64_t>& counts, std::int64_t count, std::int64_t around) {
  for (std::int64_t n = count - around; n <= count + around; ++n)
    if (n >= 1) counts.insert(n);
}

}  // namespace

std::vector<SteadyState> fleets_around(const FleetModel& model, std::optional<std::int64_t> present,
                                       std::int64_t matched) {
  std::set<std::int64_t> counts;
  if (present) add_around(counts, *present, kAroundPresent);
  add_around(counts, matched, kAroundMatched);
  std::vector<SteadyState> fleets;
  for (const std::int64_t count : counts) fleets.push_back(steady_state(model, count));
  return fleets;
}

FleetVerdict verdict_on(const FleetQuestion& question) {
  if (question.steps && *question.steps < kStepsJudged) return FleetVerdict::kUncertain;
  const auto idle = question.measured_trainer_idle;
  // Where nothing overlaps the trainer waits in every cycle, whatever the fleet.
  if (idle && question.overlaps) {
    if (*idle > question.trainer_idle_target)
      return question.present < question.matched ? FleetVerdict::kUndersized
                                                 : FleetVerdict::kUnexplained;
    return question.present > question.matched ? FleetVerdict::kOversized : FleetVerdict::kMatched;
  }
  if (question.present < question.matched) return FleetVerdict::kUndersized;
  return question.present > question.matched ? FleetVerdict::kOversized : FleetVerdict::kMatched;
}

}  // namespace tandem::scheduler
