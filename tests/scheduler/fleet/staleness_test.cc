// The budget against random worlds: rollout actors with long-tailed lengths and late installs,
// discards, kills, learner restarts, in virtual time. The rules are a parameter, so the same
// simulation shows that each looser form gets stuck or breaks the bound.
#include "scheduler/fleet/staleness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

enum class Rules {
  kDesign,
  kFeasibleFromNext,  // the lease's test for d >= s + 1 only
  kEverAdmitted,      // admission counts discards too
  kDatedAtAdmission,  // due = p + K when admitted, whatever generates it
  kFormAtOnce,        // forms whenever B groups are scored
  kKeptDateStays,     // kept tokens keep their date under an older actor
};

// A budget and the events that it goes through; delays in units of one training step.
struct World {
  Budget budget;
  int actors = 1;
  int groups_per_actor = 1;
  double generate_median = 1;
  double generate_sigma = 1;  // sigma of the lognormal: p99/p50 = 10 at 0.99
  double install_delay_max = 0;
  double publish_delay = 0;
  double discard_chance = 0;
  double hand_back_chance = 0;  // the chance that a lease ends with its tokens kept
  int kills = 0;
  int learner_kills = 0;
  std::int64_t checkpoint_every = 1;
};

World draw_world(Rng& rng) {
  const auto up_to = [&rng](std::int64_t most) {
    return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most) + 1));
  };
  World world;
  Budget& budget = world.budget;
  budget.max_staleness = up_to(6);
  budget.lookahead = up_to(budget.max_staleness);
  budget.sync_steps = 1 + up_to(budget.lookahead);
  budget.groups_per_step = 1 + up_to(3);
  budget.steps_total = 6 + up_to(18);
  world.actors = static_cast<int>(1 + up_to(3));
  world.groups_per_actor = static_cast<int>(1 + up_to(2 * budget.groups_per_step));
  world.generate_median = 0.1 + 3 * rng.unit();
  world.generate_sigma = 1.2 * rng.unit();
  world.install_delay_max = 4 * rng.unit() * rng.unit();
  world.publish_delay = rng.unit() * rng.unit();
  world.discard_chance = rng.below(2) == 0 ? 0 : 0.4 * rng.unit();
  world.hand_back_chance = rng.below(2) == 0 ? 0 : 0.3 * rng.unit();
  world.kills = static_cast<int>(up_to(6));
  world.learner_kills = static_cast<int>(up_to(3));
  world.checkpoint_every = 1 + up_to(4);
  return world;
}

struct Outcome {
  std::int64_t committed = 0;
  std::int64_t staleness_max = 0;       // by the true versions of the tokens, not by dates
  bool feasible = true;                 // SB-1 at every event
  std::array<std::int64_t, 3> waits{};  // kCrowded, kReplacementWaits, kDueNotScored met
};

class Simulation {
 public:
  Simulation(const World& world, Rules rules, Rng& rng)
      : world_(world), budget_(world.budget), rules_(rules), rng_(rng) {
    actors_.resize(static_cast<std::size_t>(world.actors));
    const double span = 2.0 * static_cast<double>(budget_.steps_total);
    for (int i = 0; i < world.kills; ++i)
      at(span * rng_.unit(), [this] { kill(rng_.below(actors_.size())); });
    for (int i = 0; i < world.learner_kills; ++i)
      at(span * rng_.unit(), [this] { kill_learner(); });
    state_.published = PolicyVersion{0};
    for (std::size_t a = 0; a < actors_.size(); ++a) start(a);
  }

