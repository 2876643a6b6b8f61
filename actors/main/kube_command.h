// `tandem kube manifest`: prints the manifest by which Kubernetes runs a job (actors/launch), with
// new keys. Needs no controller and no cluster, and starts nothing.
//
// The job's relative paths start in the folder where all pods see the claim, as if the job file lay
// there. Its files are not looked at: they need not be on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/verb.h"
#include "actors/main/launch_options.h"
#include "runtime/link/port_range.h"

namespace tandem::app {

struct KubeCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::string action;  // "manifest"
  std::filesystem::path job;
  std::vector<std::string> sets;
  std::string image;
  LaunchHosts hosts;
  // Defaults: those of launch::KubeJob.
  std::optional<std::string> cpus_per_node, memory_per_node, shm;
  std::optional<std::string> space, claim, storage, storage_class, queue;
  link::PortRange ports;
  bool plaintext_gang = false;
  bool plain = false;
};

}  // namespace tandem::app
