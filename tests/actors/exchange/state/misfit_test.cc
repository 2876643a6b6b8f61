// Tests actors/exchange/state/misfit.h, actors/exchange/state/journal_replay.h: journals whose rows
// are whole and contradict each other. That the journal of every run fits is shown by every run of
// the simulation, whose exchanges apply() no other event.
#include "actors/exchange/state/misfit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "actors/exchange/exchange_core.h"
#include "actors/exchange/follow.h"
#include "actors/exchange/run_replay.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"
#include "tests/actors/exchange/state/leaves.h"
#include "tests/seeds.h"

namespace tandem::exchange {
namespace {

const bool kMisfitsQuietly = (log::mute(), true);

using Entries = std::vector<JournalEntry>;

JournalReplay replay_of(const Entries& entries) {
  JournalReplay replay;
  for (const JournalEntry& entry : entries) replay.take(entry);
  return replay;
}

// Changes one value of the event: an id, a number, a list, an optional.
void change_value(Rng& rng, JournalEvent& event) {
  std::visit(
      [&](auto& one) {
        Leaves all(-1);
        all.visit(one);
        if (all.count() == 0) return;
        Leaves(static_cast<int>(rng.below(static_cast<std::uint64_t>(all.count())))).visit(one);
      },
      event);
}

void edit(Rng& rng, Entries& entries) {
  const auto place = [&] {
    return entries.begin() + static_cast<std::ptrdiff_t>(rng.below(entries.size()));
  };
  const JournalEntry copy = *place();
  switch (rng.below(4)) {
    case 0:
      entries.erase(place());
      return;
    case 1:
      entries.insert(place(), copy);
      return;
    case 2:
      std::iter_swap(place(), place());
      return;
    default:
      change_value(rng, place()->event);
  }
}

TEST(Misfit, AJournalThatContradictsItselfIsToldByItsPlace) {
  const ActorId rollout{"job-1/rollout/0", Incarnation{3}};
  Entries entries = {
      {0, RunBegan{{.max_staleness = 1, .lookahead = 1, .steps_total = 3}, false, 17, Epoch{1}}},
      {0, GroupAdmitted{GroupId{1}, 0, {}}},
      {0, RolloutLeased{GroupId{1}, scheduler::LeaseId{1}, rollout, PolicyVersion{0}}}};
  EXPECT_TRUE(replay_of(entries).contradiction().has_value());
  entries.push_back(entries.back());
  const JournalReplay replay = replay_of(entries);
  const auto whole = replay.contradiction();
  ASSERT_FALSE(whole.has_value());
  EXPECT_EQ(whole.error().where, "event 4 of the journal");
  EXPECT_NE(whole.error().message.find("group 1 waits for no rollout"), std::string::npos);
  EXPECT_NE(whole.error().help.find("--resume"), std::string::npos);
  EXPECT_EQ(replay.state().facts().flow.ledger.counters().live, 1) << "nothing more is applied";
}

TEST(Misfit, AnotherHashIsAContradictionToo) {
  const Entries entries = {{0, RunBegan{{.steps_total = 1}, false, 1, Epoch{1}}},
                           {0, StateHashed{1}},
                           {0, GroupAdmitted{GroupId{9}, 0, {}}}};
  const JournalReplay replay = replay_of(entries);
  EXPECT_EQ(replay.differs_at(), 2);
  ASSERT_FALSE(replay.contradiction().has_value());
  EXPECT_EQ(replay.contradiction().error().where, "event 2 of the journal");
}

// An exchange goes on from the journal, and is asked what a user may ask.
void go_on(const controller::SimulatedJob& job, const Entries& entries) {
  RunReplay run;
  for (const JournalEntry& entry : entries) run.take(entry);
  const JournalReplay& replay = run.replay();
  ExchangeConfig config = controller::exchange_config(job, "job-1", false);
  const RunBegan& began = replay.state().facts().began;
  const auto tied = [](const scheduler::Budget& b) {
    return std::tuple(b.max_staleness, b.lookahead, b.sync_steps, b.groups_per_step, b.steps_total);
  };
  if (tied(began.budget) != tied(config.budget) || began.fixed_lag != config.fixed_lag) return;
  config.epoch = Epoch{began.epoch.value + 1};
  ExchangeCore core(std::move(config), run.predecessor(), Time{});
  (void)core.step(Decide{}, Time{} + std::chrono::seconds(1));
  (void)core.report(Time{} + std::chrono::seconds(2));
  (void)core.groups({}, Time{} + std::chrono::seconds(2));
}

// A reader of an edited journal gets an Error or another run, from which an exchange can go on, and
// its process lives.
TEST(Misfit, AnEditedJournalEndsNoReader) {
  for_seeds(8, [&](std::uint64_t seed) {
    auto cluster = controller::cluster_of(seed);
    const controller::SimulatedJob job =
        seed % 2 ? controller::random_job(seed) : controller::fixed_lag_job(seed, 2);
    const auto id = cluster->submit(job);
    ASSERT_TRUE(id.has_value());
    cluster->run_for(std::chrono::seconds(2));
    cluster->restart_controller(std::chrono::milliseconds(300));
    controller::run_to_end(*cluster, *id);
    const Entries& whole = cluster->run_of(*id)->record.entries;
    const auto part = [&](std::size_t size) {
      return Entries(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    };
    EXPECT_TRUE(replay_of(whole).contradiction().has_value());
    Rng rng(derive_seed(seed, "edits"));
    int contradictions = 0;
    for (int i = 0; i < 100; ++i) {
      Entries edited = whole;
      for (std::uint64_t edits = 1 + rng.below(3); edits > 0; --edits) edit(rng, edited);
      contradictions += replay_of(edited).contradiction() ? 0 : 1;
      // As a controller that dies in the midst of the run leaves it.
      Entries begun = part(1 + rng.below(whole.size()));
      edit(rng, begun);
      if (replay_of(begun).contradiction()) go_on(job, begun);
    }
    EXPECT_GT(contradictions, 30) << "of 100";
  });
}

}  // namespace
}  // namespace tandem::exchange
