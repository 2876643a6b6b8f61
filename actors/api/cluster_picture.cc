// Asks go out one after the other, so an exchange that does not answer delays the picture by its
// timeout and is left out.
#include "actors/api/cluster_picture.h"

#include <map>
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
  return shown_job(job, report(job.id), cluster.now);
}

json Picture::shown(const controller::JobRecord& job, const controller::ActorRecord& actor) const {
  return actor_json(actor, report(job.id), job.ladder.restarts_of(actor.name), cluster.now);
}

Result<Picture> take_picture(const actor::Ref<controller::Controller::Inbox>& controller) {
  auto cluster = ask_and_wait(controller, controller::GetCluster{}, kApiAskTimeout);
  if (!cluster) return cluster.error();
  Picture picture{.cluster = std::move(*cluster), .reports = {}};
  for (const auto& [job, exchange] : picture.cluster.exchanges)
    if (auto report = ask_and_wait(exchange, messages::GetExchangeReport{}, kApiAskTimeout))
      picture.reports.emplace(job, std::move(*report));
  return picture;
}

json list(const Picture& picture, const std::string& kind) {
  json array = json::array();
  if (kind == "jobs")
    for (const controller::JobRecord& job : picture.cluster.jobs)
      array.push_back(picture.shown(job));
  if (kind == "actors")
    for (const controller::JobRecord& job : picture.cluster.jobs)
      for (const auto& [id, actor] : job.actors) array.push_back(picture.shown(job, actor));
  if (kind == "nodes")
    for (const controller::NodeRecord& node : picture.cluster.nodes)
      array.push_back(node_json(node, picture.cluster.now));
  if (kind == "groups")
    for (const auto& [job, exchange] : picture.cluster.exchanges)
      // Groups are not in the report, since there may be thousands of them.
      if (const auto groups = ask_and_wait(exchange, messages::GetGroups{}, kApiAskTimeout))
        for (const messages::GroupView& group : *groups) array.push_back(group_json(group, job));
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
  for (json& item : list(picture, kind))
    if (item.value("name", "") == name || std::to_string(item.value("group", 0)) == name) {
      if (kind == "nodes") item["reserved"] = reservations_json(picture.cluster.jobs, name);
      return std::move(item);
    }
  // The singular of the kind.
  return no_such(kind.substr(0, kind.size() - 1), name);
}

json status_json(const controller::ClusterView& cluster) {
  int ready = 0;
  for (const controller::NodeRecord& node : cluster.nodes) ready += node.up;
  std::map<std::string, int> jobs;
  for (const controller::JobRecord& job : cluster.jobs) ++jobs[scheduler::name(job.status.state)];
  return {{"nodes", {{"ready", ready}, {"lost", static_cast<int>(cluster.nodes.size()) - ready}}},
          {"jobs", jobs}};
}

}  // namespace tandem::api
