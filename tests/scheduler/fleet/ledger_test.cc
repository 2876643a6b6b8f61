// The ledger by stories of single groups, and then random runs in which its counts must balance
// after every event (LG-1 to LG-5).
#include "scheduler/fleet/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

constexpr Incarnation kLearner{900};

Budget budget_of(std::int64_t staleness, std::int64_t groups_per_step) {
  return {.max_staleness = staleness,
          .lookahead = default_lookahead(staleness),
          .groups_per_step = groups_per_step,
          .steps_total = 20};
}

std::vector<GroupId> release_expired(Ledger& ledger, Time now) {
  const std::vector<GroupId> expired = ledger.expired(now);
  for (const GroupId group : expired) ledger.release(group);
  return expired;
}

std::vector<GroupId> release_holder(Ledger& ledger, Incarnation holder) {
  std::vector<GroupId> held;
  for (const Lease& lease : ledger.leases_of(holder)) held.push_back(lease.group);
  for (const GroupId group : held) ledger.release(group);
  return held;
}

LeaseTerms terms(std::uint64_t holder, std::int64_t deadline_ns = 1000, std::uint64_t epoch = 1) {
  return {Incarnation{holder}, Epoch{epoch}, Time{deadline_ns}};
}
LeaseKey key(const Lease& lease) { return {lease.group, lease.id, lease.epoch}; }

std::int64_t discarded(const Ledger& ledger, DiscardReason reason) {
  return ledger.counters().discarded[static_cast<std::size_t>(reason)];
}
std::int64_t refused(const Ledger& ledger, Refusal refusal) {
  return ledger.counters().refused[static_cast<std::size_t>(refusal)];
}

// A ledger with a learner and with version 0 published.
Ledger started(const Budget& budget) {
  Ledger ledger(budget);
  EXPECT_TRUE(ledger.learner_started(StepId{0}, kLearner).empty());
  ledger.published(PolicyVersion{0});
  return ledger;
}

Lease rolling(Ledger& ledger, std::uint64_t holder, PolicyVersion installed) {
  return ledger.lease_rollout(ledger.admit(), terms(holder), installed);
}

GroupId scored(Ledger& ledger, PolicyVersion installed) {
  const Lease rollout = rolling(ledger, 1, installed);
  EXPECT_FALSE(ledger.generated(key(rollout), installed));
  EXPECT_FALSE(ledger.scored(key(ledger.lease_reward(rollout.group, terms(2)))));
  return rollout.group;
}

void train_step(Ledger& ledger, StepId step) {
  for (std::int64_t i = 0; i < ledger.budget().groups_per_step; ++i)
    scored(ledger, PolicyVersion{step.value});
  ledger.start_training(step, ledger.earliest_due_batch());
  EXPECT_FALSE(ledger.commit(step, kLearner));
  ledger.published(PolicyVersion{step.value + 1});
}

TEST(Ledger, TheLifeOfOneGroup) {
  Ledger ledger = started(budget_of(2, 1));
  const GroupId group = ledger.admit();
  EXPECT_EQ(ledger.count(GroupState::kAdmitted), 1);

  const Lease rollout = ledger.lease_rollout(group, terms(1), PolicyVersion{0});
  EXPECT_EQ(ledger.find(group)->due, StepId{2});
  EXPECT_FALSE(ledger.generated(key(rollout), PolicyVersion{0}));
  const Lease reward = ledger.lease_reward(group, terms(2));
  EXPECT_FALSE(ledger.scored(key(reward)));
  EXPECT_EQ(ledger.earliest_due_batch(), std::vector{group});

  ledger.start_training(StepId{0}, {group});
  EXPECT_EQ(ledger.counters().trained, 0);
  EXPECT_FALSE(ledger.commit(StepId{0}, kLearner));
  EXPECT_EQ(ledger.counters().trained, 1);
  EXPECT_EQ(ledger.next_commit(), StepId{1});
  ASSERT_NE(ledger.find(group), nullptr);
  ledger.durable(StepId{1});
  EXPECT_EQ(ledger.find(group), nullptr);
  EXPECT_EQ(ledger.counters().issued, 1);
  EXPECT_EQ(ledger.counters().durable, 1);
  ledger.check_by_recount();
}

