// The options of `up`, `controller`, `node` and `run`: where a cluster listens, and what a node
// offers.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "actors/main/cli/command.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// Of a controller, in the foreground or not.
void add_listening_options(CLI::App* app, int& port, DoorFlags& door);
// `memory` is a size as written: "8GiB".
void add_node_options(CLI::App* app, NodeCommand& node, std::string& memory);
// Of every command that starts a node.
void add_memory_option(CLI::App* app, std::string& memory);

// A node with less has no room for one rank.
inline constexpr std::int64_t kMemoryOfferMin = std::int64_t{64} << 20;
// Of --memory as written; none where it was not given. kInvalid unless it is a size of at least
// kMemoryOfferMin.
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
