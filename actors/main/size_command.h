// `tandem size`: how many rollouts match a trainer, what too few or too many cost, how a number of
// devices is best divided, and what to mend before anything is added. The rates are those of a run,
// of a short run made here, or of the command line; the arithmetic is in scheduler/fleet/sizing.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"
#include "actors/job/load_job.h"
#include "actors/main/run_rates.h"
#include "actors/main/size_report.h"

namespace tandem::app {

inline constexpr std::int64_t kMeasureSecondsMin = 5, kMeasureSecondsMax = 3600;

// The exit code is 0, 130 after Ctrl-C while it measures, else that of the error. The verb blocks
// as long as it measures; SIGINT and SIGTERM are blocked from then on (signals.h).
struct SizeCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::optional<std::filesystem::path> job;  // the fleet that is planned
  std::vector<std::string> sets;
  // Where the rates are from; the given numbers replace theirs.
  std::optional<std::string> from_run;
  bool measure = false;
  std::int64_t measure_seconds = 60;
  std::optional<double> rollout_tokens_per_s, batch_tokens, step_seconds, install_seconds,
      completions;
  // The fleet; each replaces the key of the job.
  std::optional<std::int64_t> replicas, ranks, max_staleness;
  double headroom = scheduler::kSizingHeadroom;
  double trainer_idle_target = scheduler::kTrainerIdleTarget;
  std::optional<std::int64_t> devices;
  std::optional<double> learner_efficiency;
  std::optional<scheduler::Pricing> prices;
  cli::OutputForm output = cli::OutputForm::kTable;

 private:
  void rate_options(cli::Options& options);
  void fleet_options(cli::Options& options);
  Result<void> check() const;
  bool has_rates() const;
  // Of JOB.yaml; nullopt without one.
  Result<std::optional<job::LoadedJob>> loaded_job() const;
  Result<std::optional<PoolPlan>> planned(const std::optional<job::LoadedJob>& loaded) const;
  SizeInput input_of_run(const RunRates& run, const std::optional<PoolPlan>& plan) const;
  SizeInput input_of_flags(const std::optional<PoolPlan>& plan) const;
  // Puts the numbers of the command line in place of those that are there.
  void replace(SizeInput& input) const;
};

}  // namespace tandem::app