  Outcome run() {
    pump();
    while (!events_.empty() && outcome_.committed < budget_.steps_total) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      event.act();
      pump();
    }
    return outcome_;
  }

 private:
  enum class Stage { kAdmitted, kRolling, kScoring, kScored, kTraining };
  struct Group {
    Stage stage = Stage::kAdmitted;
    std::optional<StepId> due;
    std::optional<std::int64_t> oldest;  // the truth
    std::size_t actor = 0;
    std::int64_t lease = 0;
  };
  struct Actor {
    bool up = false;
    std::int64_t installed = 0;
    std::int64_t life = 0;
    int held = 0;
  };
  struct Event {
    double time;
    std::int64_t order;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  void at(double delay, std::function<void()> act) {
    events_.push({now_ + delay, ++events_made_, std::move(act)});
  }

  // Makes the histograms by counting anew, without the ledger's bookkeeping.
  void recount() {
    state_.live = std::ssize(groups_);
    state_.dated = {};
    state_.scored = {};
    for (const auto& [id, group] : groups_) {
      if (!group.due || group.stage == Stage::kTraining) continue;
      state_.dated.add(*group.due);
      if (group.stage == Stage::kScored) state_.scored.add(*group.due);
    }
    outcome_.feasible = outcome_.feasible && feasible(budget_, state_);
  }

  template <class Verdict>
  Verdict counted(Verdict verdict, Verdict wait, std::size_t which) {
    outcome_.waits[which] += verdict == wait;
    return verdict;
  }

  bool may_admit() {
    if (rules_ != Rules::kEverAdmitted)
      return counted(admit_verdict(budget_, state_), AdmitVerdict::kReplacementWaits, 1) ==
             AdmitVerdict::kAdmit;
    BudgetState looser = state_;
    looser.live += discarded_;
    looser.discarded_since_publish = 0;
    return admit_verdict(budget_, looser) == AdmitVerdict::kAdmit;
  }

  bool may_lease(const Group& group, const Actor& actor) {
    const PolicyVersion installed{actor.installed};
    if (rules_ == Rules::kDatedAtAdmission)
      return *group.due >= state_.next_step && feasible(budget_, state_);
    const LeaseVerdict verdict =
        counted(lease_verdict(budget_, state_, installed, group.due), LeaseVerdict::kCrowded, 0);
    if (rules_ != Rules::kFeasibleFromNext || verdict != LeaseVerdict::kCrowded)
      return verdict == LeaseVerdict::kLease;
    DueHistogram leased = state_.dated;
    if (group.due) leased.remove(*group.due);
    leased.add(due_at_lease(budget_, installed, group.due));
    std::int64_t dated = 0;
    for (const auto& [due, count] : leased.counts()) {
      dated += count;
      if (due > state_.next_step &&
          dated > budget_.groups_per_step * (due.value - state_.next_step.value + 1))
        return false;
    }
    return true;
  }

  void pump() {
    recount();
    for (; may_admit(); recount()) {
      Group& group = groups_[++group_last_];
      if (rules_ == Rules::kDatedAtAdmission)
        group.due = StepId{state_.published.value + budget_.max_staleness};
    }
    for (std::size_t a = 0; a < actors_.size(); ++a)
      for (auto& [id, group] : groups_)
        if (actors_[a].up && actors_[a].held < world_.groups_per_actor &&
            group.stage == Stage::kAdmitted && may_lease(group, actors_[a])) {
          lease(a, id, group);
          recount();
        }
    if (!learner_up_ || training_) return;
    FormVerdict verdict = counted(form_verdict(budget_, state_), FormVerdict::kDueNotScored, 2);
    if (rules_ == Rules::kFormAtOnce && verdict == FormVerdict::kDueNotScored)
      verdict = FormVerdict::kForm;
    if (verdict != FormVerdict::kForm) return;
    form();
    recount();
  }

  void lease(std::size_t a, std::int64_t id, Group& group) {
    Actor& actor = actors_[a];
    ++actor.held;
    if (!group.due || (rules_ != Rules::kDatedAtAdmission && rules_ != Rules::kKeptDateStays))
      group.due = due_at_lease(budget_, PolicyVersion{actor.installed}, group.due);
    group.oldest = group.oldest ? std::min(*group.oldest, actor.installed) : actor.installed;
    group.stage = Stage::kRolling;
    group.actor = a;
    group.lease = ++lease_last_;
    const double length = world_.generate_median * std::exp(world_.generate_sigma * rng_.normal());
    const bool hands_back = rng_.unit() < world_.hand_back_chance;
    at(length, [this, id, lease = lease_last_, hands_back] { end_lease(id, lease, hands_back); });
  }

  void end_lease(std::int64_t id, std::int64_t lease, bool hands_back) {
    const auto found = groups_.find(id);
    if (found == groups_.end() || found->second.lease != lease) return;  // a late answer
    Group& group = found->second;
    --actors_[group.actor].held;
    group.lease = 0;
    group.stage = hands_back ? Stage::kAdmitted : Stage::kScoring;
    if (hands_back) return;
    at(0.2 * rng_.unit(), [this, id] {
      if (rng_.unit() < world_.discard_chance) {
        groups_.erase(id);
        ++discarded_;
        ++state_.discarded_since_publish;
      } else {
        groups_.at(id).stage = Stage::kScored;
      }
    });
  }

  void form() {
    std::vector<std::pair<StepId, std::int64_t>> order;
    for (const auto& [id, group] : groups_)
      if (group.stage == Stage::kScored) order.push_back({*group.due, id});
    std::ranges::sort(order);
    order.resize(static_cast<std::size_t>(budget_.groups_per_step));
    for (const auto& [due, id] : order) {
      Group& group = groups_.at(id);
      group.stage = Stage::kTraining;
      outcome_.staleness_max =
          std::max(outcome_.staleness_max, state_.next_step.value - *group.oldest);
    }
    training_ = true;
    ++state_.next_step.value;
    at(0.5 + rng_.unit(), [this, life = learner_life_] { commit(life); });
  }

  void commit(std::int64_t life) {
    if (life != learner_life_) return;
    training_ = false;
    std::erase_if(groups_,
                  [](const auto& entry) { return entry.second.stage == Stage::kTraining; });
    state_.trained += budget_.groups_per_step;
    const std::int64_t version = ++outcome_.committed;
    if (version % budget_.sync_steps == 0)
      at(world_.publish_delay, [this, version] { publish(version); });
  }

  void publish(std::int64_t version) {
    if (version <= state_.published.value) return;
    state_.published = PolicyVersion{version};
    state_.discarded_since_publish = 0;
    for (std::size_t a = 0; a < actors_.size(); ++a)
      if (actors_[a].up) install(a, version);
  }

  void install(std::size_t a, std::int64_t version) {
    at(world_.install_delay_max * rng_.unit(), [this, a, version, life = actors_[a].life] {
      if (actors_[a].life != life) return;
      actors_[a].up = true;
      actors_[a].installed = std::max(actors_[a].installed, version);
    });
  }

  void start(std::size_t a) {
    actors_[a] = {.life = actors_[a].life + 1};
    install(a, state_.published.value);
  }

  // Whatever it held starts from nothing elsewhere: undated.
  void kill(std::size_t a) {
    for (auto& [id, group] : groups_) {
      if (group.stage != Stage::kRolling || group.actor != a) continue;
      group.stage = Stage::kAdmitted;
      group.lease = 0;
      group.oldest.reset();
      if (rules_ != Rules::kDatedAtAdmission) group.due.reset();
    }
    start(a);
    // Between a death and the restart versions may come out: a start takes the newest one then.
    at(world_.install_delay_max, [this, a] { install(a, state_.published.value); });
  }

  void kill_learner() {
    ++learner_life_;
    learner_up_ = false;
    if (training_) {
      training_ = false;
      --state_.next_step.value;
      for (auto& [id, group] : groups_)
        if (group.stage == Stage::kTraining) group.stage = Stage::kScored;
    }
    const std::int64_t replayed = outcome_.committed % world_.checkpoint_every;
    at(0.5 + static_cast<double>(replayed), [this, life = learner_life_] {
      if (life == learner_life_) learner_up_ = true;
    });
  }

  const World& world_;
  const Budget& budget_;
  const Rules rules_;
  Rng& rng_;
  double now_ = 0;
  std::priority_queue<Event> events_;
  std::int64_t events_made_ = 0;
  std::map<std::int64_t, Group> groups_;  // live
  std::int64_t group_last_ = 0;
  std::int64_t lease_last_ = 0;
  std::int64_t discarded_ = 0;
  std::vector<Actor> actors_;
  bool learner_up_ = true;
  std::int64_t learner_life_ = 0;
  bool training_ = false;
  BudgetState state_;
  Outcome outcome_;
};

