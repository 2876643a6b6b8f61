// The job script by which Slurm runs a job of Tandem: a text that a person can read, keep and
// submit again. Slurm gives the machines; on the first one the script becomes a `tandem run` whose
// cluster the agents of the others join. Nothing in it waits for a fixed time. Pure.
//
//   SL-1  The script's process is the `tandem run`: what Slurm tells the script, as SIGTERM before
//         the time is over, is told to it, and it saves before it ends.
//   SL-2  A job that Slurm starts again (SLURM_RESTART_COUNT) goes on with its run.
//
// Options of sbatch and srun, and variables, are those of Slurm 22.05 and later
// (https://slurm.schedmd.com/sbatch.html).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem::launch {

struct SlurmJob {
  std::string name;  // the job's own
  // Absolute, and seen by all nodes: TANDEM_HOME, the folder of the command, this binary, and the
  // job file.
  std::filesystem::path home, folder, program, job;
  std::vector<std::string> sets;  // KEY=VALUE
  std::int64_t nodes = 1;
  std::int64_t min_nodes = 1;   // with which the job begins
  std::string time, partition;  // as sbatch takes them; empty: the cluster's default
  std::int64_t gpus_per_node = 0;
  std::vector<std::string> sbatch;  // further options of sbatch, as --constraint=a100
};

std::string slurm_script(const SlurmJob& job);

}  // namespace tandem::launch
