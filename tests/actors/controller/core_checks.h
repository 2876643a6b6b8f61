// Checks of the controller's records by themselves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/controller/controller_core.h"
#include "actors/controller/room.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;

// Checks that the counts that the core keeps up to date equal those of counting anew.
inline void check_what_is_counted(const ControllerCore& core) {
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
          const scheduler::Resources& need = rank.need;
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

// LU-1: the lookups are what a search of all records finds.
inline void check_lookups(const ControllerCore& core) {
  std::map<std::string, std::set<std::string>> actors_on;
  std::set<std::pair<Time, std::string>> backoffs, ended;
  std::set<std::pair<std::int64_t, std::string>> wanting;
  std::set<std::pair<node::RankId, std::string>> unwanted;
  std::size_t ended_actors = 0;
  for (const auto& [id, job] : core.jobs()) {
    const bool over = scheduler::is_final(job.status.state);
    std::set<std::string> queued, lost;
    std::map<messages::Role, std::int32_t> living;
    for (const auto& [name, actor] : job.actors) {
      const ActorState state = actor.status.state;
      const bool waits = state == ActorState::kQueued || state == ActorState::kBackoff;
      if (state == ActorState::kQueued) queued.insert(name);
      if (state == ActorState::kBackoff) backoffs.emplace(*actor.restart_at, name);
      if (waits && std::holds_alternative<scheduler::NodeLost>(actor.status.reason))
        lost.insert(name);
      for (const RankRecord& rank : actor.ranks) {
        if (rank.alive) ++living[actor.role];
        if (!over && !rank.node.empty()) actors_on[rank.node].insert(name);
      }
    }
    EXPECT_EQ(job.line.queued, queued) << id;
    EXPECT_EQ(job.line.lost, lost) << id;
    EXPECT_TRUE(std::ranges::includes(queued, job.line.fresh)) << id;
    for (const auto& [role, count] : job.living) EXPECT_EQ(count, living[role]) << id;
    if (over) ended.emplace(job.status.since, id), ended_actors += job.actors.size();
    const bool stands = std::holds_alternative<scheduler::NodeLost>(job.status.reason);
    if (!over && !job.outcome &&
        (job.status.state == JobState::kQueued || !job.waiting.empty() || stands))
      wanting.emplace(job.submitted, id);
  }
  std::vector<scheduler::NodeCapacity> room;
  std::set<std::pair<Time, std::string>> down;
  for (const auto& [name, node] : core.nodes()) {
    for (const node::RankId& rank : node.unwanted) unwanted.emplace(rank, name);
    if (node.up)
      room.push_back(capacity_of(node));
    else
      down.emplace(node.since, name);
  }
  const Lookups& found = core.lookups();
  EXPECT_EQ(found.actors_on, actors_on);
  EXPECT_EQ(found.backoffs, backoffs);
  EXPECT_EQ(found.ended, ended);
  EXPECT_EQ(found.ended_actors, ended_actors);
  EXPECT_EQ(found.wanting, wanting);
  EXPECT_EQ(found.unwanted, unwanted);
  EXPECT_EQ(found.lost, down);
  const std::vector<scheduler::NodeCapacity> kept = found.room.all();
  ASSERT_EQ(kept.size(), room.size());
  for (std::size_t i = 0; i < room.size(); ++i) {
    EXPECT_EQ(kept[i].name, room[i].name);
    EXPECT_EQ(kept[i].free, room[i].free) << kept[i].name;
    EXPECT_EQ(kept[i].total, room[i].total) << kept[i].name;
    EXPECT_EQ(kept[i].gpus_free_milli, room[i].gpus_free_milli) << kept[i].name;
    EXPECT_EQ(kept[i].cordoned, room[i].cordoned) << kept[i].name;
    EXPECT_EQ(kept[i].gpus_cordoned, room[i].gpus_cordoned) << kept[i].name;
    EXPECT_EQ(kept[i].nccl.version, room[i].nccl.version) << kept[i].name;
  }
}
// CC-3.
inline void check_reason(const ActorRecord& actor) {
  static const std::map<ActorState, std::set<std::string>> kMay = {
      {ActorState::kQueued,
       {"Submitted", "WaitingForCapacity", "WaitingForJobs", "WaitingForNodes", "InfeasibleShape",
        "NodeLost", "NodeDrained", "Preempted", "FormerEnding", "WaitingForJournal"}},
      {ActorState::kStarting, {"WaitingForSpawn", "Returning"}},
      {ActorState::kInitializing,
       {"LoadingModel", "WaitingForGang", "WaitingForProgram", "StartingVerifier"}},
      {ActorState::kReady, {"Working", "AgentLost"}},
      {ActorState::kDraining, {"Draining"}},
      {ActorState::kBackoff, {"Backoff", "WaitingForDisk", "Preempted"}},
      {ActorState::kStopped, {"JobEnded", "ScaleDown", "CancelledByUser", "Finished"}},
      {ActorState::kFailed, {"RestartsExhausted", "JobFailed", "OOMKilled"}}};
  const auto may = kMay.find(actor.status.state);
  if (may == kMay.end()) return;
  EXPECT_TRUE(may->second.contains(scheduler::reason_name(actor.status.reason)))
      << "CC-3: " << actor.name << " is " << scheduler::name(actor.status.state) << " for "
      << scheduler::reason_name(actor.status.reason);
}
}  // namespace tandem::controller
