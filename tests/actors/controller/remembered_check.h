// CC-5: what a reader of the controller's events has is what the living controller knows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "actors/controller/controller_core.h"

namespace tandem::controller {

// The actor is of the controller before, and remembered until the job starts anew.
inline bool is_former(const JobRecord& job, const std::string& actor) {
  return std::ranges::any_of(job.former, [&](const ActorEnded& one) { return one.actor == actor; });
}

// Each actor that runs or has finished, and where.
inline void check_actors_remembered(const JobRecord& job, const DurableState& reader) {
  for (const auto& [name, actor] : job.actors) {
    const auto known = reader.actors().find(name);
    const bool finished = std::holds_alternative<scheduler::Finished>(actor.status.reason) &&
                          actor.status.state == scheduler::ActorState::kStopped;
    if (is_former(job, name) && !alive(actor)) continue;
    ASSERT_EQ(known != reader.actors().end(), alive(actor) || finished) << "CC-5: " << name;
    if (known == reader.actors().end()) continue;
    EXPECT_EQ(known->second.finished, finished) << "CC-5: " << name;
    const bool draining = actor.status.state == scheduler::ActorState::kDraining;
    const bool leaves = alive(actor) && program_of(job.shape, actor.role) && !job.outcome &&
                        (draining || actor.status.state == scheduler::ActorState::kStopping);
    EXPECT_TRUE(!leaves || known->second.leaves) << "CC-5: " << name;
    if (known->second.leaves) {
      EXPECT_TRUE(draining || actor.ending) << "CC-5: " << name;
      EXPECT_EQ(known->second.leaves->node, actor.moved_off) << "CC-5: " << name;
    }
    EXPECT_EQ(known->second.started.incarnation, actor.incarnation) << "CC-5: " << name;
    for (std::size_t r = 0; r < actor.ranks.size(); ++r) {
      EXPECT_EQ(known->second.started.ranks[r].node, actor.ranks[r].node) << "CC-5: " << name;
      EXPECT_EQ(known->second.started.ranks[r].gpus, actor.ranks[r].gpu_uuids) << "CC-5: " << name;
    }
  }
  for (const auto& [name, actor] : reader.actors_of(job.id))
    EXPECT_TRUE(job.actors.contains(name) || is_former(job, name)) << "CC-5: " << name;
}

// `left`: jobs that their users cancelled, which may be living still. `not_taken`: those that could
// not be taken up, and stay remembered.
inline void check_what_is_remembered(const ControllerCore& core, const DurableState& reader,
                                     const std::set<std::string>& left,
                                     const std::map<std::string, std::string>& not_taken) {
  EXPECT_EQ(reader, core.durable()) << "CC-5";
  std::set<std::string> living, remembered;
  std::uint64_t newest = 0;
  for (const auto& [id, job] : core.jobs()) {
    for (const auto& [name, actor] : job.actors) newest = std::max(newest, actor.incarnation.value);
    if (scheduler::is_final(job.status.state) || left.contains(id)) continue;
    living.insert(id);
    const JobTaken* const known = reader.job(id);
    ASSERT_TRUE(known) << "CC-5: " << id;
    EXPECT_EQ(known->run_dir, job.run_dir);
    EXPECT_EQ(known->yaml, job.shape.yaml);
    for (const auto& [role, replicas] : job.desired)
      EXPECT_EQ(known->wanted.at(name(role)), replicas) << "CC-5: " << id;
    check_actors_remembered(job, reader);
  }
  for (const auto& [id, why] : not_taken) living.insert(id);
  for (const JobTaken& job : reader.jobs()) remembered.insert(job.job);
  EXPECT_EQ(remembered, living) << "CC-5";
  EXPECT_GE(reader.incarnation_last(), newest) << "CC-5";
  for (const auto& [name, node] : core.nodes()) {
    if (node.incarnation == Incarnation{}) continue;  // it has not come back to this controller
    EXPECT_EQ(reader.nodes().contains(name), node.up || node.silent) << "CC-5: " << name;
  }
  for (const auto& [name, node] : core.nodes())
    for (const GpuRecord& gpu : node.gpus) {
      const auto marks = reader.cordoned_gpus().find(name);
      const bool marked =
          marks != reader.cordoned_gpus().end() && marks->second.contains(gpu.device.uuid);
      EXPECT_TRUE(gpu.gone || marked == gpu.cordoned.has_value()) << "CC-5: " << name;
    }
  for (const auto& [name, node] : core.nodes())
    EXPECT_EQ(reader.cordoned().contains(name), node.cordoned.has_value()) << "CC-5: " << name;
}

}  // namespace tandem::controller
