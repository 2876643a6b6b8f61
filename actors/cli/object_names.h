// Turns the names that people write into those that the API knows: ids of jobs, full names of
// actors, paths. Each function looks at one or two lists of the controller and gives the same
// errors for every command: kNotFound with the nearest name, kInvalid with the candidates for a
// name that means several.
#pragma once

#include <optional>
#include <string>

#include "actors/cli/client.h"
#include "actors/cli/kinds.h"
#include "runtime/base/json.h"

namespace tandem::cli {

// Whether runs that the controller knows only by their directories count as well. Commands that
// change a job exclude them.
enum class PastRuns { kExcluded, kIncluded };

struct ActorName {
  std::string job;        // its id
  std::string full_name;  // "JOB/rollout/0"
  bool recorded = false;  // its run is known only by its directory

  std::string short_name() const { return full_name.substr(job.size() + 1); }  // "rollout/0"
};

// GET `path`; an answer that is no array is kFailed.
Result<nlohmann::json> get_list(const Client& client, const std::string& path);

// The id of the job that `wanted` means: an id, or a name that one job has. Where several jobs have
// the name, it means the one that has not ended.
Result<std::string> find_job(const Client& client, const std::string& wanted,
                             PastRuns past = PastRuns::kExcluded);

// The actor that `wanted` means: a full name, whose first part may be a job's name as find_job()
// takes it, or the end of exactly one ("rollout/0"), within `job` where one is given.
Result<ActorName> find_actor(const Client& client, const std::string& wanted,
                             const std::optional<std::string>& job,
                             PastRuns past = PastRuns::kExcluded);

// The names of a run's actors, from the record in its directory.
Result<std::vector<ActorName>> recorded_actors(const Client& client, const std::string& run);

struct ObjectPath {
  Kind kind;         // kRuns for a job that is known only as a run
  std::string path;  // the object's path in the API, after /api/v1
};
// The path of an object. Short forms of jobs' and actors' names are resolved; names of other kinds
// are taken as they are.
Result<ObjectPath> object_path(const Client& client, Kind kind, const std::string& name,
                               const std::optional<std::string>& job,
                               PastRuns past = PastRuns::kExcluded);

// kNotFound: "no job `arth`: did you mean ..." with the nearest of `names`.
Error not_found(const std::string& kind, const std::string& name,
                const std::vector<std::string>& names);

}  // namespace tandem::cli
