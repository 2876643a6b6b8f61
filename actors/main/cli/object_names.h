// From the names that people write to those that the API knows: one look at a list, and the same
// errors for every command.
#pragma once

#include <optional>
#include <string>

#include "actors/main/cli/client_commands.h"
#include "runtime/base/json.h"

namespace tandem::cli {

// Whether names of runs that the controller knows only by their directories will do as well.
enum class PastRuns { kExcluded, kIncluded };

struct ActorName {
  std::string job;        // its id
  std::string full_name;  // "JOB/rollout/0"
  bool recorded = false;  // of a run that is known only by its directory

  std::string short_name() const { return full_name.substr(job.size() + 1); }  // "rollout/0"
};

// A member as text; empty where there is none.
std::string field(const nlohmann::json& item, const char* name);

Result<nlohmann::json> get_list(const Client& client, const std::string& path);

// An id, or the name of exactly one job; of several, the one that has not ended.
Result<std::string> find_job(const Client& client, const std::string& wanted,
                             PastRuns past = PastRuns::kExcluded);

// A full name, or the end of exactly one ("rollout/0"), within `job` where one is given.
Result<ActorName> find_actor(const Client& client, const std::string& wanted,
                             const std::optional<std::string>& job,
                             PastRuns past = PastRuns::kExcluded);

// Names of a run's actors, of which only its directory tells.
Result<std::vector<ActorName>> recorded_actors(const Client& client, const std::string& run);

struct ObjectPath {
  Kind kind;         // kRuns for a job that is known only as a run
  std::string path;  // of the API
};
// Where names have short forms, they are resolved.
Result<ObjectPath> object_path(const Client& client, Kind kind, const std::string& name,
                               const std::optional<std::string>& job,
                               PastRuns past = PastRuns::kExcluded);

// "no job `arth`: did you mean …"
Error not_found(const std::string& kind, const std::string& name,
                const std::vector<std::string>& names);

}  // namespace tandem::cli
