#include "actors/exchange/fleet_view.h"

#include <algorithm>

#include "actors/exchange/checks.h"
#include "actors/exchange/publications.h"

namespace tandem::exchange {

using scheduler::GroupState;

namespace {

bool has_room(const RunView& view, const WorkerFacts& rollout) {
  const std::int64_t n = view.config.n;
  return !rollout.draining && is_here(view, rollout.who) &&
         (view.facts.flow.fixed || rollout.installed >= PolicyVersion{0}) &&
         rollout.capacity - view.facts.flow.ledger.held_by(rollout.who.incarnation) * n >= n;
}

scheduler::TrainerState trainer_state(const RunView& view) {
  const LearnerFacts& learner = view.facts.learner;
  const scheduler::Ledger& ledger = view.facts.flow.ledger;
  scheduler::TrainerState state{
      .up = learner.who.has_value(),
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
  // Nothing else needs a look at all rollouts.
  if (!state.trains && state.admitted > 0)
    state.room = std::ranges::any_of(view.facts.workers.rollouts(), [&](const auto& rollout) {
      return has_room(view, rollout.second);
    });
  return state;
}

}  // namespace

void note_wait(Turn& turn) {
  if (turn.facts.stage != RunStage::kRunning) return;
  const scheduler::TrainerState state = trainer_state(turn.view());
  turn.seen.fleet.waits(trainer_wait(state), turn.now);
  turn.seen.fleet.evaluates(state.evaluates, turn.now);
}

std::int64_t rollouts_at_work(const RunView& view) {
  return std::ranges::count_if(view.facts.workers.rollouts(),
                               [](const auto& rollout) { return !rollout.second.draining; });
}

scheduler::WorkLimits work_limits_of(const ExchangeConfig& config) {
  return {.sequences_max = config.sequences.running_max,
          .held_max = config.sequences.held_max,
          .completions_per_prompt = config.n,
          .prompts_per_step = config.budget.groups_per_step,
          .lookahead = config.budget.lookahead,
          .max_staleness = config.budget.max_staleness};
}

std::optional<scheduler::FleetGap> gap_of(const RunView& view,
                                          const std::optional<scheduler::FleetRates>& rates) {
  if (!rates) return std::nullopt;
  return scheduler::gap_of({.rates = *rates,
                            .overlaps = view.config.budget.max_staleness > 0,
                            .rollouts = rollouts_at_work(view),
                            .autoscaled = view.config.fleet_window_steps > 0,
                            .limits = work_limits_of(view.config)});
}

}  // namespace tandem::exchange
