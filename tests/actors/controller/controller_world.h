// The controller's decisions against a world that a test owns: processes that live and die as it
// says, nodes that come and go, users who ask for anything at any time. It carries out effects at
// once, on paper, and checks CC-1 … CC-4 after every event.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/controller/controller_core.h"
#include "tests/actors/controller/core_checks.h"
#include "tests/actors/controller/job_shapes.h"
#include "tests/actors/controller/remembered_check.h"

namespace tandem::controller {

class World {
 public:
  // `restored`: what the controller before this one remembered.
  explicit World(std::uint64_t seed = 1, const DurableState& restored = {}, ClusterRules rules = {})
      : core(seed, restored, rules), remembered(restored) {}
  // The controller that follows the one of `before`, which has died: the processes are still there.
  World(std::uint64_t seed, const World& before) : World(seed, before.remembered) {
    now = before.now;
    nodes = before.nodes;
    alive = before.alive;
    outlived = true;
  }

  Result<void> take(const ControllerEvent& event) {
    auto effects = core.step(event, now);
    if (!effects) return effects.error();
    if (const auto* cancel = std::get_if<CancelJob>(&event))
      cancelled.insert(cancel->job), not_taken.erase(cancel->job);
    if (const auto* submit = std::get_if<SubmitJob>(&event)) cancelled.erase(submit->id);
    if (const auto* taken = std::get_if<TakeUpJobs>(&event)) not_taken = taken->left;
    for (const ControllerEffect& effect : *effects)
      std::visit([this](const auto& e) { apply(e); }, effect);
    check();
    return {};
  }
  void must(const ControllerEvent& event) {
    const auto taken = take(event);
    EXPECT_TRUE(taken.has_value()) << (taken ? "" : taken.error().message);
  }

  void node(const std::string& name, double cpus, int gpu_count = 0,
            const node::NodeNccl& nccl = {}, std::int64_t memory_bytes = std::int64_t{1} << 40) {
    node::NodeUp up{name, Incarnation{++node_lives}, cpus, memory_bytes, 1};
    for (int i = 0; i < gpu_count; ++i)
      up.gpus.push_back({.name = "GPU", .uuid = name + "-" + std::to_string(i)});
    up.nccl = nccl;
    const Node offered{up.incarnation, scheduler::resources({.cpus = cpus,
                                                             .gpus = static_cast<double>(gpu_count),
                                                             .memory_bytes = memory_bytes})};
    nodes.emplace(name, offered);  // jobs may start on it at once
    must(up);
    if (core.nodes().at(name).incarnation == up.incarnation) nodes[name] = offered;  // not refused
  }
  // A node of the controller before, with what has become of its ranks.
  void node_back(const std::string& name, std::vector<node::RankExited> ended = {},
                 std::optional<node::RankId> newest_order = {}, bool leaving = false) {
    const Node& known = nodes.at(name);
    const double cpus = static_cast<double>(known.total.cpu_milli) / 1000;
    node::NodeUp up{name, known.incarnation, cpus, known.total.memory_bytes, 1};
    for (const node::RankExited& end : ended) alive.erase(end.id);
    for (const auto& [id, on] : alive)
      if (on == name) up.ranks.push_back({id, 4711});
    up.ended = std::move(ended), up.newest_order = std::move(newest_order), up.leaving = leaving;
    must(up);
  }
  // The machine is gone, with its agent and all processes.
  void node_lost(const std::string& name) {
    for (const auto& [id, node] : std::map(alive)) {
      if (node != name) continue;
      alive.erase(id);
      must(RankHung{id, 0});
    }
    std::erase_if(alive, [&](const auto& rank) { return rank.second == name; });  // just started
    must(NodeDown{name, nodes.at(name).incarnation});
  }
  void node_leaves(const std::string& name) { node_back(name, {}, {}, true); }
  // Another agent of the node, after one that died alone.
  void agent_back(const std::string& name, std::vector<node::RankExited> ended = {}) {
    nodes.at(name).incarnation = Incarnation{++node_lives};
    node_back(name, std::move(ended));
  }
  std::string submit(const JobShape& shape) {
    const std::string id = "job-" + std::to_string(++submitted);
    must(SubmitJob{shape, id, "runs/" + id});
    return id;
  }
  void ready(const std::string& actor) {
    for (const auto& [id, node] : std::map(alive))
      if (id.actor == actor && id.incarnation == record(actor).incarnation) connect_and_ready(id);
  }
  void connect_and_ready(const node::RankId& id) {
    must(RankConnected{id});
    if (id.rank == 0) must(messages::RankListening{id.actor, id.incarnation, "tcp://a:1"});
    must(messages::RankReady{id.actor, id.incarnation, id.rank});
  }
  void all_ready(const std::string& job) {
    for (const auto& [name, actor] : std::map(core.jobs().at(job).actors)) ready(name);
  }
  void die(const node::RankId& id) { end({.id = id, .signal = 9}); }
  void end(const node::RankExited& exited) {
    alive.erase(exited.id);
    told_to_end.erase(exited.id);
    must(exited);
  }
  void exit_0(const std::string& actor) {
    for (const auto& [id, node] : std::map(alive))
      if (id.actor == actor) end({.id = id, .code = 0});
  }
  void die(const std::string& actor) {
    for (const auto& [id, node] : std::map(alive)) id.actor == actor ? die(id) : void();
  }
  void obey() {  // everything that was told to end does
    while (!told_to_end.empty()) {
      const node::RankId id = *told_to_end.begin();
      alive.contains(id) ? die(id) : void(told_to_end.erase(id));
    }
  }
  const ActorRecord& record(const std::string& actor) const {
    return core.jobs().at(actor.substr(0, actor.find('/'))).actors.at(actor);
  }
  JobState state(const std::string& job) const { return core.jobs().at(job).status.state; }
  ActorState state_of(const std::string& actor) const { return record(actor).status.state; }
  const char* reason(const std::string& actor) const {
    return scheduler::reason_name(record(actor).status.reason);
  }

