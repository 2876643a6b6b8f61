#include <ostream>
#include <utility>

#include "actors/cli/api_object.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

// A run is deleted by its id alone, since a name may mean another run tomorrow.
struct Delete {
  static VerbHelp help() {
    return {.name = "delete",
            .group = VerbGroup::kChange,
            .description = "Remove a run that has ended: its directory with all that is in it",
            .examples = {"tandem delete run/arithmetic-grpo-1"}};
  }

  void options(Options& options) {
    const auto take = [this](ObjectName object) -> Result<void> {
      if (object.kind != Kind::kRuns || !object.name)
        return usage_error("`delete` removes runs alone",
                           "as in `tandem delete run/ID`; `tandem cancel JOB` stops a job");
      id = std::move(*object.name);
      return {};
    };
    add_object(options, "run/ID", take, "The run");
  }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  std::string id;
};

Result<void> Delete::carry_out(Client& client) const {
  auto deleted = client.api.remove("/runs/" + url_escape(id));
  if (!deleted && deleted.error().code == ErrorCode::kNotFound) {
    auto runs = get_list(client, "/runs");
    if (!runs) return deleted;
    std::vector<std::string> ids;
    for (const json& one : *runs) ids.push_back(field(one, "id"));
    return not_found("run", id, ids);
  }
  if (!deleted) return deleted;
  client.console.out << "run/" << id << " deleted" << std::endl;
  return {};
}

}  // namespace

Verb delete_verb() { return make_verb<Delete>(); }

}  // namespace tandem::cli
