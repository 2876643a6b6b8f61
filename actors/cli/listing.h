// The list, or the one object, that `tandem get` and `tandem events` show, once or as it changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::cli {

struct ListRequest {
  Kind kind = Kind::kJobs;
  std::optional<std::string> name;  // nullopt: all; for events, a subject
  OutputForm output = OutputForm::kTable;
  bool watch = false;                // shows changes until interrupted
  std::optional<std::string> job;    // only what belongs to it
  bool all = false;                  // tables show actors that have ended as well
  std::optional<std::string> group;  // of runs: only those of this group
  std::vector<std::string> tags;     // of runs: only those with all of these tags
  std::string sort_by;               // a field of the JSON, with '-' before it descending; or empty
};

Result<int> show_list(const ListRequest& request, const VerbContext& context);

// Whether `item` belongs to the job. For events `job_id` may also be the name of an actor or a
// node.
bool is_of_job(Kind kind, const nlohmann::json& item, const std::string& job_id);

}  // namespace tandem::cli
