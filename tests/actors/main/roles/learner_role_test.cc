// The learner's role as a rank process builds it.
#include <gtest/gtest.h>

#include <filesystem>

#include "actors/job/load_job.h"
#include "actors/main/roles/rank_resources.h"
#include "actors/main/roles/registry.h"
#include "runtime/actor/simulated_executor.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::app {
namespace {

struct Unheard final : actor::Target<messages::RankEvents> {
  actor::Delivery post(messages::RankEvents) override { return actor::Delivery::kAccepted; }
};

// The controller died before it heard where rank 0 listens, and the next one starts the ranks: a
// gang that has not met ends, and is started again.
TEST(LearnerRole, ARankWhoseGangHasNoPlaceEndsInAWayThatIsWorthAnotherStart) {
  const auto job = job::load_job(
      std::filesystem::path(TANDEM_SOURCE_DIR) / "configs/arithmetic.yaml", {"learner.ranks=2"});
  ASSERT_TRUE(job) << render(job.error());
  actor::SimulatedExecutor executor{1};
  actor::System system{executor, nullptr};
  link::Directory directory;
  link::IoThread io;
  EngineDevice device;
  link::Progress progress;
  RankResources resources{.system = system,
                          .directory = directory,
                          .bulk_io = io,
                          .network = {},
                          .device = device,
                          .to_controller = {},
                          .progress = progress,
                          .sockets = {},
                          .bulk = {}};
  const messages::StartRank start{.job = "job-1",
                                  .actor = "job-1/learner/0",
                                  .role = messages::Role::kLearner,
                                  .incarnation = {7},
                                  .rank = 1,
                                  .ranks = 2,
                                  .run_dir = "/nowhere",
                                  .job_yaml = "",
                                  .bulk_endpoints = {},
                                  .gang_endpoint = "",
                                  .gang_secret = "",
                                  .resume = false};
  const actor::Ref<messages::RankEvents> controller({"controller", {}},
                                                    std::make_shared<Unheard>());
  const auto built =
      find_role(messages::Role::kLearner)->build(resources, start, job->spec, controller);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kUnreachable) << render(built.error());
  EXPECT_TRUE(scheduler::worth_another_start(built.error().code, false));
}

}  // namespace
}  // namespace tandem::app
