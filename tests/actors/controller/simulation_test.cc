// The whole control plane in virtual time: liveness, the ledger and the staleness bound under
// deaths, scaling and cancelling; and that a seed repeats. Every failure prints its seed.
//
// Tests actors/controller/controller_core.h, actors/exchange/exchange.h.
#include "tests/actors/controller/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

// Thousands of deaths would fill the screen.
const bool kSilent = (log::mute(), true);

nlohmann::json result_of(SimulatedCluster& cluster, const std::string& job) {
  return parse_json(*cluster.run_of(job)->record.result_json);
}

std::int64_t count_kind(const SimulatedRun& run, const std::string& kind) {
  return std::count_if(run.record.events.begin(), run.record.events.end(),
                       [&](const JournalledRow& event) { return event.kind == kind; });
}

TEST(Simulation, PlainJobEndsWellWithoutFaults) {
  auto cluster = cluster_of(1);
  SimulatedJob job = plain_job(1);
  job.exchange.warm_start = true;
  job.trainer.warm_start_steps = 5;
  job.validation_prompts = 40;
  job.exchange.test_freq = 5;
  const std::string id = run_job(*cluster, job);
  expect_success(*cluster, id);
  expect_evaluated(*cluster, id);
  const auto run = cluster->run_of(id);
  // Each evaluation is a record at its own version, and no step's line has its figures.
  using Record = std::pair<std::string, std::int64_t>;
  std::vector<Record> records;
  std::size_t steps = 0;
  for (const std::string& text : run->record.metrics_lines) {
    const nlohmann::json line = parse_json(text);
    EXPECT_EQ(line.contains("eval"), line.contains("val/reward/mean")) << text;
    if (line.contains("eval"))
      records.emplace_back(line["eval"], line["step"]);
    else
      ++steps;
  }
  EXPECT_EQ(steps, 20u);
  EXPECT_EQ(records, (std::vector<Record>{{"before", -1},
                                          {"after_warm_start", 0},
                                          {"periodic", 5},
                                          {"periodic", 10},
                                          {"periodic", 15},
                                          {"final", 20}}));
  const nlohmann::json shown = result_of(*cluster, id)["eval"]["records"];
  ASSERT_EQ(shown.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(shown[i]["kind"], records[i].first);
    EXPECT_EQ(shown[i]["version"], records[i].second);
    EXPECT_TRUE(shown[i]["mean"].is_number());
  }
  const auto result = result_of(*cluster, id);
  EXPECT_GT(result["staleness"]["max"], 0);
  EXPECT_EQ(result["ledger"]["retrained"], 0);
  EXPECT_EQ(result["ledger"]["issued"], 80);
  EXPECT_EQ(count_kind(*run, "evaluated"), 2 + 3 + 1);  // before, after; 5, 10, 15; final
  EXPECT_EQ(run->payload_store.size(), 0u);             // every payload was released, once
  EXPECT_EQ(cluster->counters().undecodable, 0u);
}

TEST(Simulation, AnEvaluationOfSeveralSamplesTellsOfEach) {
  auto cluster = cluster_of(3);
  SimulatedJob job = plain_job(3);
  job.validation_prompts = 40;
  job.exchange.evaluation.sampling = {.n = 6, .temperature = 1, .greedy = true};
  job.data_sources = {"openai/gsm8k", "math"};
  job.scorer.values = 2;  // half of the completions succeed
  job.scorer.fails = 0.1;
  job.exchange.samples.evaluation.reset();  // all are kept
  const std::string id = run_job(*cluster, job);
  expect_success(*cluster, id);
  expect_evaluated(*cluster, id);
  const auto figures = result_of(*cluster, id)["eval"]["figures"]["final"];
  const double mean = figures["mean"], greedy = figures["greedy"];
  EXPECT_NEAR(mean, 0.5, 0.15);
  EXPECT_NEAR(greedy, 0.5, 0.3);
  EXPECT_GT(figures["failed"], 5);
  EXPECT_LT(figures["pass@1"], figures["pass@2"]);
  EXPECT_LT(figures["pass@2"], figures["pass@4"]);
  EXPECT_GT(figures["pass@6"], 0.8);
  EXPECT_EQ(figures["sources"].size(), 2u);
  EXPECT_EQ(figures["sources"]["math"]["scored"].get<int>() +
                figures["sources"]["openai_gsm8k"]["scored"].get<int>(),
            figures["scored"]);
  const auto run = cluster->run_of(id);
  std::map<std::string, int> greedily, sampled;  // completions by source
  for (const std::string& text : run->record.sample_lines) {
    const auto sample = parse_json(text);
    if (!sample.contains("eval")) continue;
    ++(sample["greedy"].get<bool>() ? greedily : sampled)[sample["data_source"].get<std::string>()];
    EXPECT_EQ(sample["sample"].is_null(), sample["greedy"].get<bool>());
  }
  for (const char* const source : {"math", "openai_gsm8k"}) {
    EXPECT_GE(greedily[source], 2 * 16) << source;
    EXPECT_GE(sampled[source], 2 * 16 * 4) << source;
  }
}

