// Every group has a date, and each step trains B groups. Dates can all be met exactly if for every
// step d at most B(d - s + 1) groups are due by d: that many are trained by the steps s … d.
// feasible() tests this (SB-1). A lease is refused where its date would break the test, and a step
// is formed only where the groups that it leaves behind still pass the test. Both look at a
// histogram of at most K + 2 dates and never at groups.
#include "scheduler/fleet/staleness.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

// While this many batches are live a replacement waits for the next version: it would get the date
// of the groups that are there already, and they suffice to form the next step.
constexpr std::int64_t kBatchesLiveToWait = 2;

}  // namespace

std::int64_t default_lookahead(std::int64_t max_staleness) {
  if (max_staleness <= 2) return max_staleness;
  return max_staleness <= 4 ? max_staleness - 1 : max_staleness - 2;
}

void DueHistogram::add(StepId due) {
  ++counts_[due];
  ++total_;
}

void DueHistogram::remove(StepId due) {
  const auto at = counts_.find(due);
  CHECK(at != counts_.end());
  if (--at->second == 0) counts_.erase(at);
  --total_;
}

AdmitVerdict admit_verdict(const Budget& budget, const BudgetState& state) {
  // Version 0 is the result of the warm start; before it only evaluations are generated.
  if (state.published < PolicyVersion{0}) return AdmitVerdict::kAhead;
  const std::int64_t taken = state.trained + state.live;
  if (taken >= budget.steps_total * budget.groups_per_step) return AdmitVerdict::kAllAdmitted;
  // Groups are admitted for the steps up to p + L, so at most that far ahead of the published
  // version.
  const std::int64_t steps_open =
      std::min(state.published.value + budget.lookahead + 1, budget.steps_total);
  const std::int64_t room = steps_open * budget.groups_per_step;
  if (taken >= room) return AdmitVerdict::kAhead;
  // Without the discards of this version all places would be taken: this group takes one's place.
  const bool replaces = taken + state.discarded_since_publish >= room;
  if (replaces && state.live >= kBatchesLiveToWait * budget.groups_per_step)
    return AdmitVerdict::kReplacementWaits;
  return AdmitVerdict::kAdmit;
}

StepId due_at_lease(const Budget& budget, PolicyVersion installed, std::optional<StepId> kept_due) {
  const StepId due{installed.value + budget.max_staleness};
  return kept_due ? std::min(due, *kept_due) : due;
}

LeaseVerdict lease_verdict(const Budget& budget, const BudgetState& state, PolicyVersion installed,
                           std::optional<StepId> kept_due) {
  const StepId due = due_at_lease(budget, installed, kept_due);
  if (due < state.next_step) return LeaseVerdict::kActorBehind;
  // The group is leased on trial: the kept date is replaced by the new one.
  BudgetState leased = state;
  if (kept_due) leased.dated.remove(*kept_due);
  leased.dated.add(due);
  return feasible(budget, leased) ? LeaseVerdict::kLease : LeaseVerdict::kCrowded;
}

std::optional<StepId> held_up_by(const Budget& budget, const BudgetState& state) {
  std::int64_t dated = 0;
  for (const auto& [due, count] : state.dated.counts()) {
    dated += count;
    std::int64_t scored = 0;
    for (const auto& [scored_due, scored_count] : state.scored.counts())
      if (scored_due <= due) scored += scored_count;
    // If the step were formed now, at most B of the scored groups due by `due` would leave; the
    // rest must fit into the steps s + 1 … due.
    const std::int64_t left = dated - std::min(scored, budget.groups_per_step);
    if (left > budget.groups_per_step * (due.value - state.next_step.value)) return due;
  }
  return std::nullopt;
}

FormVerdict form_verdict(const Budget& budget, const BudgetState& state) {
  if (state.next_step.value >= budget.steps_total) return FormVerdict::kAllStepsFormed;
  if (state.scored.total() < budget.groups_per_step) return FormVerdict::kTooFewScored;
  return held_up_by(budget, state) ? FormVerdict::kDueNotScored : FormVerdict::kForm;
}

bool feasible(const Budget& budget, const BudgetState& state) {
  std::int64_t dated = 0;
  for (const auto& [due, count] : state.dated.counts()) {
    dated += count;
    const std::int64_t steps = due.value - state.next_step.value + 1;
    // steps < 1: a group was due before the next step and can no longer be trained in time.
    if (steps < 1 || dated > budget.groups_per_step * steps) return false;
  }
  return true;
}

const char* name(AdmitVerdict verdict) {
  switch (verdict) {
    case AdmitVerdict::kAdmit:
      return "Admit";
    case AdmitVerdict::kAhead:
      return "Ahead";
    case AdmitVerdict::kAllAdmitted:
      return "AllAdmitted";
    case AdmitVerdict::kReplacementWaits:
      return "ReplacementWaits";
  }
  CHECK(false);
}

const char* name(LeaseVerdict verdict) {
  switch (verdict) {
    case LeaseVerdict::kLease:
      return "Lease";
    case LeaseVerdict::kActorBehind:
      return "ActorBehind";
    case LeaseVerdict::kCrowded:
      return "Crowded";
  }
  CHECK(false);
}

const char* name(FormVerdict verdict) {
  switch (verdict) {
    case FormVerdict::kForm:
      return "Form";
    case FormVerdict::kTooFewScored:
      return "TooFewScored";
    case FormVerdict::kDueNotScored:
      return "DueNotScored";
    case FormVerdict::kAllStepsFormed:
      return "AllStepsFormed";
  }
  CHECK(false);
}

}  // namespace tandem::scheduler