struct Verdicts {
  std::array<std::int64_t, 3> waits{};
  int at_bound = 0;
  int stuck = 0;
  int over_bound = 0;
  int infeasible = 0;
};

// Worlds of one seed after another, up to `seeds`, or until `caught` says that that will do.
Verdicts simulate(Rules rules, std::uint64_t seeds,
                  const std::function<bool(const Verdicts&)>& caught = {}) {
  Verdicts verdicts;
  std::uint64_t seed = 0;
  while (seed < seeds && !(caught && caught(verdicts))) {
    Rng rng(++seed);
    const World world = draw_world(rng);
    const Outcome outcome = Simulation(world, rules, rng).run();
    const bool stuck = outcome.committed < world.budget.steps_total;
    const bool over = outcome.staleness_max > world.budget.max_staleness;
    verdicts.stuck += stuck;
    verdicts.over_bound += over;
    verdicts.infeasible += !outcome.feasible;
    verdicts.at_bound += outcome.staleness_max == world.budget.max_staleness;
    for (std::size_t i = 0; i < outcome.waits.size(); ++i) verdicts.waits[i] += outcome.waits[i];
    if (rules == Rules::kDesign && (stuck || over || !outcome.feasible))
      ADD_FAILURE() << "seed=" << seed << " K=" << world.budget.max_staleness
                    << " L=" << world.budget.lookahead << " m=" << world.budget.sync_steps
                    << " B=" << world.budget.groups_per_step << ": committed " << outcome.committed
                    << " of " << world.budget.steps_total << ", staleness " << outcome.staleness_max
                    << ", feasible " << outcome.feasible;
  }
  std::printf(
      "seeds 1..%llu: stuck %d, over the bound %d, at it %d, SB-1 broken %d; waits %lld %lld "
      "%lld\n",
      static_cast<unsigned long long>(seed), verdicts.stuck, verdicts.over_bound, verdicts.at_bound,
      verdicts.infeasible, static_cast<long long>(verdicts.waits[0]),
      static_cast<long long>(verdicts.waits[1]), static_cast<long long>(verdicts.waits[2]));
  return verdicts;
}

