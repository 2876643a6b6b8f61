// The planned memory of a job and what is reserved on a node, as `describe` and `get nodes` show
// them. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

// A table of item["memory"]: each role's rows and what its ranks reserve. Empty where there is
// none.
std::string memory_lines(const nlohmann::json& item, int width);

// A table of item["reserved"]: what each rank on a node holds of it. Empty where there is none.
std::string reserved_lines(const nlohmann::json& item, int width);

// "1.2 GiB/12.0 GiB": what is reserved of a node's memory.
std::string node_memory(const nlohmann::json& node);

}  // namespace tandem::cli
