// Members of the objects that the API answers with: jobs, runs and actors as JSON. Pure.
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace tandem::cli {

// The member `name` of `item` as text: a string as it is, other values as JSON; empty where there
// is none.
std::string field(const nlohmann::json& item, const char* name);

// Whether the state of a job is Succeeded, Failed or Cancelled.
bool has_ended(const nlohmann::json& job);
bool actor_has_ended(const nlohmann::json& actor);  // Stopped or Failed

}  // namespace tandem::cli
