// A job, the costs of its fleet and the lengths of its completions, as a forecast takes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/forecast/forecast.h"
#include "actors/job/job_spec.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::app {

// What a user says of the fleet; what is left out comes from the job.
struct ForecastPlan {
  std::vector<forecast::EngineCosts> rollouts;  // at least one
  forecast::LearnerCosts learner;
  forecast::RewardCosts reward;
  bool score_measured = false;  // by a run: the reward then shares no cores (costs_alone.h)
  forecast::FailureCosts failures;
  std::int32_t prompt_tokens = 0;
  double host_cores = 0;
  std::optional<std::int64_t> steps;  // in place of learner.total_training_steps
};

// The files that the job names are not looked at.
forecast::ForecastConfig forecast_config(const job::JobSpec& job, const ForecastPlan& plan,
                                         const forecast::Lengths& lengths, std::uint64_t seed);

// What an engine of the mean rollout takes, as the run has measured it. Where it has no fit of
// its steps, each sequence adds what it takes at the rollout's rate.
forecast::EngineCosts engine_costs(const scheduler::FleetRates& rates);

// The lengths of the completions of all groups that the run's journal has; of the newest ones where
// it has more than kRecordedGroupsMost. Errors as those of RunJournal::open_to_read(); kInvalid
// where it has none.
inline constexpr std::size_t kRecordedGroupsMost = 200'000;
Result<forecast::Lengths> recorded_lengths(const std::filesystem::path& run_dir);

}  // namespace tandem::app
