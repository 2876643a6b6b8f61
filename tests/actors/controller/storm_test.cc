// That storms are what scripts/simulate takes them for: a seed has one trace, a plan can be printed
// and read, each kind of fault meets a target, and a failure is shrunk to what it needs.
//
// Tests actors/controller/controller_core.h, actors/exchange/exchange.h,
// scheduler/fleet/fixed_lag.h.
#include "tests/actors/controller/storm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/base/log.h"
#include "tests/actors/controller/fault_kinds.h"
#include "tests/actors/controller/hidden_processes.h"
#include "tests/actors/controller/process_executor.h"
#include "tests/actors/controller/shrink.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

const bool kStormsAreSilent = (log::mute(), true);

TEST(Storm, ASeedHasOneTrace) {
  std::set<std::uint64_t> traces;
  for_seeds(20, [&](std::uint64_t seed) {
    const FaultPlan plan = random_plan(seed);
    const auto read = parse_plan(text_of(plan));
    ASSERT_TRUE(read) << render(read.error());
    EXPECT_EQ(*read, plan);
    const StormOutcome first = run_storm(seed, plan), again = run_storm(seed, *read);
    EXPECT_EQ(first.trace_hash, again.trace_hash);
    EXPECT_EQ(first.steps, again.steps);
    EXPECT_EQ(first.effects, again.effects);
    EXPECT_TRUE(traces.insert(first.trace_hash).second) << "another seed has the same trace";
  });
}

TEST(Storm, EachKindOfFaultMeetsATarget) {
  std::set<std::string> names;
  for (const FaultRow& row : fault_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(kind_named(row.name), row.kind);
    std::uint64_t struck = 0;
    for (std::uint64_t seed = 1; seed <= 12 && struck == 0; ++seed)
      struck +=
          run_storm(seed, random_plan(seed, {row.kind})).struck[static_cast<std::size_t>(row.kind)];
    EXPECT_GT(struck, 0u) << row.name;
  }
}

TEST(Storm, AQuestionInFlightIsAnsweredWhoeverDies) {
  std::int64_t asked = 0, answered = 0;
  for_seeds(20, [&](std::uint64_t seed) {
    const StormOutcome outcome =
        run_storm(seed, random_plan(seed, {FaultKind::kControllerDeath, FaultKind::kRankDeath}));
    asked += outcome.asked;
    answered += outcome.answered;
  });
  EXPECT_GT(answered, asked / 3);
  EXPECT_LT(answered, asked) << "some die with whom they were put to";
}

// AS-2, CC-5 and CC-6 of jobs that choose the number of their rollouts, where controllers die.
TEST(Storm, AutoscaleAndUsersChangeTheNumberOfRolloutsWhoeverDies) {
  std::int64_t jobs = 0, changed = 0;
  for_seeds(40, [&](std::uint64_t seed) {
    if (!storm_job(seed).autoscale) return;
    const StormOutcome outcome =
        run_storm(seed, random_plan(seed, {FaultKind::kControllerDeath, FaultKind::kRankDeath,
                                           FaultKind::kNodeDeath, FaultKind::kJournalFails}));
    ++jobs;
    changed += outcome.rollout_numbers > 1;
  });
  EXPECT_GT(jobs, 0);
  EXPECT_GT(changed, jobs / 2);
}

// SE-3: of a controller that wakes beside its successor nobody takes anything.
TEST(Storm, LatePacketsOfAControllerThatStoodStillAreRefused) {
  for_seeds(10, [](std::uint64_t seed) {
    const auto cluster = cluster_of(seed);
    const auto job = cluster->submit(storm_job(seed));
    ASSERT_TRUE(job) << render(job.error());
    cluster->run_for(500ms);
    ASSERT_FALSE(cluster->final(*job));
    cluster->network().wake_lost_server_after(1s);
    cluster->restart_controller(100ms);
    run_to_end(*cluster, *job);
    cluster->run_for(2s);
    EXPECT_GT(cluster->network().late_packets_refused(), 0u);
    expect_success(*cluster, *job);
  });
}

// FL-2. Jobs without a fixed lag have no such weights.
TEST(Storm, UnderAFixedLagWeightsAreThoseOfARunThatNothingDisturbs) {
  for_seeds(40, [](std::uint64_t seed) {
    const StormOutcome outcome =
        run_storm(seed, random_plan(seed, {FaultKind::kControllerDeath, FaultKind::kRankDeath,
                                           FaultKind::kNodeDeath, FaultKind::kZombie}));
    const SimulatedJob job = storm_job(seed);
    const std::int64_t least = job.exchange.fixed_lag ? job.exchange.budget.steps_total : 0;
    EXPECT_GE(outcome.trainings_compared, least);
    EXPECT_EQ(outcome.trainings_compared > 0, job.exchange.fixed_lag);
  });
}

