// `tandem slurm submit`: writes the job script by which Slurm runs a job (actors/launch), and
// becomes sbatch, which gets it. Needs no controller; starts nothing here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/verb.h"

namespace tandem::app {

struct SlurmCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::string action;                                // "submit"
  std::optional<std::filesystem::path> job, resume;  // one of both at least
  std::vector<std::string> sets;
  std::int64_t nodes = 1;
  std::optional<std::int64_t> min_nodes;  // default: `nodes`
  std::optional<std::string> time, partition;
  std::int64_t gpus_per_node = 0;
  std::vector<std::string> sbatch;
  bool dry_run = false;
};

}  // namespace tandem::app
