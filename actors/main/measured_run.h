// A short run of a job on this machine, on its real data, for its rates alone: what `tandem run`
// does, without evaluations, checkpoints and trackers, with little of the warm start, and until a
// bound of time or of steps. Its files lie in a folder of their own, which is removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/verb.h"
#include "actors/job/job_spec.h"
#include "actors/main/run_rates.h"
#include "runtime/base/result.h"

namespace tandem::app {

inline constexpr std::int64_t kMeasuredSteps = 200;
inline constexpr std::int64_t kMeasuredWarmStartSteps = 50;

struct MeasureRequest {
  std::filesystem::path job;
  std::vector<std::string> sets;  // of the command line
  std::int64_t seconds = 60;      // from the start of the command
};

struct MeasuredRun {
  int code = 0;                   // the exit code; not 0 where the run was interrupted or failed
  std::optional<RunRates> rates;  // of the run where the code is 0
};

// Blocks until the run has ended. The caller has no threads yet. An error of the run itself has
// been printed; kTimedOut where its time was over before a step.
Result<MeasuredRun> measure(const MeasureRequest& request, const cli::VerbContext& context);

// The --set options that turn a job into one to measure, behind those of the command line.
std::vector<std::string> sets_to_measure(const job::JobSpec& job, std::vector<std::string> sets);

}  // namespace tandem::app
