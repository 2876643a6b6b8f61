#include "actors/exchange/admission.h"

#include "actors/exchange/discards.h"
#include "actors/exchange/quarantine.h"
#include "runtime/base/rng.h"
#include "scheduler/fleet/fixed_lag.h"

namespace tandem::exchange {

void admit(Turn& turn) {
  const scheduler::Budget& budget = turn.config.budget;
  const GroupFlow& flow = turn.facts.flow;
  for (;;) {
    const scheduler::BudgetState& state = flow.ledger.budget_state();
    std::optional<scheduler::Slot> slot;
    if (flow.fixed) {
      slot = flow.fixed->next(state.published);
      if (!slot) return;
    } else if (scheduler::admit_verdict(budget, state) != scheduler::AdmitVerdict::kAdmit) {
      return;
    }
    const GroupId group = flow.ledger.next_group();
    turn.seen.groups[group] = {turn.now, turn.now};
    turn.record(GroupAdmitted{
        .group = group,
        .position = slot ? scheduler::prompt_position(budget, *slot) : flow.position_next,
        .slot = slot});
    if (is_quarantined(turn.view(), group))
      discard(turn, group, scheduler::DiscardReason::kPoisonPrompt);
  }
}

std::uint64_t seed_of(const ExchangeConfig& config, GroupId group, const GroupFacts& facts) {
  if (!facts.slot) return derive_seed(config.seed, {group.value});
  return derive_seed(config.seed, {static_cast<std::uint64_t>(facts.slot->step.value),
                                   static_cast<std::uint64_t>(facts.slot->index),
                                   static_cast<std::uint64_t>(facts.slot->attempt)});
}

}  // namespace tandem::exchange