TEST(Simulation, RandomJobsEndWellWithoutFaults) {
  for_seeds(200, [](std::uint64_t seed) {
    auto cluster = cluster_of(seed);
    const std::string id = run_job(*cluster, random_job(seed));
    expect_success(*cluster, id);
    expect_evaluated(*cluster, id);
    for (const std::string& event : cluster->trace())
      EXPECT_EQ(event.find("Backoff"), std::string::npos) << "nobody killed it: " << event;
  });
}

TEST(Simulation, RandomJobsSurviveKills) {
  std::int64_t retrained = 0, killed = 0;
  for_seeds(300, [&](std::uint64_t seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    const Kills kills(*cluster, seed, {.early = static_cast<int>(seed % 3), .later = 6});
    const std::string id = run_job(*cluster, random_job(seed));
    expect_success(*cluster, id);
    expect_evaluated(*cluster, id);
    killed += kills.done();
    retrained += count_kind(*cluster->run_of(id), "retrained");
  });
  EXPECT_GT(retrained, 0);
  EXPECT_GT(killed, static_cast<std::int64_t>(seeds_of(300)) * 3);
}

// Ranks that hang, fail, die and are late in the midst of epochs: the job ends as without them.
TEST(Simulation, BroadcastsThatFailHoldNobodyUp) {
  std::int64_t formed = 0, failed = 0, told = 0;
  for_seeds(100, [&](std::uint64_t seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    const Kills kills(*cluster, seed, {.early = static_cast<int>(seed % 2), .later = 3});
    SimulatedJob job = random_job(seed);
    add_broadcasts(job);
    const std::string id = run_job(*cluster, job);
    expect_success(*cluster, id);
    const auto& epochs = *cluster->run_of(id)->epochs;
    formed += epochs.formed;
    failed += epochs.failed + epochs.hung + std::ssize(epochs.died);
    told += std::ssize(epochs.told);
    EXPECT_LE(epochs.left, epochs.asked_to_leave);
  });
  const auto seeds = static_cast<std::int64_t>(seeds_of(100));
  EXPECT_GT(formed, seeds);
  EXPECT_GT(failed, seeds / 2);
  EXPECT_GT(told, 5 * seeds);
}

TEST(Simulation, BroadcastsWithoutFaultsReachEveryRolloutThatIsUp) {
  auto cluster = cluster_of(1);
  SimulatedJob job = plain_job(1);
  add_broadcasts(job);
  job.broadcasts = SimulatedBroadcasts{};
  const std::string id = run_job(*cluster, job);
  expect_success(*cluster, id);
  const auto& epochs = *cluster->run_of(id)->epochs;
  EXPECT_LE(epochs.formed, 3) << "one for each rollout that came up";
  EXPECT_GE(epochs.told.size(), 30u) << "of 20 versions and 3 rollouts";
}

