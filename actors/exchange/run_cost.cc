#include "actors/exchange/run_cost.h"

#include <deque>

#include "actors/exchange/work_totals.h"

namespace tandem::exchange {
namespace {

scheduler::CostPoint point_of(const RunView& view) {
  const WorkTotals work = work_of(view);
  const scheduler::FleetDevices& devices = view.config.devices;
  return {.steps = view.facts.flow.ledger.next_commit().value,
          .used = {.rollout = work.rollout_actor_seconds * devices.per_rollout,
                   .learner = work.running_seconds * devices.learner}};
}

}  // namespace

messages::CostStatus cost_of(const RunView& view) {
  const scheduler::CostPoint now = point_of(view);
  messages::CostStatus cost{
      .rollout_device_seconds = now.used.rollout,
      .learner_device_seconds = now.used.learner,
      .goodput = scheduler::goodput(view.seen.statistics.trained.tokens, now.used)};
  if (const auto& pricing = view.config.pricing) {
    const auto& newest = view.seen.cost_points;
    cost.per_step = scheduler::cost_per_step(newest.empty() ? std::deque{now} : newest, *pricing);
    cost.total = scheduler::cost_of(now.used, *pricing);
    cost.currency = pricing->currency;
  }
  return cost;
}

void note_cost(Turn& turn) {
  scheduler::add_cost_point(turn.seen.cost_points, point_of(turn.view()));
}

}  // namespace tandem::exchange
