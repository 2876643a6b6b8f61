// The registry of roles: the parts that a job gets from the entries.
#include "actors/main/roles/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "actors/job/job_table.h"
#include "actors/main/job_shape.h"

namespace tandem::app {
namespace {

using messages::Role;

job::JobSpec training() {
  job::JobSpec job;
  job.name = "job";
  job.model.path = "/model";
  job.rollout.replicas = 3;
  job.learner.ranks = 2;
  job.pools.rollout.strategy = job::PoolStrategy::kSpread;
  job.pools.rollout.threads_per_actor = 5;
  return job;
}

TEST(Registry, HasAnEntryForEachRoleOfTrainingInTheOrderOfPlacement) {
  std::vector<Role> roles;
  for (const RoleEntry& entry : role_entries()) roles.push_back(entry.role);
  EXPECT_EQ(roles, std::vector<Role>(std::begin(messages::kTrainingRoles),
                                     std::end(messages::kTrainingRoles)));
  EXPECT_EQ(find_role(Role::kReward)->role, Role::kReward);
  EXPECT_EQ(find_role({"counter"}), nullptr);
  EXPECT_EQ(find_role(Role::kRollout)->demands(training()).threads, 5);
}

// Each role has keys of its own, one of them its replicas or ranks, and a section of `pools`.
TEST(Registry, EachRoleOfTrainingHasItsKeys) {
  for (const Role& role : messages::kTrainingRoles) {
    const auto count = [&](const std::string& section) {
      return std::ranges::count_if(job::job_keys(), [&](const job::Key& key) {
        return key.path.starts_with(section + ".");
      });
    };
    EXPECT_GT(count(name(role)), 0) << name(role);
    EXPECT_GT(count("pools." + name(role)), 0) << name(role);
  }
}

TEST(Registry, TheShapeOfAJobIsThatOfItsEntriesAndThenOfItsOwnRoles) {
  job::JobSpec job = training();
  job.actors["counter"] = {.command = {{"/bin/counter"}}, .replicas = 4, .memory_megabytes = 2};
  const controller::JobShape shape = job_shape(job);
  EXPECT_EQ(shape.roles,
            (std::vector<Role>{Role::kRollout, Role::kLearner, Role::kReward, Role{"counter"}}));
  EXPECT_EQ(shape.replicas.at(Role::kRollout), 3);
  EXPECT_FALSE(shape.replicas.contains(Role::kLearner)) << "one gang";
  EXPECT_EQ(shape.learner_ranks, 2);
  EXPECT_EQ(shape.strategy.at(Role::kRollout), scheduler::Strategy::kSpread);
  EXPECT_EQ(shape.replicas.at({"counter"}), 4);
  EXPECT_EQ(shape.per_rank.at({"counter"}).memory_bytes, 2 << 20);
  EXPECT_EQ(shape.programs.at({"counter"}).command.front(), "/bin/counter");
  EXPECT_TRUE(trains(shape));
  job.model.path.clear();
  const controller::JobShape alone = job_shape(job);
  EXPECT_EQ(alone.roles, std::vector<Role>{Role{"counter"}});
  EXPECT_FALSE(trains(alone));
}

}  // namespace
}  // namespace tandem::app