TEST(Simulation, LossOfANodeIsSurvived) {
  for_seeds(60, [](std::uint64_t seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    const auto id = cluster->submit(random_job(seed));
    ASSERT_TRUE(id.has_value());
    Rng rng(seed);
    for (const char* const node : {"a", "b"}) {
      cluster->run_for(Duration(rng.below(2'000'000'000)));
      cluster->kill_node(node);
      cluster->run_for(Duration(rng.below(3'000'000'000)));
      cluster->add_node(node, 6);
    }
    run_to_end(*cluster, *id);
    expect_success(*cluster, *id);
  });
}

// One node after the other is emptied while the job trains.
TEST(Simulation, DrainsMoveEveryActorAndRepeatNoStep) {
  std::int64_t moved = 0;
  for_seeds(100, [&](std::uint64_t seed) {
    auto cluster = cluster_of(seed);
    const auto id = cluster->submit(random_job(seed));
    ASSERT_TRUE(id.has_value());
    Rng rng(derive_seed(seed, "drains"));
    for (int i = 0; i < 4 && !cluster->final(*id); ++i) {
      const std::string node = i % 2 ? "b" : "a";
      cluster->run_for(Duration(rng.below(1'000'000'000)));
      ASSERT_TRUE(cluster->drain(node).has_value());
      cluster->run_for(Duration(rng.below(2'000'000'000)));
      ASSERT_TRUE(cluster->uncordon(node).has_value());
    }
    run_to_end(*cluster, *id);
    expect_success(*cluster, *id);
    EXPECT_EQ(count_kind(*cluster->run_of(*id), "retrained"), 0);
    for (const std::string& event : cluster->trace()) {
      moved += event.find("NodeDrained") != std::string::npos ||
               event.find("moved off node") != std::string::npos;
      EXPECT_EQ(event.find("Backoff"), std::string::npos) << "nobody died: " << event;
    }
  });
  EXPECT_GT(moved, static_cast<std::int64_t>(seeds_of(100)));
}

// Rollouts need versions that went with the learner, in every schedule (VS-1).
TEST(Simulation, FaultsOfManyRolesAtOnceAreSurvived_VS1) {
  std::int64_t again = 0, incomplete = 0;
  for_seeds(200, [&](std::uint64_t seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    SimulatedJob job = random_job(seed);
    Rng rng(derive_seed(seed, "disasters"));
    job.weights_end_with_learner = rng.below(3) == 0;
    const auto id = cluster->submit(job);
    ASSERT_TRUE(id.has_value());
    for (int i = 0; i < 3 && !cluster->final(*id); ++i) {
      cluster->run_for(Duration(rng.below(i == 0 ? 3'000'000'000 : 1'000'000'000)));
      strike(*cluster, static_cast<Disaster>((seed + rng.below(2)) % kDisasters));
    }
    run_to_end(*cluster, *id);
    expect_success(*cluster, *id);
    const SimulatedRun& run = *cluster->run_of(*id);
    EXPECT_EQ(count_kind(run, "expired"), 0) << "nothing waits for ten minutes";
    again += count_kind(run, "published_again");
    // No checkpoint holds the untrained weights, so an evaluation of them may end without some.
    if (count_kind(run, "evaluation_incomplete") > 0)
      ++incomplete;
    else
      expect_evaluated(*cluster, *id);
  });
  EXPECT_GT(again, 0);
  EXPECT_LT(incomplete, static_cast<std::int64_t>(seeds_of(200)) / 10 + 1);
}

TEST(Simulation, ScalesWhileItTrainsAndDies) {
  for_seeds(250, [](std::uint64_t seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    const Kills kills(*cluster, seed, {.later = 3});
    SimulatedJob job = random_job(seed);
    job.replicas = {{messages::Role::kRollout, 1}, {messages::Role::kReward, 1}};
    const auto id = cluster->submit(job);
    ASSERT_TRUE(id.has_value());
    Rng rng(derive_seed(seed, "scale"));
    for (int i = 0; i < 12 && !cluster->final(*id); ++i) {
      const messages::Role role =
          rng.below(3) == 0 ? messages::Role::kReward : messages::Role::kRollout;
      const auto scaled = cluster->scale(*id, role, 1 + static_cast<std::int32_t>(rng.below(3)));
      EXPECT_TRUE(scaled || cluster->run_of(*id)->record.result_json);
      cluster->run_for(Duration(rng.below(rng.below(4) == 0 ? 1'000'000'000 : 100'000'000)));
    }
    run_to_end(*cluster, *id);
    expect_success(*cluster, *id);
  });
}

TEST(Simulation, ScalingDownDrainsWithoutLoss) {
  auto cluster = cluster_of(5);
  SimulatedJob job = plain_job(5);
  job.exchange.budget.steps_total = 60;
  const auto id = cluster->submit(job);
  cluster->run_for(1500ms);
  ASSERT_TRUE(cluster->scale(*id, messages::Role::kRollout, 1).has_value());
  cluster->run_for(1s);
  EXPECT_EQ(cluster->view().jobs[0].actors.size(), 1u + 2u + 1u);
  ASSERT_TRUE(cluster->scale(*id, messages::Role::kRollout, 4).has_value());
  cluster->run_for(1s);
  EXPECT_EQ(cluster->ranks_running().size(), 4u + 2u + 1u);
  run_to_end(*cluster, *id);
  expect_success(*cluster, *id);
  EXPECT_EQ(count_kind(*cluster->run_of(*id), "released"), 0);
}

TEST(Simulation, CancelAtAnyMomentLeavesNothing) {
  for_seeds(250, [](std::uint64_t seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    const Kills kills(*cluster, seed, {.early = 1, .later = 2});
    const auto id = cluster->submit(random_job(seed));
    ASSERT_TRUE(id.has_value());
    Rng rng(seed);
    cluster->run_for(Duration(rng.below(2'500'000'000)));
    const bool ended = cluster->run_of(*id)->record.result_json.has_value();
    ASSERT_TRUE(cluster->cancel(*id).has_value());
    ASSERT_TRUE(cluster->cancel(*id).has_value());  // twice is no error
    run_to_end(*cluster, *id);
    if (!ended && cluster->final_state(*id) == "Cancelled")
      expect_clean_end(*cluster, *id, "Cancelled");
    else
      expect_success(*cluster, *id);  // it was quicker
  });
}

TEST(Simulation, AwaitsAreAnsweredOnceTheyHold) {
  SimulatedCluster cluster(3);
  cluster.add_node("a", 6);
  ASSERT_TRUE(cluster.await(ClusterCondition::kNodeReady).has_value());
  EXPECT_TRUE(cluster.view().nodes.at(0).up);
  ASSERT_TRUE(cluster.await(ClusterCondition::kNoJobRuns).has_value());
  const auto id = cluster.submit(plain_job(3));
  cluster.run_for(1s);
  EXPECT_FALSE(cluster.ranks_running().empty());
  ASSERT_TRUE(cluster.cancel(*id).has_value());
  ASSERT_TRUE(cluster.await(ClusterCondition::kNoJobRuns).has_value());
  EXPECT_EQ(cluster.final_state(*id), "Cancelled");
  EXPECT_TRUE(cluster.ranks_running().empty());
}

TEST(Simulation, SeedRepeatsTheTraceAndAnotherDoesNot) {
  const auto trace_of = [](std::uint64_t seed, std::uint64_t job_seed) {
    auto cluster = cluster_of(seed, random_conditions(seed));
    const Kills kills(*cluster, seed, {.early = 1, .later = 5});
    run_job(*cluster, random_job(job_seed));
    EXPECT_GT(cluster->trace().size(), 300u);
    return cluster->trace();
  };
  for_seeds(20, [&](std::uint64_t seed) {
    EXPECT_EQ(trace_of(seed, seed), trace_of(seed, seed));
    EXPECT_NE(trace_of(seed, seed), trace_of(seed + 1, seed));
  });
}

TEST(Simulation, WorkThatTakesLongerThanALeaseIsKept) {
  for_seeds(20, [](std::uint64_t seed) {
    auto cluster = cluster_of(seed);
    SimulatedJob job = random_job(seed);
    job.engine.step_time = 150ms;  // up to 24 of them
    job.exchange.rollout_lease = 2s;
    const std::string id = run_job(*cluster, job);
    expect_success(*cluster, id);
    EXPECT_EQ(count_kind(*cluster->run_of(id), "expired"), 0);
  });
}

TEST(Simulation, HungActorsAreReplaced) {
  for_seeds(40, [](std::uint64_t seed) {
    auto cluster = cluster_of(seed);
    const auto id = cluster->submit(random_job(seed));
    ASSERT_TRUE(id.has_value());
    Rng rng(seed);
    for (int i = 0; i < 4; ++i) {
      cluster->run_for(Duration(rng.below(600'000'000)));
      const auto ranks = cluster->ranks_running();
      if (!ranks.empty()) cluster->report_hung(ranks[rng.below(ranks.size())]);
    }
    run_to_end(*cluster, *id);
    expect_success(*cluster, *id);
  });
}

TEST(Simulation, JobsQueueByCapacity) {
  for_seeds(40, [](std::uint64_t seed) {
    auto cluster = cluster_of(seed);  // 12 CPUs: one job of 6 at a time beside one of 3
    std::vector<std::string> ids;
    for (int i = 0; i < 4; ++i) {
      SimulatedJob job = random_job(seed * 10 + static_cast<std::uint64_t>(i));
      job.cpus_per_rank = i % 2 == 0 ? 1.5 : 0.5;
      job.learner_ranks = 1;
      const auto id = cluster->submit(job);
      ASSERT_TRUE(id.has_value());
      ids.push_back(*id);
    }
    const Kills kills(*cluster, seed, {.later = 8, .events = 2000});
    for (const std::string& id : ids) {
      run_to_end(*cluster, id);
      expect_success(*cluster, id);
    }
    EXPECT_TRUE(cluster->ranks_running().empty());
  });
}

TEST(Simulation, ShapeThatNeverFitsIsRefused) {
  auto cluster = cluster_of(1);
  SimulatedJob job = plain_job(1);
  job.cpus_per_rank = 7;
  const auto id = cluster->submit(job);
  ASSERT_FALSE(id.has_value());
  EXPECT_EQ(id.error().code, ErrorCode::kInfeasible);
  EXPECT_FALSE(id.error().help.empty());
  job.cpus_per_rank = 3;
  const auto too_many = cluster->submit(job);
  ASSERT_FALSE(too_many.has_value());
  EXPECT_NE(too_many.error().help.find("replicas"), std::string::npos) << too_many.error().help;
  EXPECT_TRUE(cluster->view().jobs.empty());
}

TEST(Simulation, RunThatCannotBeOpenedFailsAndLeavesNothing) {
  auto cluster = cluster_of(1);
  cluster->fail_to_open_exchanges = true;
  const std::string id = run_job(*cluster, plain_job(1));
  EXPECT_EQ(cluster->final_state(id), "Failed");
  EXPECT_TRUE(cluster->ranks_running().empty());
  EXPECT_EQ(cluster->view().jobs[0].outcome->reason, "no room for the payloads");
}

TEST(Simulation, FullDiskFailsTheJobWithItsReason) {
  for (const bool of_journal : {true, false}) {
    auto cluster = cluster_of(1);
    const auto id = cluster->submit(plain_job(1));
    cluster->run_for(900ms);
    const auto run = cluster->run_of(*id);
    (of_journal ? run->record.disk_full : run->checkpoints->full) = true;
    run_to_end(*cluster, *id);
    EXPECT_EQ(cluster->final_state(*id), "Failed");
    EXPECT_TRUE(cluster->ranks_running().empty());
    const std::string reason = cluster->view().jobs[0].outcome->reason;
    EXPECT_NE(reason.find(of_journal ? "disk is full" : "No space left"), std::string::npos)
        << reason;
    EXPECT_EQ(result_of(*cluster, *id)["ledger"]["live"], 0);
  }
}

TEST(Simulation, ActorThatAlwaysDiesFailsTheJobWithTheRootCause) {
  for (const messages::Role& role : messages::kTrainingRoles) {
    auto cluster = cluster_of(2);
    SimulatedJob job = plain_job(2);
    job.replicas = {{messages::Role::kRollout, 1}, {messages::Role::kReward, 1}};
    job.exchange.budget.steps_total = 1'000'000;
    const auto id = cluster->submit(job);
    const std::string victim = actor_name(*id, role, 0);
    const auto dies_again = [&] {
      for (const node::RankId& rank : cluster->ranks_running())
        if (rank.actor == victim) cluster->kill(rank);
      return cluster->final(*id);
    };
    for (int i = 0; i < 20'000 && !dies_again(); ++i) cluster->run_for(100ms);
    EXPECT_EQ(cluster->final_state(*id), "Failed") << name(role);
    EXPECT_TRUE(cluster->ranks_running().empty());
    const std::string reason = cluster->view().jobs[0].outcome->reason;
    EXPECT_NE(reason.find("SIGKILL"), std::string::npos) << reason;
    EXPECT_NE(reason.find(victim), std::string::npos) << reason;
  }
}

}  // namespace
}  // namespace tandem::controller
