#include "actors/exchange/work_totals.h"

#include <algorithm>

namespace tandem::exchange {

double reported_seconds(const RunView& view, const WorkerSeen& rollout) {
  const auto& since = view.seen.statistics.running_since;
  if (!since || !rollout.stats_at) return 0.0;
  return std::max(0.0, seconds(*rollout.stats_at - std::max(rollout.up, *since)));
}

WorkTotals work_of(const RunView& view) {
  const RunStatistics& statistics = view.seen.statistics;
  WorkTotals work = statistics.work;
  if (statistics.started) work.wall_seconds += seconds(view.now - *statistics.started);
  if (statistics.running_since)
    work.running_seconds += seconds(view.now - *statistics.running_since);
  for (const auto& [name, worker] : view.facts.workers.rollouts()) {
    const WorkerSeen& seen = view.seen.workers.by_actor.at(name);
    work.rollout_busy_seconds += seen.stats.busy_seconds;
    work.rollout_actor_seconds += reported_seconds(view, seen);
  }
  return work;
}

double rollout_idle_fraction(const RunView& view) {
  const WorkTotals total = work_of(view);
  if (total.rollout_actor_seconds <= 0) return 0;
  return std::clamp(1 - total.rollout_busy_seconds / total.rollout_actor_seconds, 0.0, 1.0);
}

double trainer_idle_fraction(const RunView& view) {
  const WorkTotals total = work_of(view);
  if (total.running_seconds <= 0) return 0;
  return std::clamp(1 - total.learner_busy_seconds / total.running_seconds, 0.0, 1.0);
}

void note_totals(Turn& turn, const std::optional<messages::Publication>& publication) {
  RunTotals totals{
      .trained = turn.seen.statistics.trained, .work = work_of(turn.view()), .publish_seconds = {}};
  if (publication) totals.publish_seconds = publication->seconds;
  turn.record(TotalsNoted{turn.facts.flow.ledger.next_commit(), std::move(totals)});
}

}  // namespace tandem::exchange
