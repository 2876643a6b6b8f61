// A controller that dies alone, whatever else happens: its jobs go on where they were, with the
// actors that live.
//
// Tests actors/exchange/follow.h, actors/controller/adoption.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "actors/exchange/follow.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

const bool kFollowQuietly = (log::mute(), true);

std::shared_ptr<SimulatedRun> submit(SimulatedCluster& cluster, const SimulatedJob& job,
                                     std::string& id) {
  const auto submitted = cluster.submit(job);
  EXPECT_TRUE(submitted.has_value());
  id = *submitted;
  return cluster.run_of(id);
}

bool trains(const SimulatedRun& run) {
  const exchange::RunStage stage = run.record.replayed.facts().stage;
  return stage != exchange::RunStage::kStarting && stage != exchange::RunStage::kEnded;
}

std::int64_t count(const SimulatedRun& run, const std::string& kind) {
  return std::ranges::count(run.record.events, kind, &JournalledRow::kind);
}

// How often the controller dies while the job trains, and what for.
struct Deaths {
  int most = 20;
  Duration between_max = 300ms;
  Duration pause_max = 1s;
};

int kill_controllers(SimulatedCluster& cluster, const std::string& job, std::uint64_t seed,
                     const Deaths& deaths) {
  const auto run = cluster.run_of(job);
  Rng rng(derive_seed(seed, "controllers"));
  cluster.run_until([&] { return trains(*run) || cluster.final(job); }, kVirtualLimit);
  int done = 0;
  for (; done < deaths.most && !cluster.final(job); ++done) {
    cluster.restart_controller(
        Duration(rng.below(static_cast<std::uint64_t>(deaths.pause_max.count()))));
    cluster.run_for(Duration(rng.below(static_cast<std::uint64_t>(deaths.between_max.count()))));
  }
  return done;
}

// EX-8. Links lose what was on its way with the controller: no group for that.
TEST(Follow, NothingIsDoneTwiceAndNobodyIsStartedAgain) {
  int deaths = 0, formed_again = 0;
  for_seeds(40, [&](std::uint64_t seed) {
    SimulatedJob job = fixed_lag_job(seed, static_cast<std::int64_t>(seed % 4));
    job.exchange.filter_groups.enable = seed % 3 == 0;
    job.replicas[messages::Role::kRollout] = 1 + static_cast<std::int32_t>(seed % 3);
    const bool broadcasts = seed % 2 == 0;
    if (broadcasts) {
      add_broadcasts(job);
      job.broadcasts = SimulatedBroadcasts{};
    }
    const std::string weights = undisturbed_weights(seed, job);
    auto cluster = cluster_of(seed);
    std::string id;
    const auto run = submit(*cluster, job, id);
    cluster->run_until([&] { return trains(*run); }, kVirtualLimit);
    const auto ranks = cluster->ranks_running();
    const std::int64_t epochs = run->epochs->formed;
    const int died = kill_controllers(*cluster, id, seed, {});
    deaths += died;
    formed_again += run->epochs->formed > epochs ? 1 : 0;
    for (const node::RankId& rank : cluster->ranks_running())
      EXPECT_EQ(std::ranges::count(ranks, rank), 1) << rank.actor << " was started again";
    run_to_end(*cluster, id);
    expect_success(*cluster, id);
    EXPECT_EQ(weights_of(*cluster, id), weights);
    EXPECT_EQ(run->epochs->wrong, std::vector<std::string>{}) << "BG-3, EX-4";
    EXPECT_EQ(count(*run, "retrained"), 0) << "no step is trained twice";
    EXPECT_EQ(count(*run, "learner_restarted"), 0);
    std::map<std::int64_t, int> generated;
    for (const JournalledRow& row : run->record.events)
      if (row.kind == "generated") ++generated[row.group];
    for (const auto& [group, times] : generated)
      EXPECT_EQ(times, 1) << "group " << group << " after " << died << " controllers";
    EXPECT_EQ(count(*run, "refused"), 0);
  });
  EXPECT_GT(deaths, static_cast<int>(seeds_of(40)));
  EXPECT_GT(formed_again, static_cast<int>(seeds_of(10))) << "the weights are broadcast again";
}

