// The exchange says in words what it waits for (messages/exchange.h). The other end of an edge is
// the actor that the words name, else the first actor of the role that they name, else the exchange
// itself. An actor that is not ready waits for the controller, or for its node while it starts. An
// edge from an actor to itself says nothing and is left out.
#include "actors/api/wait_graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "actors/api/wait_deadlines.h"
#include "runtime/base/json.h"

namespace tandem::api {

using nlohmann::json;

namespace {

constexpr const char* kController = "controller";

std::string exchange_of(const controller::JobRecord& job) { return job.id + "/exchange"; }

// The role that the words of a wait are about. Checkpoints are the learner's, evaluations the
// rollouts'.
std::optional<messages::Role> role_in(const std::string& words) {
  const auto has = [&](const char* word) { return words.find(word) != std::string::npos; };
  if (has("learner") || has("checkpoint") || has("warm start")) return messages::Role::kLearner;
  if (has("rollout") || has("evaluation")) return messages::Role::kRollout;
  for (const messages::Role& role : messages::kTrainingRoles)
    if (has(name(role).c_str())) return role;
  return std::nullopt;
}

class Graph {
 public:
  Graph(const controller::WorkByActor& work, std::int64_t now_ms) : work_(work), now_ms_(now_ms) {}

  void add(const controller::JobRecord& job, const messages::ExchangeReport* report, Time now);
  json take() { return {{"nodes", std::move(nodes_)}, {"edges", std::move(edges_)}}; }

 private:
  struct Edge {
    std::string from, to, what, detail;
    double since_s = 0;
    std::optional<double> until_s;
    std::string ended_by = {};
  };

  void node(const std::string& id, const std::string& kind, const json& job,
            const std::string& state, const std::string& reason) {
    if (!known_.insert(id).second) return;
    nodes_.push_back(
        {{"id", id}, {"kind", kind}, {"job", job}, {"state", state}, {"reason", reason}});
  }
  void edge(const Edge& edge) {
    if (edge.from == edge.to) return;
    // The controller is a node of the graph only if something waits for it.
    if (edge.to == kController) node(kController, kController, json(), "Ready", "");
    const auto ms = [&](double seconds) {
      return now_ms_ + static_cast<std::int64_t>(seconds * 1000);
    };
    edges_.push_back(
        {{"from", edge.from},
         {"to", edge.to},
         {"what", edge.what},
         {"detail", edge.detail},
         {"since", ms(-edge.since_s)},
         {"until", edge.until_s ? json(ms(*edge.until_s)) : json()},
         {"ended_by", edge.until_s || edge.ended_by.empty() ? json() : json(edge.ended_by)}});
  }
  std::string target_of(const controller::JobRecord& job, const messages::Wait& wait,
                        const std::string& from);
  void add_actor(const controller::JobRecord& job, const controller::ActorRecord& actor, Time now);

  const controller::WorkByActor& work_;
  const std::int64_t now_ms_;
  json nodes_ = json::array(), edges_ = json::array();
  std::set<std::string> known_;
};

// An actor by its full name, else by its role, else the exchange; the exchange's own wait without
// such words is for the controller.
std::string Graph::target_of(const controller::JobRecord& job, const messages::Wait& wait,
                             const std::string& from) {
  if (const std::string named = actor_named_in(wait); named != from && job.actors.contains(named))
    return named;
  for (const auto& [id, actor] : job.actors)
    if (id != from && wait.waits_for.find(id) != std::string::npos) return id;
  const auto role = role_in(wait.waits_for);
  for (const auto& [id, actor] : job.actors)
    if (role && actor.role == *role && id != from && !scheduler::is_final(actor.status.state))
      return id;
  return from == exchange_of(job) ? kController : exchange_of(job);
}

void Graph::add_actor(const controller::JobRecord& job, const controller::ActorRecord& actor,
                      Time now) {
  const scheduler::ActorStatus& status = actor.status;
  node(actor.name, name(actor.role), job.id, name(status.state),
       scheduler::reason_name(status.reason));
  if (const auto* lost = std::get_if<scheduler::AgentLost>(&status.reason)) {
    const std::string to = "node/" + lost->node;
    node(to, "node", json(), "Lost", scheduler::reason_name(status.reason));
    edge({.from = actor.name,
          .to = to,
          .what = scheduler::reason_name(status.reason),
          .detail = scheduler::message(status.reason, now),
          .since_s = seconds(now - lost->since),
          .until_s = seconds(lost->until - now)});
  }
  // These do not wait for a start or an end; the exchange tells their other waits.
  if (status.state == scheduler::ActorState::kReady ||
      status.state == scheduler::ActorState::kBusy || scheduler::is_final(status.state))
    return;
  Edge waits{.from = actor.name,
             .to = kController,
             .what = scheduler::reason_name(status.reason),
             .detail = scheduler::message(status.reason, now),
             .since_s = seconds(now - status.since)};
  if (const auto until = deadline_of(actor, work_))
    waits.until_s = seconds(*until - now);
  else
    waits.ended_by = words(ended_by(actor));
  if (const auto* draining = std::get_if<scheduler::Draining>(&status.reason);
      draining && draining->work != scheduler::DrainedWork::kQuestions)
    waits.to = exchange_of(job);
  const bool starts = status.state == scheduler::ActorState::kStarting ||
                      status.state == scheduler::ActorState::kInitializing;
  if (starts && !actor.ranks.empty() && !actor.ranks.front().node.empty()) {
    waits.to = "node/" + actor.ranks.front().node;
    node(waits.to, "node", json(), "", "");
  }
  edge(waits);
}

void Graph::add(const controller::JobRecord& job, const messages::ExchangeReport* report,
                Time now) {
  for (const auto& [id, actor] : job.actors) add_actor(job, actor, now);
  if (!trains(job.shape)) return;  // it has no exchange
  node(exchange_of(job), "exchange", job.id, name(job.status.state),
       scheduler::reason_name(job.status.reason));
  if (!report && !scheduler::is_final(job.status.state)) {
    Edge waits{.from = exchange_of(job),
               .to = kController,
               .what = scheduler::reason_name(job.status.reason),
               .detail = scheduler::message(job.status.reason, now),
               .since_s = seconds(now - job.status.since)};
    if (const auto until = scheduler::deadline_of(job.status.reason))
      waits.until_s = seconds(*until - now);
    else
      waits.ended_by = words(*scheduler::ended_by(job.status.reason));
    edge(waits);
  }
  if (!report) return;
  for (const messages::Wait& wait : report->status.waits) {
    // A wait of anything but an actor is the exchange's.
    const std::string from = job.actors.contains(wait.who) ? wait.who : exchange_of(job);
    edge({.from = from,
          .to = target_of(job, wait, from),
          .what = wait.waits_for,
          .detail = wait.detail,
          .since_s = wait.since_s,
          .until_s = deadline_s(wait, work_, now),
          .ended_by = wait.ended_by});
  }
}

}  // namespace

json wait_graph(const Picture& picture, const std::string& job, std::int64_t now_ms) {
  Graph graph(picture.work, now_ms);
  for (const controller::JobRecord& record : picture.cluster.jobs) {
    const bool wanted = job.empty() ? !scheduler::is_final(record.status.state) : record.id == job;
    if (wanted) graph.add(record, picture.report(record.id), picture.cluster.now);
  }
  return graph.take();
}

}  // namespace tandem::api