// Storms in which something was wrong once.
TEST(Storm, WhatFailedOnceHolds) {
  struct Once {
    std::uint64_t seed;
    const char* plan;
  };
  for (const auto& [seed, plan] : {
           // A process that began on a host that was then cut off lived for five minutes, however
           // short the grace was, where its agent had died (CC-1).
           Once{16432, "agent_death@t1992ms+0ms#54 partition@t484ms+47985ms#552"},
           Once{233237, "partition@t81ms+43502ms#166 agent_death@t207ms+0ms#322"},
           // An answer that came again while the journal waited for room was freed twice.
           Once{293127,
                "controller_death@t1023ms+30ms#937 link_loss@t374ms+296ms#854 "
                "disk_full@e119+299ms#775"},
           Once{243989,
                "full_mailbox@t828ms+250ms#890 clock_jump@e34+490ms#80 "
                "controller_death@e238+56ms#404"},
           // A rollout was refused for telling again what it had told before its end.
           Once{124041, "controller_death@e137+257ms#9 clock_jump@e159+821ms#834"},
           // A clock that jumped by as long as a lease ended rollouts that evaluated.
           Once{6238, "clock_jump@e121+18146ms#420"},
           // A process that hung on a host that was cut off was given up three seconds after it had
           // been told to end, which it had not heard (CC-1).
           Once{330452,
                "controller_death@t448ms+1154ms#865 rank_hang@t156ms+8222ms#180 "
                "one_way@t1264ms+12732ms#480"},
           // A run that had ended was begun again by a controller that died, and the next one took
           // the actors of the first attempt for those of the second.
           Once{2013754,
                "controller_death@e466+0ms#489 controller_zombie@e482+0ms#586 "
                "node_death@t2066ms+1379ms#824"},
       }) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_GT(run_storm(seed, *parse_plan(plan)).steps, 0);
  }
}

TEST(FaultPlan, WhatIsNoPlanIsRefused) {
  EXPECT_TRUE(parse_plan("")->empty());
  EXPECT_EQ(parse_plan("  zombie@t5ms+7ms#9  rank_death@e3+0ms#0 ")->size(), 2u);
  for (const char* text : {"zombie", "zombie@", "zombie@t5+7ms#9", "zombie@t5ms+7ms", "@t5ms+7ms#9",
                           "ghost@t5ms+7ms#9", "zombie@t5ms+7ms#9x", "zombie@tms+7ms#9"})
    EXPECT_FALSE(parse_plan(text)) << text;
}

TEST(Shrink, LeavesTheFaultsWithoutWhichNothingFails) {
  for_seeds(200, [](std::uint64_t seed) {
    Rng rng(seed);
    FaultPlan plan;
    for (std::uint64_t i = 0; i < 1 + rng.below(12); ++i)
      plan.push_back({.kind = FaultKind::kZombie, .when = i, .lasts_ms = 1000});
    FaultPlan needed;
    for (const Fault& fault : plan)
      if (rng.below(3) == 0) needed.push_back(fault);
    std::set<FaultPlan> tried;
    const FaultPlan left = shrink(plan, [&](const FaultPlan& some) {
      EXPECT_TRUE(tried.insert(some).second) << "tried twice";
      return std::ranges::all_of(needed, [&](const Fault& fault) {
        return std::ranges::any_of(some, [&](const Fault& other) {
          return other.when == fault.when && other.lasts_ms >= 100;
        });
      });
    });
    ASSERT_EQ(left.size(), needed.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].when, needed[i].when);
      EXPECT_EQ(left[i].lasts_ms, 125u) << "it could be shorter";
    }
  });
}

// CC-1 holds again for a process that began after its host was known again.
TEST(HiddenProcesses, AreThoseOfAHostUntilItsAgentHasIntroducedItself) {
  const node::RankId before{"job/rollout/0", {1}}, after{"job/rollout/1", {2}};
  const Time fault_ends{10'000'000'000}, met = fault_ends + 1s;
  HiddenProcesses hidden;
  EXPECT_FALSE(hidden.may_be_left_over("a", before, Time{})) << "no fault has struck";
  hidden.hide("a", fault_ends);
  hidden.introduced("a", Time{fault_ends.ns - 1}, {});  // the fault lasts
  EXPECT_TRUE(hidden.may_be_left_over("a", before, met));
  EXPECT_FALSE(hidden.may_be_left_over("b", before, met));
  hidden.introduced("a", met, {before});
  hidden.introduced("a", met + 1s, {before, after});  // it was known already
  EXPECT_TRUE(hidden.may_be_left_over("a", before, met + 2s)) << "it is being ended";
  EXPECT_FALSE(hidden.may_be_left_over("a", after, met + 2s));
  EXPECT_FALSE(hidden.may_be_left_over("a", before, fault_ends + kLeftOverMax));
  hidden.hide("a", met + 2s);
  EXPECT_TRUE(hidden.may_be_left_over("a", after, met + 3s)) << "another fault";
}

// PX-1, and timers by a clock that jumps.
TEST(ProcessExecutor, AStoppedProcessHandlesNothingUntilItGoesOn) {
  actor::SimulatedExecutor simulation(1);
  ProcessExecutor process(simulation);
  std::vector<std::string> ran;
  const auto at = [&](Duration when, const char* what) {
    return process.at(process.now() + when, [&ran, what] { ran.push_back(what); });
  };
  const auto run_for = [&](Duration time) {
    bool over = false;
    simulation.at(simulation.now() + time, [&over] { over = true; });
    simulation.run_until([&over] { return over; }, time);
  };
  at(1s, "first");
  at(2s, "second");
  const actor::TimerId cancelled = at(3s, "cancelled");
  run_for(1500ms);
  process.stop();
  run_for(5s);
  EXPECT_EQ(ran, (std::vector<std::string>{"first"}));
  process.cancel(cancelled);
  process.go_on();
  run_for(1ms);
  EXPECT_EQ(ran, (std::vector<std::string>{"first", "second"}));
  at(60s, "third");
  process.jump(59s);
  EXPECT_EQ(process.now() - simulation.now(), 59s);
  run_for(2s);
  EXPECT_EQ(ran.back(), "third");
}

}  // namespace
}  // namespace tandem::controller