TEST(Ledger, ALateAnswerOfAnOldLeaseIsRefusedAndCounted) {  // LG-3
  Ledger ledger = started(budget_of(2, 1));
  const Lease old = rolling(ledger, 1, PolicyVersion{0});
  EXPECT_EQ(release_holder(ledger, Incarnation{1}), std::vector{old.group});
  EXPECT_EQ(ledger.find(old.group)->due, std::nullopt);  // from nothing: undated
  const Lease current = ledger.lease_rollout(old.group, terms(2), PolicyVersion{0});

  EXPECT_EQ(ledger.generated(key(old), PolicyVersion{0}), Refusal::kOldLease);
  EXPECT_EQ(ledger.find(old.group)->state, GroupState::kRolling);
  EXPECT_FALSE(ledger.generated(key(current), PolicyVersion{0}));
  EXPECT_EQ(ledger.generated(key(current), PolicyVersion{0}), Refusal::kOldLease);  // repeated
  ledger.discard(old.group, DiscardReason::kPoisonPrompt);
  EXPECT_EQ(ledger.hand_back(key(current), Kept::kNothing), Refusal::kUnknownGroup);
  EXPECT_EQ(refused(ledger, Refusal::kOldLease), 2);
  EXPECT_EQ(refused(ledger, Refusal::kUnknownGroup), 1);
}

TEST(Ledger, TokensOlderThanAcknowledgedAreNotTaken) {  // LG-4
  Ledger ledger = started(budget_of(1, 1));
  train_step(ledger, StepId{0});
  const Lease lease = rolling(ledger, 1, PolicyVersion{1});
  EXPECT_EQ(ledger.generated(key(lease), PolicyVersion{0}), Refusal::kOverAge);
  EXPECT_EQ(ledger.find(lease.group)->state, GroupState::kAdmitted);
  EXPECT_EQ(ledger.find(lease.group)->due, std::nullopt);
}

TEST(Ledger, AGroupHandedBackWithTokensKeepsItsDate) {
  Ledger ledger = started(budget_of(3, 1));
  train_step(ledger, StepId{0});
  const Lease first = rolling(ledger, 1, PolicyVersion{0});
  EXPECT_FALSE(ledger.hand_back(key(first), Kept::kTokens));
  EXPECT_EQ(ledger.find(first.group)->due, StepId{3});
  EXPECT_EQ(ledger.budget_state().dated.total(), 1);
  ledger.lease_rollout(first.group, terms(2), PolicyVersion{1});
  EXPECT_EQ(ledger.find(first.group)->due, StepId{3});
}

TEST(Ledger, ARewardActorsDeathPutsItsGroupsBackToGenerated) {
  Ledger ledger = started(budget_of(2, 1));
  const Lease rollout = rolling(ledger, 1, PolicyVersion{0});
  EXPECT_FALSE(ledger.generated(key(rollout), PolicyVersion{0}));
  ledger.lease_reward(rollout.group, terms(2));
  EXPECT_EQ(release_holder(ledger, Incarnation{2}), std::vector{rollout.group});
  EXPECT_EQ(ledger.find(rollout.group)->state, GroupState::kGenerated);
  EXPECT_EQ(ledger.find(rollout.group)->due, StepId{2});
}

TEST(Ledger, LeasesEndAtTheirDeadlineUnlessExtended) {
  Ledger ledger = started(budget_of(2, 2));
  const Lease a = ledger.lease_rollout(ledger.admit(), terms(1, 100), PolicyVersion{0});
  const Lease b = ledger.lease_rollout(ledger.admit(), terms(1, 110), PolicyVersion{0});
  EXPECT_EQ(ledger.next_deadline(), Time{100});
  EXPECT_FALSE(ledger.extend(key(a), Time{200}));
  EXPECT_EQ(release_expired(ledger, Time{110}), std::vector{b.group});
  EXPECT_EQ(ledger.leases_of(Incarnation{1}).size(), 1u);
}

TEST(Ledger, ANewEpochAdoptsWhatIsListedAndReleasesTheRest) {
  Ledger ledger = started(budget_of(2, 2));
  const Lease listed = rolling(ledger, 1, PolicyVersion{0});
  const Lease silent = rolling(ledger, 2, PolicyVersion{0});
  Ledger restarted(ledger.budget(), ledger.snapshot());
  EXPECT_FALSE(restarted.adopt(listed.group, listed.id, terms(1, 2000, 2)));
  EXPECT_EQ(restarted.adopt(silent.group, silent.id, terms(7, 2000, 2)), Refusal::kOldLease);
  EXPECT_EQ(restarted.release_epochs_before(Epoch{2}), std::vector{silent.group});
  EXPECT_EQ(restarted.generated(key(listed), PolicyVersion{0}), Refusal::kOldLease);  // old epoch
  EXPECT_FALSE(restarted.generated({listed.group, listed.id, Epoch{2}}, PolicyVersion{0}));
  restarted.check_by_recount();
}

