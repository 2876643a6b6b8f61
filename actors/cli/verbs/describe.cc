#include <cstddef>
#include <ostream>
#include <utility>

#include "actors/cli/api_object.h"
#include "actors/cli/listing.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"
#include "actors/cli/views.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kEventsShown = 10;

struct Describe {
  static VerbHelp help() {
    return {
        .name = "describe",
        .group = VerbGroup::kLook,
        .description = "Everything known about one object, with its last events",
        .examples = {"tandem describe job/arithmetic-grpo-1",
                     "tandem describe run/arithmetic-grpo-1", "tandem describe actor/learner/0"}};
  }

  void options(Options& options) {
    const auto take = [this](ObjectName object) -> Result<void> {
      if (!object.name) return usage_error("`describe` needs a name", "as in KIND/NAME");
      kind = object.kind;
      name = std::move(*object.name);
      return {};
    };
    add_object(options, "KIND/NAME", take, "What to describe").choices(kind_names());
    add_job(options, job);
  }

  AnsweredBy answered_by() const {
    const bool of_runs = kind == Kind::kRuns || kind == Kind::kJobs || kind == Kind::kActors;
    return of_runs ? AnsweredBy::kRunsAsWell : AnsweredBy::kController;
  }
  Result<void> carry_out(Client& client) const;

  Result<json> found(const Client& client, const ObjectPath& at) const;

  Kind kind = Kind::kJobs;
  std::string name;
  std::optional<std::string> job;
};

// The last events of an object: of its own name, and of objects within it.
Result<json> last_events(const Client& client, Kind kind, const std::string& subject) {
  // The events of a node belong to no job, so that the server cannot filter them by one.
  const std::string job = subject.substr(0, subject.find('/'));
  auto events =
      get_list(client, kind == Kind::kNodes ? "/events" : "/events?job=" + url_escape(job));
  if (!events) return events;
  json mine = json::array();
  for (const json& event : *events)
    if (is_of_job(Kind::kEvents, event, subject)) mine.push_back(event);
  if (mine.size() > kEventsShown)
    mine.erase(mine.begin(), mine.end() - static_cast<std::ptrdiff_t>(kEventsShown));
  return mine;
}

// The object to describe. An actor of a run that is known only by its directory has no path in the
// API: it is found in the record of its run.
Result<json> Describe::found(const Client& client, const ObjectPath& at) const {
  auto item = client.api.get(at.path);
  if (item || kind != Kind::kActors || item.error().code != ErrorCode::kNotFound) return item;
  auto actor = find_actor(client, name, job, PastRuns::kIncluded);
  if (!actor) return actor.error();
  auto run = client.api.get("/runs/" + url_escape(actor->job));
  if (!run) return run;
  for (const json& recorded : run->value("actors", json::array())) {
    const std::string recorded_name = field(recorded, "name");
    if (recorded_name == actor->full_name || recorded_name == actor->short_name()) return recorded;
  }
  return item;
}

Result<void> Describe::carry_out(Client& client) const {
  auto path = object_path(client, kind, name, job, PastRuns::kIncluded);
  if (!path) return path.error();
  auto item = found(client, *path);
  if (!item) return item.error();
  const bool by_id = path->kind == Kind::kJobs || path->kind == Kind::kRuns;
  auto events = last_events(client, path->kind, field(*item, by_id ? "id" : "name"));
  if (!events) return events.error();
  client.console.out << render_description(path->kind, *item, *events, screen_of(client))
                     << std::flush;
  return {};
}

}  // namespace

Verb describe_verb() { return make_verb<Describe>(); }

}  // namespace tandem::cli
