// Changes of a node that `cordon`, `drain` and `uncordon` ask for.
#pragma once

#include <optional>
#include <string>

#include "actors/cli/client.h"
#include "actors/cli/options.h"

namespace tandem::cli {

// The arguments that name the node and say why.
void add_node(Options& options, std::string& node);
void add_reason(Options& options, std::optional<std::string>& reason);

// POST /nodes/NODE/CHANGE; the node as it is then. kNotFound with the nearest name.
Result<nlohmann::json> change_node(Client& client, const std::string& node,
                                   const std::string& change,
                                   const std::optional<std::string>& reason = {});

}  // namespace tandem::cli