// A process that has once begun works on; one that had not may begin as the next incarnation.
TEST(Follow, WhatHasBegunGoesOnAlsoWhileTheJobStarts) {
  int deaths = 0;
  for_seeds(60, [&](std::uint64_t seed) {
    SimulatedJob job = fixed_lag_job(seed, 1);
    job.learner_ranks = seed % 2 == 0 ? 2 : 1;
    job.exchange.warm_start = seed % 3 == 0;
    if (job.exchange.warm_start) job.trainer.warm_start_steps = 6;
    if (seed % 5 == 0) {
      add_broadcasts(job);
      job.broadcasts = SimulatedBroadcasts{};
    }
    job.load_max = 2s;
    const std::string weights = undisturbed_weights(seed, job);
    auto cluster = cluster_of(seed);
    std::string id;
    const auto run = submit(*cluster, job, id);
    Rng rng(derive_seed(seed, "start"));
    std::set<node::RankId> begun;
    const auto look = [&] {
      const auto living = cluster->ranks_running();
      for (const node::RankId& rank : living) begun.insert(rank);
      for (const node::RankId& rank : begun)
        EXPECT_EQ(std::ranges::count(living, rank), 1) << rank.actor << " was ended";
    };
    for (int i = 0; i < 10 && !trains(*run) && !cluster->final(id); ++i, ++deaths) {
      cluster->run_for(Duration(rng.below(600'000'000)));
      look();
      cluster->restart_controller(Duration(rng.below(800'000'000)));
      look();
    }
    cluster->run_until([&] { return trains(*run) || cluster->final(id); }, kVirtualLimit);
    look();
    run_to_end(*cluster, id);
    expect_success(*cluster, id);
    EXPECT_EQ(weights_of(*cluster, id), weights);
    EXPECT_EQ(run->epochs->wrong, std::vector<std::string>{}) << "BG-3, EX-4";
    EXPECT_EQ(count(*run, "refused"), 0);
    EXPECT_EQ(count(*run, "resumed"), 0);
  });
  EXPECT_GT(deaths, static_cast<int>(seeds_of(60)));
}

TEST(Follow, EveryKindOfJobEndsWellWhateverElseDies) {
  for_seeds(150, [&](std::uint64_t seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    const Kills kills(*cluster, seed, {.early = static_cast<int>(seed % 2), .later = 3});
    SimulatedJob job = random_job(seed);
    if (seed % 5 == 0) add_broadcasts(job);
    std::string id;
    submit(*cluster, job, id);
    Rng rng(derive_seed(seed, "storm"));
    for (int i = 0; i < 8 && !cluster->final(id); ++i) {
      cluster->run_for(Duration(rng.below(rng.below(2) == 0 ? 30'000'000 : 2'000'000'000)));
      if (cluster->final(id)) break;
      switch (rng.below(6)) {
        case 0:
          strike(*cluster, static_cast<Disaster>(rng.below(kDisasters)));
          break;
        case 1:
          (void)cluster->scale(id, messages::Role::kRollout,
                               1 + static_cast<std::int32_t>(rng.below(4)));
          break;
        default:
          cluster->restart_controller(Duration(rng.below(2'000'000'000)));
          break;
      }
    }
    run_to_end(*cluster, id);
    expect_success(*cluster, id);
  });
}

TEST(Follow, ACancelledJobIsNotTakenUpAndLeavesNothing) {
  for_seeds(30, [&](std::uint64_t seed) {
    auto cluster = cluster_of(seed);
    std::string id;
    const auto run = submit(*cluster, plain_job(seed), id);
    cluster->run_until([&] { return trains(*run); }, kVirtualLimit);
    Rng rng(derive_seed(seed, "cancel"));
    cluster->run_for(Duration(rng.below(300'000'000)));
    if (cluster->final(id)) return;
    ASSERT_TRUE(cluster->cancel(id));
    cluster->run_for(Duration(rng.below(5'000'000)));
    cluster->restart_controller(100ms);
    EXPECT_TRUE(cluster->run_until([&] { return cluster->ranks_running().empty(); }, 60s));
  });
}

}  // namespace
}  // namespace tandem::controller
