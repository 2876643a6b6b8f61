#include "actors/exchange/fleet_view.h"

#include <algorithm>

#include "actors/exchange/publications.h"

namespace tandem::exchange {

using scheduler::GroupState;

namespace {

scheduler::TrainerState trainer_state(const RunView& view) {
  const LearnerFacts& learner = view.facts.learner;
  const scheduler::Ledger& ledger = view.facts.flow.ledger;
  return {.up = learner.who.has_value(),
          .trains = learner.owed.has_value(),
          .saves = learner.checkpoint_awaited.has_value(),
          .held_up = evaluation_in_the_way(view, ledger.budget_state().next_step),
          .evaluates = std::ranges::any_of(view.seen.evaluations,
                                           [](const Evaluation& one) { return !one.generated(); }),
          .rollouts = std::ssize(view.facts.workers.rollouts()),
          .step_groups = view.config.budget.groups_per_step,
          .admitted = ledger.count(GroupState::kAdmitted),
          .rolling = ledger.count(GroupState::kRolling),
          .generated = ledger.count(GroupState::kGenerated) + ledger.count(GroupState::kScoring),
          .scored = ledger.count(GroupState::kScored)};
}

}  // namespace

void note_wait(Turn& turn) {
  if (turn.facts.stage != RunStage::kRunning) return;
  const scheduler::TrainerState state = trainer_state(turn.view());
  turn.seen.fleet.waits(trainer_wait(state), turn.now);
  turn.seen.fleet.evaluates(state.evaluates, turn.now);
}

std::optional<scheduler::FleetGap> gap_of(const RunView& view,
                                          const std::optional<scheduler::FleetRates>& rates) {
  if (!rates) return std::nullopt;
  const auto& rollouts = view.facts.workers.rollouts();
  const auto up =
      std::ranges::count_if(rollouts, [](const auto& rollout) { return !rollout.second.draining; });
  return scheduler::gap_of({.rates = *rates,
                            .waits = view.seen.fleet.wait_seconds(),
                            .overlaps = view.config.budget.max_staleness > 0,
                            .rollouts = up,
                            .autoscaled = view.config.fleet_window_steps > 0});
}

}  // namespace tandem::exchange