TEST(Ledger, TheLearnersRestartPutsTrainingBackAndReplaysInOrderWithoutCountingTwice) {  // LG-2
  Ledger ledger = started(budget_of(2, 2));
  for (std::int64_t step = 0; step < 3; ++step) train_step(ledger, StepId{step});
  ledger.durable(StepId{1});
  scored(ledger, PolicyVersion{3}), scored(ledger, PolicyVersion{3});
  ledger.start_training(StepId{3}, ledger.earliest_due_batch());

  const Incarnation reborn{901};
  const auto resend = ledger.learner_started(StepId{1}, reborn);
  ASSERT_EQ(resend.size(), 2u);
  EXPECT_EQ(resend[0].step, StepId{1});
  EXPECT_EQ(resend[0].groups, (std::vector<GroupId>{{3}, {4}}));
  EXPECT_EQ(ledger.count(GroupState::kScored), 2);
  EXPECT_EQ(ledger.budget_state().next_step, StepId{3});

  EXPECT_EQ(ledger.commit(StepId{3}, kLearner), Refusal::kOldLease);  // the dead one's commit
  EXPECT_EQ(ledger.commit(StepId{2}, reborn), Refusal::kOldLease);    // out of order
  EXPECT_FALSE(ledger.commit(StepId{1}, reborn));
  EXPECT_TRUE(ledger.replaying());
  EXPECT_FALSE(ledger.commit(StepId{2}, reborn));
  EXPECT_FALSE(ledger.replaying());
  EXPECT_EQ(ledger.counters().trained, 6);
  EXPECT_EQ(ledger.counters().retrained, 4);

  ledger.start_training(StepId{3}, ledger.earliest_due_batch());
  EXPECT_FALSE(ledger.commit(StepId{3}, reborn));
  EXPECT_EQ(ledger.counters().trained, 8);
  ledger.check_by_recount();
}

TEST(Ledger, TheEndDiscardsWhatIsLiveWithItsReason) {  // LG-1, LG-5
  Ledger ledger = started(budget_of(2, 1));
  train_step(ledger, StepId{0});
  scored(ledger, PolicyVersion{1});
  ledger.start_training(StepId{1}, ledger.earliest_due_batch());
  rolling(ledger, 1, PolicyVersion{1});
  ledger.discard_live(DiscardReason::kCancelled);
  EXPECT_EQ(discarded(ledger, DiscardReason::kCancelled), 2);
  EXPECT_EQ(ledger.counters().live, 0);
  EXPECT_EQ(ledger.counters().issued, 3);
  EXPECT_TRUE(ledger.leases_of(Incarnation{1}).empty());
  ledger.check_by_recount();
}

TEST(LedgerDeathTest, MisuseIsABug) {
  Ledger ledger = started(budget_of(0, 1));
  train_step(ledger, StepId{0});
  const GroupId group = ledger.admit();
  EXPECT_DEATH(ledger.lease_rollout(group, terms(1), PolicyVersion{0}), "LG-4, SB-1");  // due 0 < 1
  EXPECT_DEATH(ledger.start_training(StepId{1}, {group}), "kScored");
  ledger.discard(group, DiscardReason::kZeroVariance);
  EXPECT_DEATH(ledger.discard(group, DiscardReason::kZeroVariance), "CHECK|check");
}

