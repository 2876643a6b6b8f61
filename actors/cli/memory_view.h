// The planned memory of a job and the reserved memory of a node, as `describe` and `get nodes` show
// them. `width` is in columns. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

// A table of item["memory"]: for each role the rows of one rank and the sum that each rank
// reserves. Empty where there is none.
std::string memory_lines(const nlohmann::json& item, int width);

// A table of item["reserved"]: what each rank on a node reserves of it. Empty where there is none.
std::string reserved_lines(const nlohmann::json& item, int width);

// "1.2 GiB/12.0 GiB": reserved memory of a node, and the memory that it offers.
std::string node_memory(const nlohmann::json& node);

}  // namespace tandem::cli
