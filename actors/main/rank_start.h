// `tandem node` as one of the processes that mpirun or torchrun starts on several hosts, which the
// environment tells (actors/launch/rank_env.h). Where its options do not say where the controller
// is, it takes the place of its rank:
//
//   a further process of a host   ends at once with 0: one agent offers the whole host
//   rank 0, with --job            becomes `tandem run`, with a cluster that the others join
//   rank 0                        the node of this host's controller, as without a launcher
//   any other                     joins the controller at MASTER_ADDR, at --port
//
// One process alone, and one whose options name a controller, is as without a launcher.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/console.h"
#include "actors/cli/options.h"
#include "actors/cli/shared_options.h"
#include "runtime/base/result.h"
#include "runtime/link/port_range.h"

namespace tandem::app {

// What the options say of the job of all ranks.
struct RankJob {
  std::optional<std::filesystem::path> job;
  std::vector<std::string> sets;
  int port = cli::kPortDefault;           // of rank 0's controller
  std::optional<std::int64_t> min_nodes;  // default: all hosts
  bool plaintext_gang = false;            // the network between hosts is trusted
};
void add_rank_job(cli::Options& options, RankJob& job);

// What the other options of `tandem node` say.
struct RankNode {
  bool controller_is_named = false;  // the node takes no place then
  std::optional<std::string> name, bind;
  std::optional<double> cpus;
  std::optional<std::int64_t> memory_bytes;
  link::PortRange ports;  // at which ranks listen for other hosts
};

// What follows. With neither of both the node is as without a launcher.
struct RankTurn {
  std::optional<int> code = {};          // nothing is left to do
  std::optional<std::string> join = {};  // HOST:PORT of the controller, as for --join
};

// Takes the place of this process's rank. Call it before the process's first thread: it changes the
// environment. Does not return where this process becomes `tandem run`.
Result<RankTurn> take_rank(const RankJob& ranks, const RankNode& node, const cli::Console& console);

}  // namespace tandem::app
