// `tandem simulate`: what a job would do on a fleet, before it runs there: the production exchange
// in virtual time (actors/forecast). Needs no model, no data, no controller and no device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"
#include "scheduler/fleet/cost.h"

namespace tandem::app {

// Blocks until all variants are simulated; Ctrl-C ends it with 130.
struct SimulateCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::filesystem::path job;
  std::vector<std::string> sets, sweeps;
  bool compare = false;
  struct Costs {  // as written, "6.2ms"
    std::vector<std::string> engines;
    std::optional<std::string> fleet, step, install, save, score, turnaround, mtbf, restart;
    std::optional<double> rollout_tokens_per_s, train_tokens_per_s, zero_variance, cores;
  } costs;
  std::optional<std::string> from_run, lengths, lengths_from;
  std::optional<scheduler::Pricing> prices;
  std::optional<std::int64_t> steps, prompt_tokens;
  std::int64_t seed = 17;
  std::optional<std::filesystem::path> svg;
  cli::OutputForm output = cli::OutputForm::kTable;
};

}  // namespace tandem::app
