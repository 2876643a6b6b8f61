#include <ostream>

#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"
#include "actors/cli/views.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct Why {
  static VerbHelp help() {
    return {
        .name = "why",
        .group = VerbGroup::kLook,
        .description = "Who waits for what, since when and until when",
        .examples = {"tandem why arithmetic-grpo-1", "tandem why rollout/0 -j arithmetic-grpo"}};
  }

  void options(Options& options) {
    options.add("ACTOR|JOB", target, "An actor or a job").required();
    using enum OutputForm;
    add_output(options, output, {kTable, kJson, kYaml});
    add_job(options, job);
  }

  static AnsweredBy answered_by() { return AnsweredBy::kRunsAsWell; }
  Result<void> carry_out(Client& client) const;

  std::string target;
  OutputForm output = OutputForm::kTable;
  std::optional<std::string> job;
};

Result<void> Why::carry_out(Client& client) const {
  // A job or a run is tried first, then an actor; an error that is not kNotFound, such as an
  // ambiguous name, is shown.
  Result<ObjectPath> path = object_path(client, Kind::kJobs, target, job, PastRuns::kIncluded);
  if (!path && path.error().code == ErrorCode::kNotFound)
    if (auto actor = object_path(client, Kind::kActors, target, job);
        actor || actor.error().code != ErrorCode::kNotFound)
      path = std::move(actor);
  if (!path && path.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, "no run, job or actor `" + target + "`", "",
                 "`tandem get runs` and `tandem get actors` list them"};
  if (!path) return path.error();
  auto item = client.api.get(path->path);
  if (!item) return item.error();
  if (output == OutputForm::kTable) {
    client.console.out << render_why(*item, screen_of(client)) << std::flush;
    return {};
  }
  const json why = item->value("why", json::array());
  client.console.out << (output == OutputForm::kYaml ? to_yaml(why) : shown_json(why, 2) + "\n")
                     << std::flush;
  return {};
}

}  // namespace

Verb why_verb() { return make_verb<Why>(); }

}  // namespace tandem::cli
