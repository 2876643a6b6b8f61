// `tandem slurm`: jobs on nodes that Slurm gives. `submit` writes the job script (actors/launch)
// and becomes sbatch, which gets it; `exec` becomes an srun that runs a command of ours beside the
// controller of such a job. Needs no controller; starts nothing here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/sweep.h"
#include "actors/cli/verb.h"
#include "actors/launch/slurm_script.h"
#include "actors/main/launch_options.h"
#include "runtime/link/port_range.h"

namespace tandem::app {

struct SlurmCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::string action;  // "submit" or "exec"
  // submit: one of both at least. exec: `job` is the number of Slurm's job.
  std::optional<std::filesystem::path> job, resume;
  std::vector<std::string> words;         // exec: the command
  std::vector<std::string> sets, sweeps;  // as they are given
  cli::Settings given;                    // what they mean
  LaunchHosts hosts;
  std::optional<std::string> time, partition;
  std::optional<std::int64_t> node_grace_s;
  link::PortRange ports;
  bool plaintext_gang = false;
  std::vector<std::string> sbatch;
  bool dry_run = false;

 private:
  Result<int> submit(const cli::Console& console) const;
  Result<launch::SlurmJob> slurm_job(const cli::Console& console) const;
  Result<int> exec() const;
};

}  // namespace tandem::app
