// async.schedule: fixed_lag over the whole control plane: the same weights for any number of
// rollout actors, whichever process dies.
//
// Tests scheduler/fleet/fixed_lag.h, actors/exchange/exchange.h.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

const bool kQuiet = (log::mute(), true);

struct Fleet {
  std::uint64_t seed = 1;
  std::int32_t rollouts = 1;
  int kills = 0;
  int disasters = 0;
};

std::string weights_after(const SimulatedJob& job, const Fleet& fleet) {
  auto cluster = cluster_of(fleet.seed, random_conditions(fleet.seed));
  const Kills kills(*cluster, fleet.seed, {.later = fleet.kills});
  SimulatedJob sized = job;
  sized.replicas[messages::Role::kRollout] = fleet.rollouts;
  const auto id = cluster->submit(sized);
  EXPECT_TRUE(id.has_value());
  Rng rng(derive_seed(fleet.seed, "disasters"));
  for (int i = 0; i < fleet.disasters && !cluster->final(*id); ++i) {
    cluster->run_for(Duration(rng.below(2'000'000'000)));
    strike(*cluster, static_cast<Disaster>(rng.below(kDisasters)));
  }
  run_to_end(*cluster, *id);
  expect_success(*cluster, *id);
  return weights_of(*cluster, *id);
}

TEST(FixedLagRun, WeightsDependOnTheJobAlone) {
  std::set<std::string> different;
  for_seeds(24, [&](std::uint64_t seed) {
    SimulatedJob job = fixed_lag_job(seed, static_cast<std::int64_t>(seed % 5));
    job.exchange.filter_groups.enable = seed % 2 == 0;  // with discards, and hence replacements
    job.exchange.gen_batches_max = 3;
    job.scorer.values = seed % 2 == 0 ? 2 : 4;
    job.scorer.fails = seed % 3 == 0 ? 0.05 : 0;
    if (seed % 4 == 0) job.prompts_unservable = 0.1;
    const std::string alone = weights_after(job, {.seed = seed, .rollouts = 1});
    EXPECT_EQ(alone.size(), 64u);
    EXPECT_EQ(weights_after(job, {.seed = seed + 1, .rollouts = 2}), alone);
    EXPECT_EQ(weights_after(job, {.seed = seed + 2, .rollouts = 3}), alone);
    EXPECT_EQ(weights_after(job, {.seed = seed + 3, .rollouts = 2, .kills = 6}), alone);
    EXPECT_EQ(weights_after(job, {.seed = seed + 4, .rollouts = 3, .kills = 6}), alone);
    job.weights_end_with_learner = seed % 2 == 0;
    EXPECT_EQ(weights_after(job, {.seed = seed + 6, .rollouts = 2, .disasters = 3}), alone);
    job.weights_end_with_learner = false;
    add_broadcasts(job);
    EXPECT_EQ(weights_after(job, {.seed = seed + 5, .rollouts = 3, .kills = 3}), alone);
    EXPECT_TRUE(different.insert(alone).second) << "another seed, other weights";
  });
}

TEST(FixedLagRun, TwoRolloutsShareTheWork) {
  auto cluster = cluster_of(3);
  SimulatedJob job = fixed_lag_job(3, 2);
  job.replicas[messages::Role::kRollout] = 2;
  const std::string id = run_job(*cluster, job);
  std::map<std::string, int> groups;
  for (const JournalledRow& event : cluster->run_of(id)->record.events)
    if (event.kind == "generated") ++groups[event.holder];
  ASSERT_EQ(groups.size(), 2u);
  for (const auto& [rollout, count] : groups) EXPECT_GE(count, 80 / 5) << rollout;
}

TEST(FixedLagRun, GroupsAreWhollyOfTheVersionOfTheirSlot) {
  auto cluster = cluster_of(4);
  SimulatedJob job = fixed_lag_job(4, 2);
  const std::string id = run_job(*cluster, job);
  std::map<std::int64_t, std::int64_t> slot_step;
  for (const JournalledRow& event : cluster->run_of(id)->record.events) {
    if (event.kind == "admitted") slot_step[event.group] = event.step;
    if (event.kind == "generated") {
      EXPECT_EQ(event.version, std::max<std::int64_t>(0, slot_step[event.group] - 2));
    }
  }
}

}  // namespace
}  // namespace tandem::controller
