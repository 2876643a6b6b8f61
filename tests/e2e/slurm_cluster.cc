#include "tests/e2e/slurm_cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <utility>

namespace tandem::e2e {
namespace {

// $1: what begins the names; $2: the folder of Slurm's files. `ip netns exec` would hide the
// cgroups that slurmd looks for.
constexpr const char* kStartCluster = R"sh(
set -e
mark="$1" w="$2" name=$(hostname)
for program in slurmctld slurmd sbatch ip nsenter; do command -v $program >/dev/null || exit 77; done
[ "$(id -u)" = 0 ] || exit 77
on() { local host=$1; shift; nsenter --net="/run/netns/$mark-$host" "$@"; }
mkdir -p "$w/state" "$w/log"
mknod "$w/gpu0" c 1 3 && mknod "$w/gpu1" c 1 5 || exit 77
ip netns add "$mark-hub" || exit 77
ip -n "$mark-hub" link add br0 type bridge
ip -n "$mark-hub" link set br0 up
i=0
nodes=
for host in login n1 n2 n3; do
  i=$((i + 1))
  ip netns add "$mark-$host"
  ip -n "$mark-$host" link set lo up
  ip link add e0 netns "$mark-$host" type veth peer name "p$i" netns "$mark-hub"
  ip -n "$mark-hub" link set "p$i" master br0
  ip -n "$mark-hub" link set "p$i" up
  ip -n "$mark-$host" addr add "10.72.0.$i/24" dev e0
  ip -n "$mark-$host" link set e0 up
  mkdir -p "$w/spool-$host"
  [ "$host" = login ] || nodes="$nodes
NodeName=$host NodeHostname=$name NodeAddr=10.72.0.$i CPUs=4 RealMemory=1000 Gres=gpu:2"
done
cat > "$w/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$name(10.72.0.1)
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$w/state
SlurmdSpoolDir=$w/spool-%n
SlurmctldPidFile=$w/slurmctld.pid
SlurmdPidFile=$w/slurmd-%n.pid
SlurmctldLogFile=$w/log/slurmctld.log
SlurmdLogFile=$w/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=20
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
$nodes
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=first Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
CONF
echo "NodeName=n[1-3] Name=gpu File=$w/gpu[0-1]" > "$w/gres.conf"
on login slurmctld -f "$w/slurm.conf"
for host in n1 n2 n3; do on "$host" slurmd -N "$host" -f "$w/slurm.conf"; done
)sh";
constexpr const char* kEndCluster = R"sh(
for host in login n1 n2 n3; do ip netns pids "$1-$host" | xargs -r kill -9; done
for host in login n1 n2 n3 hub; do ip netns del "$1-$host"; done
)sh";
constexpr const char* kJobProcesses = R"sh(
for pid in $(ip netns pids "$1"); do [ "$(cat /proc/$pid/comm)" = slurmd ] || echo $pid; done
)sh";
constexpr const char* kKillNode = R"sh(ip netns pids "$1" | xargs -r kill -9)sh";

}  // namespace

Words SlurmCluster::on(const std::string& host) const {
  return {"nsenter", "--net=/run/netns/" + mark_ + "-" + host, "env",
          "SLURM_CONF=" + (home_.path() / "slurm-cluster/slurm.conf").string()};
}

std::unique_ptr<SlurmCluster> SlurmCluster::make(Home& home) {
  auto cluster = std::unique_ptr<SlurmCluster>(
      new SlurmCluster(home, "tandem-slurm-" + std::to_string(getpid())));
  const std::string folder = (home.path() / "slurm-cluster").string();
  const Finished built =
      home.start_program({"sh", "-c", kStartCluster, "sh", cluster->mark_, folder}).wait();
  const auto all_idle = [&] {
    return cluster->slurm({"sinfo", "--noheader", "--format=%D %t"}) ==
           std::to_string(kNodes) + " idle\n";
  };
  if (built.code == 77) return nullptr;
  EXPECT_EQ(built.code, 0) << built.text();
  EXPECT_TRUE(eventually(all_idle)) << cluster->slurm({"sinfo"});
  home.start_by(cluster->on("login"));
  return cluster;
}

SlurmCluster::~SlurmCluster() {
  home_.start_program({"sh", "-c", kEndCluster, "sh", mark_}).wait();
}

std::string SlurmCluster::slurm(const Words& words) const {
  return home_.start_program(on("login") + words).wait().out;
}

std::size_t SlurmCluster::processes_on(const std::string& node) const {
  const std::string pids =
      home_.start_program({"sh", "-c", kJobProcesses, "sh", mark_ + "-" + node}).wait().out;
  std::istringstream lines(pids);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  return count;
}

void SlurmCluster::kill_node(const std::string& node) const {
  home_.start_program({"sh", "-c", kKillNode, "sh", mark_ + "-" + node}).wait();
}

}  // namespace tandem::e2e
