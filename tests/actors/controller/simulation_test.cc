// The whole control plane in virtual time: liveness, the ledger and the staleness bound under
// deaths, scaling and cancelling; and that a seed repeats. Every failure prints its seed.
#include "tests/actors/controller/simulation.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "tests/actors/controller/scenario.h"

namespace tandem::actors {
namespace {

using namespace std::chrono_literals;

const std::uint64_t kKillSeeds = (getenv("SEEDS") ? atoi(getenv("SEEDS")) : 600) / kSeedDivisor;

// Thousands of deaths would fill the screen.
const bool kQuiet = (spdlog::set_level(spdlog::level::off), true);

std::string seed_text(std::uint64_t seed) { return "seed " + std::to_string(seed); }

TEST(Simulation, PlainJobEndsWellWithoutFaults) {
  auto cluster = cluster_of(1);
  SimulatedJob job = plain_job(1);
  job.exchange.warm_start = true;
  job.trainer.warm_start_steps = 5;
  job.validation_prompts = 40;
  job.exchange.test_freq = 5;
  const std::string id = run_job(*cluster, job);
  expect_success(*cluster, id);
  const auto run = cluster->run_of(id);
  EXPECT_EQ(run->record.metrics_lines.size(), 20u);
  const auto result = nlohmann::json::parse(*run->record.result_json);
  EXPECT_EQ(result["eval"]["failed"], 0);
  EXPECT_GT(result["staleness"]["max"], 0);
  EXPECT_EQ(result["ledger"]["retrained"], 0);
  EXPECT_EQ(run->shelf.size(), 0u);  // every payload was released
}

TEST(Simulation, RandomJobsEndWellWithoutFaults) {
  for (std::uint64_t seed = 1; seed <= 60 / kSeedDivisor; ++seed) {
    SCOPED_TRACE(seed_text(seed));
    auto cluster = cluster_of(seed);
    expect_success(*cluster, run_job(*cluster, random_job(seed)));
    if (HasFailure()) return;
  }
}

TEST(Simulation, RandomJobsSurviveKills) {
  int kills = 0;
  for (std::uint64_t seed = getenv("START") ? atoi(getenv("START")) : 1; seed <= kKillSeeds; ++seed) {
    SCOPED_TRACE(seed_text(seed));
    auto cluster = cluster_of(seed, random_conditions(seed));
    Kills chaos(*cluster, seed, {.early = static_cast<int>(seed % 3), .later = 6});
    expect_success(*cluster, run_job(*cluster, random_job(seed)));
    kills += chaos.done();
    if (getenv("TRACE")) for (auto& l : cluster->trace()) puts(l.c_str());
    if (HasFailure()) return;
  }
  EXPECT_GT(kills, static_cast<int>(kKillSeeds) * 3);
}

}  // namespace
}  // namespace tandem::actors
