// Asks go out one after the other, so an exchange that does not answer delays the picture by its
// timeout and is left out.
#include "actors/api/cluster_picture.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "actors/api/http_answers.h"
#include "runtime/base/json.h"

namespace tandem::api {

using nlohmann::json;

const messages::ExchangeReport* Picture::report(const std::string& job) const {
  const auto it = reports.find(job);
  return it == reports.end() ? nullptr : &it->second;
}

const controller::JobRecord* Picture::job(const std::string& wanted) const {
  const controller::JobRecord* found = nullptr;
  for (const controller::JobRecord& job : cluster.jobs) {
    if (job.id == wanted) return &job;
    if (job.shape.name != wanted) continue;
    // A job that runs is preferred; among equals the one that was submitted last.
    const bool runs = !scheduler::is_final(job.status.state);
    const bool better = !found || (runs == !scheduler::is_final(found->status.state)
                                       ? job.submitted > found->submitted
                                       : runs);
    if (better) found = &job;
  }
  return found;
}

json Picture::shown(const controller::JobRecord& job) const {
  json item = shown_job(job, report(job.id), cluster.now, work);
  item["alerts"] = alerts_json(alerts, job.id);
  return item;
}

json Picture::shown(const controller::JobRecord& job, const controller::ActorRecord& actor) const {
  return actor_json(actor, report(job.id), job.ladder.restarts_of(actor.name), cluster.now, work);
}

Result<Picture> take_picture(const PictureSources& from, const controller::ViewPage& page) {
  auto cluster = ask_and_wait(from.controller, controller::GetCluster{page}, kApiAskTimeout);
  if (!cluster) return cluster.error();
  Picture picture{.cluster = std::move(*cluster), .reports = {}};
  // A page of exchanges is for their groups, which the reports do not have.
  if (page.of == controller::ViewOf::kExchanges) return picture;
  for (const auto& [job, exchange] : picture.cluster.exchanges)
    if (auto report = ask_and_wait(exchange, messages::GetExchangeReport{}, kApiAskTimeout))
      picture.reports.emplace(job, std::move(*report));
  if (page.of == controller::ViewOf::kNodes) return picture;
  if (from.alerts)
    if (auto alerts = ask_and_wait(from.alerts, GetAlerts{}, kApiAskTimeout))
      picture.alerts = *std::move(alerts);
  if (!from.watchdog) return picture;
  if (auto work = ask_and_wait(from.watchdog, controller::GetWork{page.job}, kApiAskTimeout))
    picture.work = std::move(*work);
  return picture;
}

Result<Picture> picture_of(const PictureSources& from, const std::string& job) {
  auto one = take_picture(from, {.of = controller::ViewOf::kJobs, .job = job});
  return !one || !one->cluster.jobs.empty() ? std::move(one) : take_picture(from);
}

namespace {

// Groups of all jobs, in the order of the jobs and of their numbers, from answers of a bounded size
// each. An exchange that does not answer is left out from there on.
json groups(const Picture& picture, const GroupsPage& page) {
  json array = json::array();
  for (const auto& [job, exchange] : picture.cluster.exchanges) {
    if (job < page.job) continue;
    messages::GetGroups asked{.after = job == page.job ? page.after : 0};
    for (bool more = true; more && array.size() < page.limit;) {
      asked.limit = std::min(page.limit - array.size(), messages::kGroupsPerAnswer);
      const auto some = ask_and_wait(exchange, asked, kApiAskTimeout);
      more = some && some->size() == asked.limit;
      if (!some) continue;
      for (const messages::GroupView& group : *some) array.push_back(group_json(group, job));
      if (more) asked.after = some->back().group;
    }
  }
  return array;
}

// The job as an entry of a list: a row for each rollout would make the list of a large fleet long.
json listed(json job) {
  if (const auto rates = job.find("rates"); rates != job.end() && rates->is_object())
    rates->erase("rollouts");
  return job;
}

}  // namespace

json list(const Picture& picture, const std::string& kind, const GroupsPage& page) {
  if (kind == "groups") return groups(picture, page);
  json array = json::array();
  if (kind == "jobs")
    for (const controller::JobRecord& job : picture.cluster.jobs)
      array.push_back(listed(picture.shown(job)));
  if (kind == "actors") {
    for (const controller::JobRecord& job : picture.cluster.jobs)
      for (const auto& [id, actor] : job.actors) array.push_back(picture.shown(job, actor));
    for (const controller::ShownActor& shown : picture.cluster.actors)
      array.push_back(actor_json(shown.actor, picture.report(shown.actor.job), shown.restarts,
                                 picture.cluster.now, picture.work));
  }
  if (kind == "nodes")
    for (const controller::NodeRecord& node : picture.cluster.nodes)
      array.push_back(node_json(node, picture.cluster.now));
  return array;
}

Result<FoundActor> find_actor(const Picture& picture, const std::string& wanted) {
  std::vector<FoundActor> found;
  for (const controller::JobRecord& job : picture.cluster.jobs)
    for (const auto& [id, actor] : job.actors) {
      if (id == wanted) return FoundActor{&job, &actor};
      // A short name means actors of jobs that run; ended jobs would make it ambiguous.
      if (id.substr(job.id.size() + 1) == wanted && !scheduler::is_final(job.status.state))
        found.push_back({&job, &actor});
    }
  if (found.size() == 1) return found.front();
  if (found.empty()) return no_such("actor", wanted);
  return Error{ErrorCode::kInvalid, std::to_string(found.size()) + " jobs have an actor " + wanted,
               "", "name the job as well: -j JOB, or JOB/" + wanted};
}

namespace {

// The first job that has a group of this number.
Result<json> find_group(const Picture& picture, const std::string& name) {
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const bool read = std::from_chars(name.data(), end, number) == std::from_chars_result{end, {}};
  if (read && number > 0)
    for (const auto& [job, exchange] : picture.cluster.exchanges)
      if (const auto one = ask_and_wait(
              exchange, messages::GetGroups{.after = number - 1, .limit = 1}, kApiAskTimeout);
          one && !one->empty() && one->front().group == number)
        return group_json(one->front(), job);
  return no_such("group", name);
}

std::vector<controller::ShownActor> actors_of(const controller::ClusterView& view) {
  std::vector<controller::ShownActor> actors = view.actors;
  for (const controller::JobRecord& job : view.jobs)
    for (const auto& [id, actor] : job.actors) actors.push_back({actor});
  return actors;
}

}  // namespace

Result<json> find_one(const Picture& picture, const std::string& kind, const std::string& name) {
  if (kind == "actors") {
    const auto found = find_actor(picture, name);
    if (!found) return found.error();
    return picture.shown(*found->job, *found->actor);
  }
  if (kind == "jobs") {
    const controller::JobRecord* job = picture.job(name);
    if (!job) return no_such("job", name);
    return picture.shown(*job);
  }
  if (kind == "groups") return find_group(picture, name);
  const auto node = std::ranges::find(picture.cluster.nodes, name, &controller::NodeRecord::name);
  if (kind != "nodes" || node == picture.cluster.nodes.end())
    return no_such(kind.substr(0, kind.size() - 1), name);  // the singular of the kind
  json item = node_json(*node, picture.cluster.now);
  item["reserved"] = reservations_json(actors_of(picture.cluster), name);
  return item;
}

json status_json(const controller::ClusterCounts& counts) {
  return {{"nodes", {{"ready", counts.nodes_up}, {"lost", counts.nodes_lost}}},
          {"jobs", counts.jobs}};
}

}  // namespace tandem::api
