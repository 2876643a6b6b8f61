// The options of `up`, `controller` and `node`: where a cluster listens, and what a node offers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "actors/main/cli/command.h"

namespace tandem::cli {

// Of a controller, in the foreground or not.
void add_listening_options(CLI::App* app, int& port, DoorFlags& door);
// `memory` is a size as written: "8GiB".
void add_node_options(CLI::App* app, NodeCommand& node, std::string& memory);

}  // namespace tandem::cli