  ControllerCore core;
  Time now{};
  struct Node {
    Incarnation incarnation;
    scheduler::Resources total;
  };
  std::map<std::string, Node> nodes;
  std::map<node::RankId, std::string> alive;             // and its node
  std::map<std::string, std::vector<std::string>> gpus;  // that an actor's last rank was given
  std::set<node::RankId> told_to_end, told_to_drain, expected, links_cut;
  std::vector<messages::StartRank> started;
  std::vector<messages::StartActor> programs_started;
  std::vector<FailAsks> asks_failed;
  std::set<std::string> results;                          // jobs whose result.json was written
  std::map<std::string, std::vector<TellExchange>> told;  // by job
  std::set<std::string> exchanges;
  std::vector<std::string> runs_taken_up;  // of jobs of actors alone
  std::vector<Announce> announced;
  std::multiset<Time> wakes;
  std::vector<RefuseNode> nodes_refused;
  std::vector<std::string> nodes_asked;          // to introduce themselves again
  DurableState remembered;                       // as a reader of the journal has it
  std::map<std::string, std::string> not_taken;  // jobs that could not be taken up, and why
  std::set<std::string> cancelled;               // jobs that were cancelled and may not have ended
  bool outlived = false;                         // `alive` has processes of the controller before
  std::uint64_t node_lives = 0;
  int submitted = 0;

