// The options that `up`, `controller`, `node` and `run` share: where a cluster listens, and what a
// node offers. Only command_line.cc uses this file, since it needs CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "actors/cli/command.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// Options of a controller, in the foreground or not. `port` and `door` outlive `app`.
void add_listening_options(CLI::App* app, int& port, DoorFlags& door);
// Options of a node. `memory` gets the size as written ("8GiB"); memory_offer() parses it.
void add_node_options(CLI::App* app, NodeCommand& node, std::string& memory);
// The option --memory of every command that starts a node.
void add_memory_option(CLI::App* app, std::string& memory);

// Bytes; a node with less has no room for one rank (kRankProcessBytes in planned_model.h).
inline constexpr std::int64_t kMemoryOfferMin = std::int64_t{64} << 20;
// The bytes of --memory; nullopt where the option was not given. kInvalid unless it is a size of at
// least kMemoryOfferMin.
Result<std::optional<std::int64_t>> memory_offer(const std::string& memory);

// The command that starts a node, with that offer.
template <class Starter>
Result<Command> with_memory(Starter command, const std::string& memory) {
  const auto offer = memory_offer(memory);
  if (!offer) return offer.error();
  command.memory_bytes = *offer;
  return Command(std::move(command));
}

}  // namespace tandem::cli