constexpr std::uint64_t kSeeds = 10000;
constexpr std::uint64_t kSeedsLooser = 600;

// SB-1, SB-2, LG-4, LG-6.
TEST(StalenessSimulation, NeverStuckAndNeverOverTheBound) {
  const std::uint64_t seeds = seeds_of(kSeeds);
  const Verdicts verdicts = simulate(Rules::kDesign, seeds);
  // The worlds are hard enough: each wait is met, and the bound is reached in many of them.
  for (const std::int64_t waits : verdicts.waits) EXPECT_GT(waits, 100);
  EXPECT_GT(verdicts.at_bound, static_cast<int>(seeds / 10));
}

TEST(StalenessSimulation, CatchesFeasibilityFromTheNextStepOnly) {
  const Verdicts verdicts = simulate(Rules::kFeasibleFromNext, kSeedsLooser);
  EXPECT_GT(verdicts.stuck + verdicts.over_bound, 0);
}

TEST(StalenessSimulation, CatchesCountingEverAdmitted) {
  EXPECT_GT(simulate(Rules::kEverAdmitted, kSeedsLooser).stuck, 0);
}

TEST(StalenessSimulation, CatchesDatingAtAdmission) {
  const Verdicts verdicts = simulate(Rules::kDatedAtAdmission, kSeedsLooser);
  EXPECT_GT(verdicts.stuck + verdicts.over_bound, 0);
}

TEST(StalenessSimulation, CatchesFormingWithoutWaitingForTheDueOnes) {
  const Verdicts verdicts = simulate(Rules::kFormAtOnce, kSeedsLooser);
  EXPECT_GT(verdicts.stuck + verdicts.over_bound, 0);
}

TEST(StalenessSimulation, CatchesAKeptDateUnderAnOlderActor) {
  const auto caught = [](const Verdicts& verdicts) { return verdicts.over_bound > 0; };
  EXPECT_TRUE(caught(simulate(Rules::kKeptDateStays, kSeeds, caught)));
}

Budget lookahead_budget(std::int64_t staleness, std::int64_t lookahead) {
  return {
      .max_staleness = staleness, .lookahead = lookahead, .groups_per_step = 4, .steps_total = 100};
}

DueHistogram dues(std::initializer_list<std::int64_t> steps) {
  DueHistogram histogram;
  for (const std::int64_t step : steps) histogram.add(StepId{step});
  return histogram;
}

