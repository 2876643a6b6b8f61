// A prompt by which every engine fails, or hangs, over the whole control plane: it is quarantined,
// the run ends well, and under fixed_lag in the same weights whichever other processes are killed.
//
// Tests scheduler/fleet/suspects.h, actors/exchange/quarantine.h,
// actors/exchange/evaluation_suspects.h.
#include <gtest/gtest.h>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

const bool kMuted = (log::mute(), true);

struct Outcome {
  std::string weights;
  std::int64_t poisoned = 0;  // groups
  std::size_t crashes = 0;
};

Outcome outcome_of(SimulatedJob job, std::uint64_t seed, std::int32_t rollouts, int kills) {
  auto cluster = cluster_of(seed, random_conditions(seed));
  const Kills killing(*cluster, seed, {.later = kills});
  job.replicas[messages::Role::kRollout] = rollouts;
  const std::string id = run_job(*cluster, job);
  expect_trained(*cluster, id);
  const auto run = cluster->run_of(id);
  Outcome outcome{.weights = weights_of(*cluster, id)};
  if (run->record.result_json)
    outcome.poisoned =
        parse_json(*run->record.result_json)["ledger"]["discarded"].value("poison_prompt", 0);
  for (const JournalledRow& row : run->record.events)
    outcome.crashes += row.kind == "engine_crashed";
  return outcome;
}

TEST(Quarantine, ADeadlyPromptCostsAFewCrashesAndNotTheRun) {
  for_seeds(12, [](std::uint64_t seed) {
    SimulatedJob job = plain_job(seed);
    job.deadly_position = 9;
    const Outcome outcome = outcome_of(job, seed, 1 + static_cast<std::int32_t>(seed % 3), 0);
    EXPECT_GE(outcome.poisoned, 1);
    EXPECT_GE(outcome.crashes, 2u);
    // Groups that share the prompt may be under way at once, and each is tried.
    EXPECT_LE(outcome.crashes, 4u * static_cast<std::size_t>(outcome.poisoned));
  });
}

// None of these engines tells anything: the watchdog finds that it hangs.
TEST(Quarantine, APromptThatHangsEnginesCostsAFewHangsAndNotTheRun) {
  for_seeds(12, [](std::uint64_t seed) {
    SimulatedJob job = plain_job(seed);
    job.deadly_position = 9;
    job.deadly_hangs = true;
    const Outcome outcome = outcome_of(job, seed, 1 + static_cast<std::int32_t>(seed % 3), 0);
    EXPECT_GE(outcome.poisoned, 1);
    EXPECT_GE(outcome.crashes, 2u);
    EXPECT_LE(outcome.crashes, 4u * static_cast<std::size_t>(outcome.poisoned));
  });
}

TEST(Quarantine, AtAFixedLagTheWeightsAreThoseOfARunThatNobodyDisturbs) {
  for_seeds(8, [](std::uint64_t seed) {
    SimulatedJob job = fixed_lag_job(seed, static_cast<std::int64_t>(seed % 4));
    job.deadly_position = 9;
    const Outcome alone = outcome_of(job, seed, 1, 0);
    EXPECT_GE(alone.poisoned, 1);
    EXPECT_EQ(outcome_of(job, seed + 1, 3, 0).weights, alone.weights);
    EXPECT_EQ(outcome_of(job, seed + 2, 3, 6).weights, alone.weights) << "with kills from outside";
    job.deadly_hangs = true;
    EXPECT_EQ(outcome_of(job, seed + 3, 3, 2).weights, alone.weights) << "it hangs the engines";
  });
}

// Each evaluation is whole but for the deadly prompt, whose completions failed: none is a 0.
TEST(Quarantine, ADeadlyPromptOfTheEvaluationsCostsAFewCrashesAndItsOwnScoresAlone_PQ4) {
  for_seeds(24, [](std::uint64_t seed) {
    SimulatedJob job = seed % 4 == 3 ? fixed_lag_job(seed, 2) : plain_job(seed);
    job.validation_prompts = seed % 3 == 0 ? 40 : 9;
    job.deadly_validation = 4;
    job.deadly_hangs = seed % 4 == 1;
    job.exchange.test_freq = 5;
    job.exchange.evaluation.sampling.n = seed % 2 == 0 ? 1 : 3;
    job.replicas[messages::Role::kRollout] = 1 + static_cast<std::int32_t>(seed % 3);
    auto cluster = cluster_of(seed, random_conditions(seed));
    const Kills killing(*cluster, seed, {.later = seed % 2 == 0 ? 2 : 0});
    const std::string id = run_job(*cluster, job);
    expect_trained(*cluster, id);
    const auto run = cluster->run_of(id);
    std::int64_t evaluations = 0, poisoned = 0;
    for (const std::string& text : run->record.metrics_lines) {
      const nlohmann::json line = parse_json(text);
      if (!line.contains("eval")) continue;
      ++evaluations;
      EXPECT_EQ(line["val/reward/failed"], job.exchange.evaluation.sampling.n) << line;
      EXPECT_EQ(line["val/reward/scored"],
                (job.validation_prompts - 1) * job.exchange.evaluation.sampling.n);
    }
    for (const std::string& text : run->record.sample_lines)
      poisoned += parse_json(text).value("error", "").starts_with("poison_prompt: ");
    EXPECT_GE(evaluations, 3);
    EXPECT_GE(poisoned, 1);
    for (const JournalledRow& row : run->record.events)
      EXPECT_NE(row.detail, "poison_prompt") << "no group is guilty";
  });
}

TEST(Quarantine, KillsFromOutsideSuspectNobody) {
  for_seeds(8, [](std::uint64_t seed) {
    const Outcome outcome = outcome_of(plain_job(seed), seed, 3, 8);
    EXPECT_EQ(outcome.poisoned, 0);
    EXPECT_EQ(outcome.crashes, 0u);
  });
}

}  // namespace
}  // namespace tandem::controller
