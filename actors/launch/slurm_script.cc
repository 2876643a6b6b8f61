#include "actors/launch/slurm_script.h"

#include "runtime/base/shell_word.h"

namespace tandem::launch {
namespace {

// Before the end of the job's time: a learner has two minutes to save, and Slurm looks every half
// minute.
constexpr int kNoticeSeconds = 180;

constexpr const char* kRun = R"sh(
umask 077
state="$TANDEM_HOME/slurm/$SLURM_JOB_ID"
mkdir -p "$state"
rm -rf "$state"/cluster-* # of a start before this one
cluster="$state/cluster-${SLURM_RESTART_COUNT:-0}"

# The address of this node, the first one, which has the controller.
name=$(scontrol show node "$SLURMD_NODENAME" | sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p')
address=$(getent ahostsv4 "$name" | awk '$1 !~ /^127\./ { print $1; exit }')
[[ -n $address ]] || address=$(hostname -I | awk '{ print $1 }')

# The others join it as soon as it has written where it listens. Where it is lost (69), Slurm is
# asked to start the job again.
others=$((SLURM_JOB_NUM_NODES - 1))
if ((others > 0)); then
  srun --nodes=$others --ntasks=$others --ntasks-per-node=1 --relative=1 --cpu-bind=none \
    --no-kill --kill-on-bad-exit=0 --wait=0 bash -c '
      trap : TERM # the node decides
      "$0" node --cluster "$1" --name "$SLURMD_NODENAME"
      (($? != 69)) || scontrol requeue "$SLURM_JOB_ID"' "$tandem" "$cluster" &
fi

# A job that Slurm has started again goes on with its run.
if ((${SLURM_RESTART_COUNT:-0} > 0)) && [[ -L $state/run ]]; then
  what=(--resume "$(readlink "$state/run")")
fi
exec "$tandem" run "${what[@]}" --cluster "$cluster" --bind "$address" --node-name "$SLURMD_NODENAME" \
  --min-nodes "$min_nodes" --link "$state/run"
)sh";

}  // namespace

bool is_sbatch_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n#'\"\\%") == std::string_view::npos;
}

std::string slurm_script(const SlurmJob& job) {
  std::string text =
      "#!/bin/bash\n"
      "# Written by `tandem slurm submit`; `sbatch` takes it again.\n";
  const auto option = [&text](const std::string& words) { text += "#SBATCH " + words + "\n"; };
  option("--job-name=" + job.name);
  option("--nodes=" + std::to_string(job.nodes));
  option("--ntasks-per-node=1");
  option("--exclusive");  // one agent offers the whole node
  option("--mem=0");
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
          "\nmin_nodes=" + std::to_string(job.min_nodes) + "\nwhat=(";
  if (!job.job.empty()) text += shell_word(job.job.string());
  if (!job.resume.empty())
    text += (job.job.empty() ? "--resume " : " --resume ") + shell_word(job.resume.string());
  for (const std::string& set : job.sets) text += " --set " + shell_word(set);
  return text + ")\n" + kRun;
}

}  // namespace tandem::launch
