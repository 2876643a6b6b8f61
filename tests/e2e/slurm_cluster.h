// A Slurm cluster on this machine: a real slurmctld and a real slurmd for each node, each in a
// network namespace of its own with an address of its own. All see this machine's files, as hosts
// with a shared file system do. Each node has two GPUs, as far as Slurm knows. Jobs of the
// partition `first` take the nodes of others.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {

class SlurmCluster {
 public:
  static constexpr std::size_t kNodes = 3;  // n1, n2, n3

  // Returns null where Slurm or `ip` is not installed, or this process may make no namespaces.
  // Commands of `home` run on the login host from then on.
  static std::unique_ptr<SlurmCluster> make(Home& home);
  ~SlurmCluster();  // kills all that runs there
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  // Runs a command of Slurm on the login host, and returns what it prints.
  std::string slurm(const Words& words) const;
  bool idle() const { return slurm({"squeue", "--noheader"}).empty(); }
  // The processes on a node besides slurmd: of jobs.
  std::size_t processes_on(const std::string& node) const;
  void kill_node(const std::string& node) const;  // slurmd and all others, by SIGKILL

 private:
  SlurmCluster(const Home& home, std::string mark) : home_(home), mark_(std::move(mark)) {}
  Words on(const std::string& host) const;

  const Home& home_;
  const std::string mark_;  // begins the names of this process's namespaces
};

}  // namespace tandem::e2e
