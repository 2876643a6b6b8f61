// Checks of the controller's records by themselves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "actors/controller/controller_core.h"

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
// CC-3.
inline void check_reason(const ActorRecord& actor) {
  static const std::map<ActorState, std::set<std::string>> kMay = {
      {ActorState::kQueued,
       {"Submitted", "WaitingForCapacity", "WaitingForJobs", "WaitingForNodes", "InfeasibleShape",
        "NodeLost", "NodeDrained", "FormerEnding", "WaitingForJournal"}},
      {ActorState::kStarting, {"WaitingForSpawn", "Returning"}},
      {ActorState::kInitializing,
       {"LoadingModel", "WaitingForGang", "WaitingForProgram", "StartingVerifier"}},
      {ActorState::kReady, {"Working", "AgentLost"}},
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
}  // namespace tandem::controller
