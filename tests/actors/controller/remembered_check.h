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
  }
  for (const auto& [id, why] : not_taken) living.insert(id);
  for (const JobTaken& job : reader.jobs()) remembered.insert(job.job);
  EXPECT_EQ(remembered, living) << "CC-5";
  EXPECT_GE(reader.incarnation_last(), newest) << "CC-5";
  for (const auto& [name, node] : core.nodes())
    EXPECT_EQ(reader.nodes().contains(name), node.up) << "CC-5: " << name;
  for (const auto& [name, node] : core.nodes())
    EXPECT_EQ(reader.cordoned().contains(name), node.cordoned.has_value()) << "CC-5: " << name;
}

}  // namespace tandem::controller
