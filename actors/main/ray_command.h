// `tandem ray`: jobs on nodes that a Ray cluster gives. It checks the job, and becomes a Python
// program of ours (scripts/ray/tandem_launch.py, which this binary has), which asks Ray for the
// nodes and starts `tandem run --cluster` and `tandem node --cluster` on them. Needs no controller;
// starts nothing here.
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

struct RayCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::string action;  // "submit", "exec" or "list"
  // submit: one of both at least. exec: `job` is what `list` shows, or a job's name.
  std::optional<std::filesystem::path> job, resume;
  std::vector<std::string> words;  // exec: the command
  std::vector<std::string> sets;
  LaunchHosts hosts;
  std::optional<double> cpus_per_node;  // default: as many as so many nodes have
  link::PortRange ports;
  bool plaintext_gang = false;
  std::string address = "auto", python = "python3";
  std::optional<std::int64_t> wait_s, save_s;  // defaults: those of the program

 private:
  // The words behind the action, and those behind `--`.
  Result<std::vector<std::string>> submit_words(const cli::Console& console) const;
};

}  // namespace tandem::app
