#include "actors/launch/slurm_script.h"

#include "runtime/base/shell_word.h"

namespace tandem::launch {
namespace {

// Before the end of the job's time. Slurm looks every half minute, and a learner that saves may
// take its time.
constexpr int kNoticeSeconds = 120;

constexpr const char* kRun = R"sh(
umask 077
state="$TANDEM_HOME/slurm/$SLURM_JOB_ID"
mkdir -p "$state"
cluster="$state/cluster-${SLURM_RESTART_COUNT:-0}"

# The address of this node, the first one, which has the controller.
address=$(scontrol show node "$SLURMD_NODENAME" | sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p')
address=$(getent ahostsv4 "$address" | awk 'NR == 1 { print $1 }')

# The others join it as soon as it has written where it listens.
others=$((SLURM_JOB_NUM_NODES - 1))
if ((others > 0)); then
  srun --nodes=$others --ntasks=$others --ntasks-per-node=1 --relative=1 --no-kill --kill-on-bad-exit=0 --wait=0 \
    bash -c 'exec "$0" node --cluster "$1" --name "$SLURMD_NODENAME"' "$tandem" "$cluster" &
fi

# A job that Slurm has started again goes on with its run.
if [[ -L $state/run ]]; then what=(--resume "$(readlink "$state/run")"); fi
exec "$tandem" run "${what[@]}" --cluster "$cluster" --bind "$address" --node-name "$SLURMD_NODENAME" \
  --min-nodes "$min_nodes" --link "$state/run"
)sh";

}  // namespace

std::string slurm_script(const SlurmJob& job) {
  std::string text =
      "#!/bin/bash\n"
      "# Written by `tandem slurm submit`; `sbatch` takes it again.\n";
  const auto option = [&text](const std::string& words) { text += "#SBATCH " + words + "\n"; };
  option("--job-name=" + job.name);
  option("--nodes=" + std::to_string(job.nodes));
  option("--ntasks-per-node=1");
  if (!job.time.empty()) option("--time=" + job.time);
  if (!job.partition.empty()) option("--partition=" + job.partition);
  if (job.gpus_per_node > 0) option("--gpus-per-node=" + std::to_string(job.gpus_per_node));
  option("--chdir=" + job.folder.string());
  option("--output=" + (job.home / "slurm" / "%j.log").string());
  option("--open-mode=append");
  option("--requeue");
  option("--no-kill");  // a node that is lost costs its actors alone
  option("--signal=B:TERM@" + std::to_string(kNoticeSeconds));
  for (const std::string& further : job.sbatch) option(further);
  text += "\nset -u\nexport TANDEM_HOME=" + shell_word(job.home.string()) +
          "\ntandem=" + shell_word(job.program.string()) +
          "\nmin_nodes=" + std::to_string(job.min_nodes) + "\nwhat=(" +
          shell_word(job.job.string());
  for (const std::string& set : job.sets) text += " --set " + shell_word(set);
  return text + ")\n" + kRun;
}

}  // namespace tandem::launch
