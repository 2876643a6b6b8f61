// A controller's core with N nodes of eight slots, full of the actors of four jobs that train and
// of four of users' programs; two more jobs are queued. Effects are carried out on paper.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/controller/controller_core.h"
#include "runtime/base/check.h"
#include "tests/actors/controller/job_shapes.h"

namespace tandem::controller {

class SizedCluster {
 public:
  explicit SizedCluster(std::int64_t nodes)
      : core_(1), programs_(static_cast<std::int32_t>(nodes / 2)) {
    for (std::int64_t i = 0; i < nodes; ++i) add_node();
    for (int job = 0; job < 4; ++job) submit(training(3 * programs_));
    for (int job = 0; job < 4; ++job) submit(programs(programs_));
    settle();
    CHECK(std::ssize(alive_) == 8 * nodes);
    for (int queued = 0; queued < 2; ++queued) submit(training(3 * programs_));
  }
  // Actors of a job that runs wait for room.
  void add_waiting() {
    take(ScaleRole{"job-8", {"counter"}, programs_ + std::max(kWaiting, programs_)});
  }
  static constexpr std::int32_t kWaiting = 70;

  void take(const ControllerEvent& event) {
    const auto effects = core_.step(event, now_);
    CHECK(effects.has_value());
    for (const ControllerEffect& effect : *effects) {
      if (const auto* spawn = std::get_if<SpawnRankOn>(&effect)) {
        alive_.emplace(spawn->id, spawn->node);
        ranks_on_[spawn->node].insert(spawn->id);
        starting_.push_back(spawn->id);
      }
      if (const auto* kill = std::get_if<KillRankOn>(&effect)) ending_.push_back(kill->id);
      if (const auto* tell = std::get_if<TellExchange>(&effect))
        if (const auto* drain = std::get_if<messages::DrainActor>(&tell->message))
          drained_.push_back({tell->job, drain->who});
    }
  }
  // All that starts is ready, and all that is told to end does.
  void settle() {
    while (!starting_.empty() || !ending_.empty() || !drained_.empty()) {
      for (const messages::ActorDrained& drained : std::exchange(drained_, {})) take(drained);
      for (const node::RankId& rank : std::exchange(ending_, {}))
        if (alive_.contains(rank)) end(rank);
      for (const node::RankId& rank : std::exchange(starting_, {})) {
        if (!alive_.contains(rank)) continue;
        take(node::RankSpawned{rank, 1});
        take(RankConnected{rank});
        take(messages::RankReady{rank.actor, rank.incarnation, rank.rank});
      }
    }
  }
  void pass(Duration time) { now_ = now_ + time; }
  void end(const node::RankId& rank, std::optional<int> signal = 9) {
    gone(rank);
    node::RankExited exited{.id = rank, .signal = signal};
    if (!signal) exited.code = 0;
    take(exited);
  }

  std::string node_name(std::int64_t i) const { return "node-" + std::to_string(i); }
  node::NodeUp node_up(const std::string& name) const {
    node::NodeUp up{.node = name, .incarnation = {1}, .cpus = 8, .memory_bytes = 1LL << 40};
    if (const auto on = ranks_on_.find(name); on != ranks_on_.end())
      for (const node::RankId& rank : on->second) up.ranks.push_back({rank, 1});
    return up;
  }
  void add_node() { take(node_up(node_name(nodes_++))); }
  // Its machine is gone: the links of its ranks end first.
  void lose_node(std::int64_t i) {
    for (const node::LivingRank& rank : node_up(node_name(i)).ranks) {
      gone(rank.id);
      take(RankHung{rank.id, 0});
    }
    take(NodeDown{node_name(i), Incarnation{1}});
  }
  // The rank of an actor of users' programs, and of one that trains.
  node::RankId program(int job, int i) const {
    return rank_of("job-" + std::to_string(4 + job) + "/counter/" + std::to_string(i));
  }
  node::RankId rollout(int job, int i) const {
    return rank_of("job-" + std::to_string(job) + "/rollout/" + std::to_string(i));
  }
  const ActorRecord& record(const std::string& actor) const {
    return core_.jobs().at(job_of_actor(actor)).actors.at(actor);
  }
  const ControllerCore& core() const { return core_; }

 private:
  void gone(const node::RankId& rank) {
    ranks_on_[alive_.at(rank)].erase(rank);
    alive_.erase(rank);
  }
  node::RankId rank_of(const std::string& actor) const {
    return {actor, record(actor).incarnation, 0};
  }
  static JobShape training(std::int32_t actors) {
    JobShape shape = shape_of(1, actors - 2);
    shape.name = "train";
    return shape;
  }
  static JobShape programs(std::int32_t actors) {
    JobShape shape = actors_alone(actors);
    shape.per_rank[{"counter"}] = scheduler::resources({.cpus = 1});
    return shape;
  }
  void submit(const JobShape& shape) {
    const std::string id = "job-" + std::to_string(++submitted_);
    take(SubmitJob{shape, id, "runs/" + id});
  }

  ControllerCore core_;
  const std::int32_t programs_;  // actors of each job of users' programs
  Time now_{};
  std::map<node::RankId, std::string> alive_;  // and their nodes
  std::map<std::string, std::set<node::RankId>> ranks_on_;
  std::vector<node::RankId> starting_, ending_;
  std::vector<messages::ActorDrained> drained_;
  std::int64_t nodes_ = 0;
  int submitted_ = 0;
};

}  // namespace tandem::controller
