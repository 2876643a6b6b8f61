// The keys pools.rollout.autoscale and preemptible.
//
// Tests actors/job/job_rules.h.
#include <gtest/gtest.h>

#include "actors/job/load_job.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

TEST(PoolKeys, AutoscaleHasLimitsThatHoldTheFirstNumber) {
  const JobFolder folder;
  const auto with = [&](const std::string& autoscale, const std::string& more = "") {
    return folder.parse(folder.minimal() + "pools: { rollout: { autoscale: " + autoscale +
                        " } }\n" + more);
  };
  const auto job = with("{ max: 8 }");
  ASSERT_TRUE(job) << render(job.error());
  ASSERT_TRUE(job->spec.pools.rollout.autoscale);
  EXPECT_EQ(job->spec.pools.rollout.autoscale->min, 1);
  EXPECT_EQ(job->spec.pools.rollout.autoscale->target_trainer_idle, 0.05);
  EXPECT_FALSE(folder.parse(folder.minimal())->spec.pools.rollout.autoscale);
  EXPECT_HAS(refused(with("{ min: 2 }")).message, "max");
  EXPECT_HAS(refused(with("{ min: 4, max: 2 }")).message, "less than `min`, 4");
  EXPECT_HAS(refused(with("{ min: 2, max: 4 }")).message, "`rollout.replicas` is 1");
  EXPECT_TRUE(with("{ min: 2, max: 4 }", "rollout: { replicas: 3 }\n"));
  for (const char* idle : {"0", "1", "-0.1"})
    EXPECT_FALSE(with("{ max: 4, target_trainer_idle: " + std::string(idle) + " }")) << idle;
}

TEST(PoolKeys, ALearnerIsNeverPreemptible) {
  const JobFolder folder;
  const auto of = [&](const std::string& role) {
    return folder.parse(folder.minimal() + "pools: { " + role + ": { preemptible: true } }\n");
  };
  EXPECT_TRUE(of("rollout"));
  EXPECT_HAS(refused(of("learner")).message, "a learner cannot be preemptible");
}

}  // namespace
}  // namespace tandem::job