// Random events against a model that knows each group's state by name and counts sets of ids.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed)
      : rng_(seed),
        budget_(budget_of(static_cast<std::int64_t>(rng_.below(4)),
                          1 + static_cast<std::int64_t>(rng_.below(3)))),
        ledger_(started(budget_)) {}

  void run() {
    for (int event = 0; event < 600; ++event) {
      one_event(true);
      compare();
    }
    // LG-6: without faults it ends.
    for (int event = 0; event < 20000 && ledger_.next_commit().value < budget_.steps_total; ++event)
      one_event(false);
    EXPECT_EQ(ledger_.next_commit().value, budget_.steps_total);
    compare();
    ledger_.discard_live(DiscardReason::kJobFinished);
    for (auto& [id, state] : model_)
      if (is_live(state)) state = GroupState::kDiscarded;
    compare();
  }

 private:
  bool chance(std::uint64_t one_in) { return rng_.below(one_in) == 0; }

  std::optional<GroupId> any(GroupState state) {
    const auto& queue = ledger_.queue(state);
    if (queue.empty()) return std::nullopt;
    return std::next(queue.begin(), static_cast<std::ptrdiff_t>(rng_.below(queue.size())))->second;
  }

  std::optional<Lease> any_lease(GroupState state) {
    const auto group = any(state);
    if (!group) return std::nullopt;
    return ledger_.find(*group)->lease;
  }

  LeaseTerms new_terms() {
    return terms(holder_ + rng_.below(2), now_ + 1 + static_cast<std::int64_t>(rng_.below(40)),
                 epoch_);
  }

  void one_event(bool faults) {
    ++now_;
    switch (rng_.below(faults ? 16 : 9)) {
      case 0:
        return admit();
      case 1:
        return lease_rollout();
      case 2:
        return generated();
      case 3:
        return lease_reward();
      case 4:
        return scored();
      case 5:
        return form();
      case 6:
        return commit();
      case 7:
        return publish();
      case 8:
        return ledger_.durable(StepId{ledger_.next_commit().value / 2});
      case 9:
        return discard();
      case 10:
        return hand_back();
      case 11:
        return end_leases(release_holder(ledger_, Incarnation{holder_++}));
      case 12:
        return end_leases(release_expired(ledger_, Time{now_}));
      case 13:
        return restart_learner();
      case 14:
        return restart_controller();
      case 15:
        return late_answer();
    }
  }

  void admit() {
    if (admit_verdict(budget_, ledger_.budget_state()) != AdmitVerdict::kAdmit) return;
    const GroupId group = ledger_.admit();
    EXPECT_TRUE(model_.emplace(group, GroupState::kAdmitted).second);
  }

  void lease_rollout() {
    const auto group = any(GroupState::kAdmitted);
    if (!group) return;
    const std::int64_t published = ledger_.budget_state().published.value;
    const PolicyVersion installed{std::max<std::int64_t>(0, published - (chance(3) ? 1 : 0))};
    const auto kept = ledger_.find(*group)->due;
    if (lease_verdict(budget_, ledger_.budget_state(), installed, kept) != LeaseVerdict::kLease)
      return;
    old_.push_back(key(ledger_.lease_rollout(*group, new_terms(), installed)));
    model_[*group] = GroupState::kRolling;
  }

  void generated() {
    const auto lease = any_lease(GroupState::kRolling);
    if (!lease) return;
    EXPECT_FALSE(ledger_.generated(key(*lease), ledger_.budget_state().published));
    model_[lease->group] = GroupState::kGenerated;
  }

  void lease_reward() {
    const auto group = any(GroupState::kGenerated);
    if (!group) return;
    ledger_.lease_reward(*group, new_terms());
    model_[*group] = GroupState::kScoring;
  }

  void scored() {
    const auto lease = any_lease(GroupState::kScoring);
    if (!lease) return;
    EXPECT_FALSE(ledger_.scored(key(*lease)));
    model_[lease->group] = GroupState::kScored;
  }

  void form() {
    const StepId step = ledger_.budget_state().next_step;
    if (ledger_.replaying() || step != ledger_.next_commit()) return;
    if (form_verdict(budget_, ledger_.budget_state()) != FormVerdict::kForm) return;
    const auto batch = ledger_.earliest_due_batch();
    for (const GroupId group : batch) model_[group] = GroupState::kTraining;
    ledger_.start_training(step, batch);
  }

  void commit() {
    if (!resend_.empty()) {
      EXPECT_FALSE(ledger_.commit(resend_.front().step, Incarnation{learner_}));
      resend_.erase(resend_.begin());
      return;
    }
    if (ledger_.count(GroupState::kTraining) == 0) return;
    EXPECT_FALSE(ledger_.commit(ledger_.next_commit(), Incarnation{learner_}));
    for (auto& [id, state] : model_)
      if (state == GroupState::kTraining) {
        state = GroupState::kTrained;
        EXPECT_TRUE(trained_.insert(id).second) << "LG-2";
      }
  }

  void publish() { ledger_.published(PolicyVersion{ledger_.next_commit().value}); }

  void discard() {
    const auto group = any(chance(2) ? GroupState::kScored : GroupState::kRolling);
    if (!group || !chance(3)) return;
    ledger_.discard(*group, DiscardReason::kZeroVariance);
    model_[*group] = GroupState::kDiscarded;
  }

  void hand_back() {
    const auto lease = any_lease(GroupState::kRolling);
    if (!lease) return;
    EXPECT_FALSE(ledger_.hand_back(key(*lease), chance(2) ? Kept::kTokens : Kept::kNothing));
    model_[lease->group] = GroupState::kAdmitted;
  }

  void end_leases(const std::vector<GroupId>& groups) {
    for (const GroupId group : groups) {
      GroupState& state = model_[group];
      state = state == GroupState::kScoring ? GroupState::kGenerated : GroupState::kAdmitted;
    }
  }

  void restart_learner() {
    if (!chance(4)) return;
    const StepId durable{ledger_.counters().durable / budget_.groups_per_step};
    resend_ = ledger_.learner_started(durable, Incarnation{++learner_});
    for (auto& [id, state] : model_)
      if (state == GroupState::kTraining) state = GroupState::kScored;
  }

  void restart_controller() {
    ledger_ = Ledger(budget_, ledger_.snapshot());
    if (chance(2)) return;
    ++epoch_;
    if (const auto lease = any_lease(GroupState::kRolling)) {
      EXPECT_FALSE(
          ledger_.adopt(lease->group, lease->id, {lease->holder, Epoch{epoch_}, lease->deadline}));
    }
    end_leases(ledger_.release_epochs_before(Epoch{epoch_}));
  }

  void late_answer() {
    if (old_.empty()) return;
    const LeaseKey late = old_[rng_.below(old_.size())];
    const GroupRecord* record = ledger_.find(late.group);
    if (record && record->lease && record->lease->id == late.id) return;  // still the current one
    const LedgerCounters before = ledger_.counters();
    EXPECT_TRUE(ledger_.generated(late, PolicyVersion{0}).has_value());
    LedgerCounters after = ledger_.counters();
    after.refused = before.refused;
    EXPECT_EQ(after, before);
  }

  void compare() {
    ledger_.check_by_recount();
    std::array<std::int64_t, kGroupStates> counts{};
    for (const auto& [id, state] : model_) ++counts[static_cast<std::size_t>(state)];
    for (std::size_t i = 0; i < kGroupStates; ++i) {
      const auto state = static_cast<GroupState>(i);
      if (is_live(state)) {
        EXPECT_EQ(ledger_.count(state), counts[i]) << name(state);
      }
    }
    const LedgerCounters counters = ledger_.counters();
    EXPECT_EQ(counters.issued, std::ssize(model_));
    EXPECT_EQ(counters.trained, std::ssize(trained_));
    EXPECT_EQ(counters.discarded_total(), counts[static_cast<std::size_t>(GroupState::kDiscarded)]);
  }

  Rng rng_;
  Budget budget_;
  Ledger ledger_;
  std::map<GroupId, GroupState> model_;
  std::set<GroupId> trained_;
  std::vector<LeaseKey> old_;
  std::vector<Ledger::Resend> resend_;
  std::uint64_t holder_ = 10;
  std::uint64_t learner_ = kLearner.value;
  std::uint64_t epoch_ = 1;
  std::int64_t now_ = 0;
};

