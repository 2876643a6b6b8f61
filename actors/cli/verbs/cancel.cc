#include <algorithm>
#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/job_watch.h"
#include "actors/cli/object_names.h"
#include "actors/cli/verb.h"
#include "actors/job/resume.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct Cancel {
  static VerbHelp help() {
    return {.name = "cancel",
            .group = VerbGroup::kChange,
            .description = "Stop a job; returns when nothing of it runs",
            .examples = {"tandem cancel arithmetic-grpo-1"}};
  }

  void options(Options& options) { options.add("JOB", job, "The job").required().offers("live"); }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  std::string job;
};

// A cancelled job has ended before its last process has: `cancel` waits for both.
bool actors_stopped(const json& actors, const std::string& job_id) {
  return std::ranges::none_of(actors, [&](const json& actor) {
    return field(actor, "job") == job_id && !actor_has_ended(actor);
  });
}

Result<void> Cancel::carry_out(Client& client) const {
  auto id = find_job(client, job);
  if (!id) return id.error();
  auto accepted = client.api.post("/jobs/" + url_escape(*id) + "/cancel", "{}");
  if (!accepted) return accepted.error();
  std::optional<Error> failure;
  auto last = watch_job(client, *id, [&](const json& now) {
    if (!has_ended(now)) return false;
    auto actors = get_list(client, "/actors");
    if (!actors) failure = actors.error();
    return failure || actors_stopped(*actors, *id);
  });
  if (failure) return *failure;
  if (!last) return last.error();
  client.console.err << "job " << *id << " " << field(*last, "state") << std::endl;
  if (field(*last, "state") == "Cancelled")
    client.console.err << job::resume_hint("submit", field(*last, "run_dir")) << std::flush;
  return {};
}

}  // namespace

Verb cancel_verb() { return make_verb<Cancel>(); }

}  // namespace tandem::cli