 private:
  void apply(const SpawnRankOn& spawn) {
    for (const auto& [id, node] : alive)
      EXPECT_FALSE(id.actor == spawn.id.actor && id.incarnation != spawn.id.incarnation)
          << "CC-1: " << id.actor;
    EXPECT_TRUE(alive.emplace(spawn.id, spawn.node).second);
    const NodeRecord& node = core.nodes().at(spawn.node);
    EXPECT_FALSE(node.cordoned || node.leaving) << "PL-5: " << spawn.id.actor;
    for (const std::string& uuid : spawn.gpus) {
      const auto gpu = std::ranges::find_if(
          node.gpus, [&](const GpuRecord& record) { return record.device.uuid == uuid; });
      ASSERT_TRUE(gpu != node.gpus.end() && !gpu->gone) << uuid;
      EXPECT_FALSE(gpu->cordoned) << "PL-5: " << spawn.id.actor;
      EXPECT_GE(gpu->free_milli, 0) << "PL-1: " << uuid;
    }
    gpus[spawn.id.actor] = spawn.gpus;
  }
  void apply(const ExpectRank& rank) {
    EXPECT_EQ(alive.at(rank.id), rank.node);
    EXPECT_TRUE(expected.insert(rank.id).second);
  }
  void apply(const KillRankOn& kill) { told_to_end.insert(kill.id); }
  void apply(const CutLink& cut) { links_cut.insert(cut.id), alive.erase(cut.id); }
  void apply(const AskNode& ask) { nodes_asked.push_back(ask.node); }
  void apply(const RefuseNode& refuse) { nodes_refused.push_back(refuse); }
  void apply(const SendStart& start) { started.push_back(start.start); }
  void apply(const SendProgramStart& start) { programs_started.push_back(start.start); }
  void apply(const DrainRank& drain) { told_to_drain.insert(drain.id); }
  void apply(const FailAsks& fail) { asks_failed.push_back(fail); }
  void apply(const WriteResult& write) {
    EXPECT_TRUE(scheduler::is_final(core.jobs().at(write.job).status.state));
    EXPECT_TRUE(results.insert(write.job).second);
  }
  void apply(const OpenExchange& open) { EXPECT_TRUE(exchanges.insert(open.job).second); }
  void apply(const TakeUpRun& take) { runs_taken_up.push_back(take.job); }
  void apply(const TellExchange& tell) {
    EXPECT_TRUE(exchanges.contains(tell.job));
    told[tell.job].push_back(tell);
  }
  void apply(const CloseExchange& close) {  // a queued job has none, but may have locked a run
    const bool had = exchanges.erase(close.job) == 1;
    const JobShape& shape = core.jobs().at(close.job).shape;
    EXPECT_TRUE(had || shape.resume_dir || !trains(shape)) << close.job;
  }
  void apply(const WakeAt& wake) { wakes.insert(wake.when); }
  void apply(const Announce& announce) {
    EXPECT_FALSE(announce.subject.empty());
    announced.push_back(announce);
  }
  void apply(const Remember& change) { remembered.apply(change.event); }

  void check() {
    std::map<std::string, scheduler::Resources> held;
    for (const auto& [id, node] : alive) {
      const auto of = core.jobs().find(id.actor.substr(0, id.actor.find('/')));
      if (outlived && (of == core.jobs().end() || !of->second.actors.contains(id.actor))) continue;
      const JobRecord& job = of->second;
      held[node] = held[node] + job.shape.per_rank.at(record(id.actor).role);
      EXPECT_FALSE(scheduler::is_final(job.status.state)) << "CC-4: " << id.actor;
    }
    for (const auto& [node, sum] : held)
      EXPECT_TRUE(scheduler::fits(sum, nodes.at(node).total)) << "CC-2: " << node;
    check_what_is_counted(core);
    check_lookups(core);
    check_what_is_remembered(core, remembered, cancelled, not_taken);
    for (const auto& [id, job] : core.jobs()) {
      EXPECT_FALSE(scheduler::message(job.status.reason, now).empty()) << "CC-3";
      // A job that is taken up with an outcome needs none.
      const bool open = trains(job.shape) && job.status.state != JobState::kQueued &&
                        !scheduler::is_final(job.status.state);
      EXPECT_EQ(exchanges.contains(id), open && !(outlived && job.outcome));
      for (const auto& [name, actor] : job.actors) check_reason(actor);
    }
  }
};

template <class M>
std::size_t count_told(const World& world, const std::string& job) {
  const auto it = world.told.find(job);
  if (it == world.told.end()) return 0;
  return static_cast<std::size_t>(std::count_if(
      it->second.begin(), it->second.end(),
      [](const TellExchange& tell) { return std::holds_alternative<M>(tell.message); }));
}

}  // namespace tandem::controller