TEST(LedgerProperty, BalancesAtEveryEventOfRandomRuns) {  // LG-1 … LG-6, SB-1
  for_seeds(1000, [](std::uint64_t seed) { RandomRun(seed).run(); });
}

// Memory is taken for groups that are live or not yet durable, and 100,000 live groups are
// ordinary.
TEST(Ledger, ForgetsWhatIsDurable) {
  Budget budget = budget_of(4, 25000);
  budget.lookahead = 3;
  Ledger ledger = started(budget);
  std::vector<Lease> leases;
  while (admit_verdict(budget, ledger.budget_state()) == AdmitVerdict::kAdmit)
    leases.push_back(rolling(ledger, 1 + leases.size() % 1000, PolicyVersion{0}));
  ASSERT_EQ(leases.size(), 100000u);
  for (std::size_t i = 0; i < 25000; ++i) {
    EXPECT_FALSE(ledger.generated(key(leases[i]), PolicyVersion{0}));
    EXPECT_FALSE(ledger.scored(key(ledger.lease_reward(leases[i].group, terms(2)))));
  }
  ledger.start_training(StepId{0}, ledger.earliest_due_batch());
  EXPECT_FALSE(ledger.commit(StepId{0}, kLearner));
  ledger.durable(StepId{1});
  EXPECT_EQ(ledger.snapshot().records.size(), 75000u);
  ledger.check_by_recount();
}

}  // namespace
}  // namespace tandem::scheduler
