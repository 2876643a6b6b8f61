// What the commands have in common by which a job runs on hosts that an engine for clusters gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/options.h"
#include "runtime/base/result.h"

namespace tandem::app {

// The hosts to ask for.
struct LaunchHosts {
  std::int64_t count = 1;
  std::optional<std::int64_t> min;  // with which the job begins; default: all
  std::int64_t gpus = 0;            // of each

  std::int64_t least() const { return min.value_or(count); }
};
// --nodes, --min-nodes and --gpus-per-node. `one`: what the engine calls a host, as "pod".
void add_launch_hosts(cli::Options& options, LaunchHosts& hosts, const std::string& one);

// Becomes another program, which is looked for in PATH, with this process's limits. Returns only
// where it cannot be started; `help` is then added to what is wrong.
Error become(std::vector<std::string> words, const std::string& help);

}  // namespace tandem::app
