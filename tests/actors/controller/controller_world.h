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
#include "tests/actors/controller/job_shapes.h"
#include "tests/actors/controller/remembered_check.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;

class World {
 public:
  // `restored`: what the controller before this one remembered.
  explicit World(std::uint64_t seed = 1, const DurableState& restored = {})
      : core(seed, restored), remembered(restored) {}

  Result<void> take(const ControllerEvent& event) {
    auto effects = core.step(event, now);
    if (!effects) return effects.error();
    if (const auto* cancel = std::get_if<CancelJob>(&event)) cancelled.insert(cancel->job);
    if (const auto* submit = std::get_if<SubmitJob>(&event)) cancelled.erase(submit->id);
    if (const auto* taken = std::get_if<TakeUpJobs>(&event)) not_taken = taken->left;
    if (const auto* cancel = std::get_if<CancelJob>(&event)) not_taken.erase(cancel->job);
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
    for (const auto& [id, node] : std::map(alive))
      if (id.actor == actor) die(id);
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
  std::set<node::RankId> told_to_end;
  std::vector<messages::StartRank> started;
  std::vector<messages::StartActor> programs_started;
  std::set<node::RankId> told_to_drain;
  std::vector<FailAsks> asks_failed;
  std::set<std::string> results;                          // jobs whose result.json was written
  std::map<std::string, std::vector<TellExchange>> told;  // by job
  std::set<std::string> exchanges;
  std::vector<Announce> announced;
  std::multiset<Time> wakes;
  std::vector<RefuseNode> nodes_refused;
  DurableState remembered;                       // as a reader of the journal has it
  std::map<std::string, std::string> not_taken;  // jobs that could not be taken up, and why
  std::set<std::string> cancelled;               // jobs that were cancelled and may not have ended
  std::uint64_t node_lives = 0;
  int submitted = 0;

 private:
  void apply(const SpawnRankOn& spawn) {
    for (const auto& [id, node] : alive)
      EXPECT_FALSE(id.actor == spawn.id.actor && id.incarnation != spawn.id.incarnation)
          << "CC-1: " << id.actor;
    EXPECT_TRUE(alive.emplace(spawn.id, spawn.node).second);
    EXPECT_FALSE(core.nodes().at(spawn.node).cordoned) << "PL-5: " << spawn.id.actor;
    gpus[spawn.id.actor] = spawn.gpus;
  }
  void apply(const KillRankOn& kill) { told_to_end.insert(kill.id); }
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
      const JobRecord& job = core.jobs().at(id.actor.substr(0, id.actor.find('/')));
      held[node] = held[node] + job.shape.per_rank.at(record(id.actor).role);
      EXPECT_FALSE(scheduler::is_final(job.status.state)) << "CC-4: " << id.actor;
    }
    for (const auto& [node, sum] : held)
      EXPECT_TRUE(scheduler::fits(sum, nodes.at(node).total)) << "CC-2: " << node;
    check_what_is_kept();
    check_what_is_remembered(core, remembered, cancelled, not_taken);
    for (const auto& [id, job] : core.jobs()) {
      EXPECT_FALSE(scheduler::message(job.status.reason, now).empty()) << "CC-3";
      EXPECT_EQ(exchanges.contains(id), trains(job.shape) &&
                                            job.status.state != JobState::kQueued &&
                                            !scheduler::is_final(job.status.state));
      for (const auto& [name, actor] : job.actors) check_reason(actor);
    }
  }
  // Checks that the counts that the core keeps up to date equal those of counting anew.
  void check_what_is_kept() const {
    std::map<std::string, scheduler::Resources> leased;
    std::map<std::pair<std::string, std::int32_t>, std::int64_t> gpus_held;
    for (const auto& [id, job] : core.jobs()) {
      std::set<std::string> waiting;
      std::int32_t ready = 0, stopped = 0;
      for (const auto& [name, actor] : job.actors) {
        const ActorState state = actor.status.state;
        if (state == ActorState::kQueued || state == ActorState::kBackoff) waiting.insert(name);
        ready += state == ActorState::kReady ? 1 : 0;
        stopped += state == ActorState::kStopped ? 1 : 0;
        for (const RankRecord& rank : actor.ranks)
          if (rank.alive) {
            const scheduler::Resources& need = job.shape.per_rank.at(actor.role);
            leased[rank.node] = leased[rank.node] + need;
            for (const std::int32_t gpu : rank.gpus)
              gpus_held[{rank.node, gpu}] += std::min(need.gpu_milli, scheduler::kWholeGpu);
          }
      }
      EXPECT_EQ(job.waiting, waiting) << id;
      EXPECT_EQ(std::pair(job.ready, job.stopped), std::pair(ready, stopped)) << id;
    }
    for (const auto& [name, node] : core.nodes()) {
      EXPECT_EQ(node.leased, leased[name]) << name;
      for (std::size_t i = 0; i < node.gpus.size(); ++i)
        EXPECT_EQ(node.gpus[i].free_milli,
                  scheduler::kWholeGpu - gpus_held[std::pair(name, static_cast<std::int32_t>(i))]);
    }
  }
  void check_reason(const ActorRecord& actor) const {
    static const std::map<ActorState, std::set<std::string>> kMay = {
        {ActorState::kQueued,
         {"Submitted", "WaitingForCapacity", "WaitingForJobs", "WaitingForNodes", "InfeasibleShape",
          "NodeLost", "NodeDrained"}},
        {ActorState::kStarting, {"WaitingForSpawn"}},
        {ActorState::kInitializing,
         {"LoadingModel", "WaitingForGang", "WaitingForProgram", "StartingVerifier"}},
        {ActorState::kReady, {"Working"}},
        {ActorState::kDraining, {"Draining"}},
        {ActorState::kBackoff, {"Backoff"}},
        {ActorState::kStopped, {"JobEnded", "ScaleDown", "CancelledByUser", "Finished"}},
        {ActorState::kFailed, {"RestartsExhausted", "JobFailed", "OOMKilled"}}};
    const auto may = kMay.find(actor.status.state);
    if (may == kMay.end()) return;
    EXPECT_TRUE(may->second.contains(scheduler::reason_name(actor.status.reason)))
        << "CC-3: " << actor.name << " is " << scheduler::name(actor.status.state) << " for "
        << scheduler::reason_name(actor.status.reason);
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