TEST(Admit, RunsLookaheadStepsAheadOfThePublishedVersion) {
  const Budget budget = lookahead_budget(2, 1);
  BudgetState state{.published = PolicyVersion{3}, .trained = 12, .live = 7};
  EXPECT_EQ(admit_verdict(budget, state), AdmitVerdict::kAdmit);
  state.live = 8;  // (3 + 1 + 1) · 4 = 20
  EXPECT_EQ(admit_verdict(budget, state), AdmitVerdict::kAhead);
  state.published = kInitialWeights;
  state.trained = state.live = 0;
  EXPECT_EQ(admit_verdict(budget, state), AdmitVerdict::kAhead);
}

TEST(Admit, EndsWithTheLastStep) {
  Budget budget = lookahead_budget(2, 2);
  budget.steps_total = 5;
  const BudgetState state{.published = PolicyVersion{4}, .trained = 16, .live = 4};
  EXPECT_EQ(admit_verdict(budget, state), AdmitVerdict::kAllAdmitted);
}

TEST(Admit, AReplacementWaitsForTheNextVersionWhileTwoBatchesAreLive) {
  const Budget budget = lookahead_budget(2, 2);
  BudgetState state{.published = PolicyVersion{0}, .live = 11, .discarded_since_publish = 1};
  EXPECT_EQ(admit_verdict(budget, state), AdmitVerdict::kReplacementWaits);
  state.trained = 4, state.live = 7;
  EXPECT_EQ(admit_verdict(budget, state), AdmitVerdict::kAdmit);
}

TEST(Lease, AsksAnActorBehindToInstallFirst) {
  const Budget budget = lookahead_budget(1, 1);
  const BudgetState state{.next_step = StepId{5}, .published = PolicyVersion{5}};
  EXPECT_EQ(lease_verdict(budget, state, PolicyVersion{3}), LeaseVerdict::kActorBehind);
  EXPECT_EQ(lease_verdict(budget, state, PolicyVersion{4}), LeaseVerdict::kLease);
}

TEST(Lease, RefusesMoreThanTheStepsUpToTheDueOneCanTrain) {
  const Budget budget = lookahead_budget(1, 1);
  const BudgetState state{
      .next_step = StepId{5}, .published = PolicyVersion{5}, .dated = dues({5, 5, 5, 5})};
  EXPECT_EQ(lease_verdict(budget, state, PolicyVersion{4}), LeaseVerdict::kCrowded);
  EXPECT_EQ(lease_verdict(budget, state, PolicyVersion{5}), LeaseVerdict::kLease);
}

TEST(Lease, AnOlderActorBringsAKeptDateForward) {
  const Budget budget = lookahead_budget(3, 2);
  EXPECT_EQ(due_at_lease(budget, PolicyVersion{5}, StepId{6}), StepId{6});
  EXPECT_EQ(due_at_lease(budget, PolicyVersion{2}, StepId{6}), StepId{5});
  const BudgetState state{.next_step = StepId{5}, .dated = dues({5, 5, 5, 5, 6})};
  EXPECT_EQ(lease_verdict(budget, state, PolicyVersion{2}, StepId{6}), LeaseVerdict::kCrowded);
  EXPECT_EQ(lease_verdict(budget, state, PolicyVersion{4}, StepId{6}), LeaseVerdict::kLease);
}

TEST(Form, WaitsForTheDueOnesAndNamesTheirStep) {
  const Budget budget = lookahead_budget(2, 2);
  BudgetState state{
      .next_step = StepId{5}, .dated = dues({5, 6, 6, 6, 6, 7}), .scored = dues({6, 6, 6, 6, 7})};
  EXPECT_EQ(form_verdict(budget, state), FormVerdict::kDueNotScored);
  EXPECT_EQ(held_up_by(budget, state), StepId{5});
  state.scored.add(StepId{5});
  EXPECT_EQ(form_verdict(budget, state), FormVerdict::kForm);
  state.scored = dues({5, 6, 6});
  EXPECT_EQ(form_verdict(budget, state), FormVerdict::kTooFewScored);
}

TEST(Budget, DefaultLookahead) {
  const std::array<std::int64_t, 9> expected{0, 1, 2, 2, 3, 3, 4, 5, 6};
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(default_lookahead(static_cast<std::int64_t>(k)), expected[k]) << "K=" << k;
}

}  // namespace
}  // namespace tandem::scheduler
