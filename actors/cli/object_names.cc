// An exact match always wins over a short form, so that a script that uses full names never becomes
// ambiguous. Runs in the state folder come after the jobs of this controller and never hide them.
#include "actors/cli/object_names.h"

#include <algorithm>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"

namespace tandem::cli {

using nlohmann::json;

namespace {

// The jobs, oldest first; with kIncluded also the runs that are no jobs of this controller any
// more.
Result<json> jobs_and_runs(const Client& client, PastRuns past) {
  auto jobs = get_list(client, "/jobs");
  if (!jobs || past == PastRuns::kExcluded) return jobs;
  auto runs = get_list(client, "/runs");
  if (!runs && runs.error().code == ErrorCode::kNotFound) return jobs;  // an older controller's
  if (!runs) return runs;
  for (json& run : *runs) {
    const std::string id = field(run, "id");
    const auto same = [&](const json& job) { return field(job, "id") == id; };
    if (std::ranges::none_of(*jobs, same)) jobs->push_back(std::move(run));
  }
  return jobs;
}

// The names that are `wanted` or end in it; the exact one alone if there is one.
std::vector<ActorName> matching(const std::vector<ActorName>& names, const std::string& wanted) {
  std::vector<ActorName> matches;
  for (const ActorName& name : names) {
    if (name.full_name == wanted) return {name};
    if (name.full_name.ends_with("/" + wanted)) matches.push_back(name);
  }
  return matches;
}

}  // namespace

Error not_found(const std::string& kind, const std::string& name,
                const std::vector<std::string>& names) {
  return {ErrorCode::kNotFound, "no " + kind + " `" + name + "`", "",
          did_you_mean(name, names,
                       names.empty() ? "there are none" : "`tandem get " + kind + "s` lists them")};
}

Result<json> get_list(const Client& client, const std::string& path) {
  auto items = client.api.get(path);
  if (items && !items->is_array())
    return Error{ErrorCode::kFailed, "the controller answered " + path + " with no list", "", ""};
  return items;
}

Result<std::string> find_job(const Client& client, const std::string& wanted, PastRuns past) {
  auto jobs = jobs_and_runs(client, past);
  if (!jobs) return jobs.error();
  std::vector<std::string> names, ids, live;
  for (const json& job : *jobs) {
    const std::string id = field(job, "id"), name = field(job, "name");
    if (id == wanted) return id;
    names.push_back(id);
    names.push_back(name);
    if (name != wanted) continue;
    ids.push_back(id);
    if (!has_ended(job)) live.push_back(id);
  }
  // A name is usually used for run after run: the job that has not ended is meant.
  const std::vector<std::string>& candidates = live.empty() ? ids : live;
  if (candidates.size() == 1) return candidates.front();
  if (candidates.empty())
    return not_found(past == PastRuns::kIncluded ? "run" : "job", wanted, names);
  return usage_error("the name `" + wanted + "` is not unique",
                     "use an id: " + joined(candidates, ", "));
}

Result<std::vector<ActorName>> recorded_actors(const Client& client, const std::string& run) {
  auto record = client.api.get("/runs/" + url_escape(run));
  if (!record) return record.error();
  std::vector<ActorName> names;
  const json actors = record->value("actors", json::array());
  if (!actors.is_array()) return names;
  for (const json& actor : actors) {
    std::string name = actor.is_string() ? actor.get<std::string>() : field(actor, "name");
    if (name.empty()) continue;
    // Records have short names or full ones.
    if (!name.starts_with(run + "/")) name = run + "/" + name;
    names.push_back({run, std::move(name), true});
  }
  return names;
}

Result<ActorName> find_actor(const Client& client, const std::string& wanted,
                             const std::optional<std::string>& job, PastRuns past) {
  std::string run;  // that the actor must be of
  if (job) {
    auto id = find_job(client, *job, past);
    if (!id) return id.error();
    run = *id;
  }
  auto actors = get_list(client, "/actors");
  if (!actors) return actors.error();
  std::vector<ActorName> names;
  for (const json& actor : *actors) {
    const std::string name = field(actor, "name");
    if (job && !name.starts_with(run + "/")) continue;
    names.push_back({name.substr(0, name.find('/')), name});
  }
  std::vector<ActorName> matches = matching(names, wanted);
  std::string full = wanted;
  // A full name, "JOB/rollout/0", names its run itself, by its id or by its job's name.
  if (!job && std::ranges::count(wanted, '/') > 1) {
    run = wanted.substr(0, wanted.find('/'));
    const auto id = matches.empty() ? find_job(client, run, past) : Result<std::string>(run);
    if (id && *id != run) {
      full = *id + wanted.substr(run.size());
      run = *id;
      matches = matching(names, full);
    }
  }
  if (matches.empty() && past == PastRuns::kIncluded && !run.empty()) {
    auto recorded = recorded_actors(client, run);
    if (!recorded && recorded.error().code != ErrorCode::kNotFound) return recorded.error();
    if (recorded) {
      matches = matching(*recorded, full);
      names.insert(names.end(), recorded->begin(), recorded->end());
    }
  }
  if (matches.size() == 1) return matches.front();
  std::vector<std::string> texts;
  // The candidates of an ambiguous name, or all names, to find the nearest in.
  for (const ActorName& name : matches.empty() ? names : matches) texts.push_back(name.full_name);
  if (matches.empty()) return not_found("actor", wanted, texts);
  return usage_error("the name `" + wanted + "` is ambiguous",
                     "add -j JOB, or use the full name: " + joined(texts, ", "));
}

Result<ObjectPath> object_path(const Client& client, Kind kind, const std::string& name,
                               const std::optional<std::string>& job, PastRuns past) {
  // The API's collections have the names of the kinds.
  const auto path = [](Kind of, const std::string& full) {
    return ObjectPath{of, "/" + std::string(spelling(of)) + "/" + url_escape(full)};
  };
  if (kind == Kind::kActors) {
    auto actor = find_actor(client, name, job, past);
    if (!actor) return actor.error();
    return path(kind, actor->full_name);
  }
  if (kind == Kind::kRuns) {
    auto run = find_job(client, name, PastRuns::kIncluded);
    if (!run) return run.error();
    return path(kind, *run);
  }
  if (kind != Kind::kJobs) return path(kind, name);
  auto id = find_job(client, name);
  if (id) return path(kind, *id);
  if (past == PastRuns::kExcluded || id.error().code != ErrorCode::kNotFound) return id.error();
  auto run = find_job(client, name, PastRuns::kIncluded);
  return run ? Result<ObjectPath>(path(Kind::kRuns, *run)) : id.error();
}

}  // namespace tandem::cli
