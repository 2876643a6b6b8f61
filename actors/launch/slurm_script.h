// The job script by which Slurm runs a job of Tandem: a text that a person can read, keep and
// submit again. Slurm gives the machines; on the first one the script starts a `tandem run` whose
// cluster the agents of the others join. Nothing in it waits for a fixed time. Pure.
//
//   SL-1  SIGTERM from Slurm, also before the time is over, is told to the `tandem run`, which
//         saves before it ends.
//   SL-2  A job that Slurm starts again (SLURM_RESTART_COUNT) goes on with its run.
//   SL-3  A job that was told to end and that nobody has cancelled asks Slurm to start it again, if
//         it has saved anything since its start.
//
// Options of sbatch and srun, and variables, are those of Slurm 22.05 and later
// (https://slurm.schedmd.com/sbatch.html).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::launch {

struct SlurmJob {
  std::string name;  // the job's own
  // Absolute, and seen by all nodes: TANDEM_HOME and the folder of the command, both
  // is_sbatch_word(), this binary, the job file and the run to go on with. One of the last two may
  // be empty.
  std::filesystem::path home, folder, program, job, resume;
  std::vector<std::string> sets;  // KEY=VALUE
  // A job array: the further `sets` of each of its jobs. Empty: one job.
  std::vector<std::vector<std::string>> sweep;
  std::int64_t nodes = 1;
  std::int64_t min_nodes = 1;   // with which the job begins
  std::string time, partition;  // as sbatch takes them; empty: the cluster's default
  std::int64_t gpus_per_node = 0;
  std::optional<std::int64_t> node_grace_s;  // as of `tandem run`
  std::string ports;                         // as of `tandem run`; empty: any
  bool plaintext_gang = false;               // likewise
  std::vector<std::string> sbatch;           // further options of sbatch, as --constraint=a100
};

// Whether a line of #SBATCH can have the text as it is.
bool is_sbatch_word(std::string_view text);

std::string slurm_script(const SlurmJob& job);

}  // namespace tandem::launch
