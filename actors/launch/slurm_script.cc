#include "actors/launch/slurm_script.h"

#include "runtime/base/shell_word.h"

namespace tandem::launch {
namespace {

// Before the end of the job's time: a learner has two minutes to save, and Slurm looks every half
// minute.
constexpr int kNoticeSeconds = 180;

constexpr const char* kRun = R"sh(
umask 077
# Its own number means all of an array to Slurm where it is that of the array.
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}
state="$TANDEM_HOME/slurm/$job"
mkdir -p "$state"
echo "$SLURM_JOB_ID" >"$state/number" # for tandem slurm exec
rm -rf "$state"/cluster-* # of a start before this one
cluster="$state/cluster-${SLURM_RESTART_COUNT:-0}"
checkpoints() { ls "$1/checkpoints" 2>/dev/null; }
before=$(checkpoints "$state/run" || checkpoints "$resumed")

# The address of this node, the first one, which has the controller.
name=$(scontrol show node "$SLURMD_NODENAME" | sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p')
address=$(getent ahostsv4 "$name" | awk '$1 !~ /^127\./ { print $1; exit }')
[[ -n $address ]] ||
  address=$(getent ahostsv6 "$name" | awk '$1 !~ /^(::1$|::ffff:|fe80:)/ { print $1; exit }')
[[ -n $address ]] || address=$(hostname -I | awk '{ print $1 }')

# The others join it as soon as it has written where it listens. Where it is lost (69), Slurm is
# asked to start the job again.
others=$((SLURM_JOB_NUM_NODES - 1))
if ((others > 0)); then
  # Whole nodes were asked for: all of their GPUs are the job's.
  srun ${SLURM_GPUS_ON_NODE:+--gpus-per-node=$SLURM_GPUS_ON_NODE} --nodes=$others --ntasks=$others --ntasks-per-node=1 --relative=1 --cpu-bind=none \
    --no-kill --kill-on-bad-exit=0 --wait=0 bash -c '
      trap : TERM # the node decides
      "$0" node --cluster "$1" --name "$SLURMD_NODENAME" ${3:+--ports "$3"}
      (($? != 69)) || scontrol requeue "$2"' "$tandem" "$cluster" "$job" "$ports" &
fi

# A job that Slurm has started again goes on with its run.
((${SLURM_RESTART_COUNT:-0} == 0)) || what+=(--resume-linked)
"$tandem" run "${what[@]}" --cluster "$cluster" --bind "$address" --node-name "$SLURMD_NODENAME" \
  --min-nodes "$min_nodes" --nodes "$SLURM_JOB_NUM_NODES" ${ports:+--ports "$ports"} --link "$state/run" &
run=$!

# Slurm tells the job to end, perhaps more than once: it saves, and then this script goes on.
told=0 heard=1 code=1
trap 'kill -TERM $run; told=1 heard=1' TERM
while ((heard)); do
  heard=0
  wait $run
  last=$?
  ((last == 127)) || code=$last # 127: its end is known already
done

# Its time was nearly over, or others need the nodes. A job that was cancelled does not run any more.
if ((told && code)) && [[ $(squeue --noheader --jobs=$job --format=%T) == RUNNING ]]; then
  if [[ $(checkpoints "$state/run") != "$before" ]]; then
    scontrol requeue "$job"
  else
    echo "nothing was saved since the start, so the job is not started again: is its time too short?" >&2
  fi
fi
exit $code
)sh";

// The settings in which the jobs of an array differ.
std::string sweep_text(const std::vector<std::vector<std::string>>& sweep) {
  std::string text = "case $SLURM_ARRAY_TASK_ID in\n";
  for (std::size_t i = 0; i < sweep.size(); ++i) {
    text += std::to_string(i) + ") what+=(";
    for (const std::string& set : sweep[i])
      text += (text.ends_with('(') ? "--set " : " --set ") + shell_word(set);
    text += ") ;;\n";
  }
  return text + "esac\n";
}

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
  if (!job.sweep.empty()) option("--array=0-" + std::to_string(job.sweep.size() - 1));
  option("--output=" +
         (job.home / "slurm" / (job.sweep.empty() ? "%j.log" : "%A_%a.log")).string());
  option("--open-mode=append");
  option("--requeue");
  option("--no-kill");  // a node that is lost costs its actors alone
  option("--signal=B:TERM@" + std::to_string(kNoticeSeconds));
  for (const std::string& further : job.sbatch) option(further);
  text += "\nset -u\nexport TANDEM_HOME=" + shell_word(job.home.string()) +
          "\ntandem=" + shell_word(job.program.string()) +
          "\nmin_nodes=" + std::to_string(job.min_nodes) + "\nports=" + job.ports +
          "\nresumed=" + shell_word(job.resume.string()) + "\nwhat=(";
  if (!job.job.empty()) text += shell_word(job.job.string());
  if (!job.resume.empty())
    text += (job.job.empty() ? "--resume " : " --resume ") + shell_word(job.resume.string());
  for (const std::string& set : job.sets) text += " --set " + shell_word(set);
  if (job.node_grace_s) text += " --node-grace-s " + std::to_string(*job.node_grace_s);
  if (job.plaintext_gang) text += " --allow-plaintext-gang";
  text += ")\n";
  if (!job.sweep.empty()) text += sweep_text(job.sweep);
  return text + kRun;
}

}  // namespace tandem::launch
