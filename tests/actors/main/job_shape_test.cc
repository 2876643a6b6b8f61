#include "actors/main/job_shape.h"

#include <gtest/gtest.h>

#include "actors/job/print_job.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::app {
namespace {

using messages::Role;

TEST(JobShape, CarriesTheJobAndTheTextThatIsParsedToTheSame) {
  const job::JobFolder folder;
  const job::JobSpec job = folder.full();
  const controller::JobShape shape = job_shape(job);
  EXPECT_EQ(shape.yaml, print_job(job));
  ASSERT_TRUE(shape.spec);
  EXPECT_EQ(print_job(*shape.spec), shape.yaml);
  const controller::JobShape copy = shape;
  EXPECT_EQ(copy.spec, shape.spec) << "all copies of a shape share one job";
  const auto parsed = job::parse_job_of_run(shape.yaml, "/nowhere");
  ASSERT_TRUE(parsed) << render(parsed.error());
  EXPECT_EQ(print_job(*parsed), shape.yaml);
}

TEST(JobShape, TheCatalogueReadsTheFactsAndTheKeysOfAJobFile) {
  const job::JobFolder folder;
  job::JobSpec job = folder.full();
  job.learner.total_training_steps = 7;
  const runs::JobReaders read = job_readers();
  const auto facts = read.facts(print_job(job), folder.root());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->name, "tiny");
  EXPECT_EQ(facts->total_steps, 7);
  EXPECT_TRUE(facts->trains);
  const auto keys = read.keys(print_job(job), folder.root());
  ASSERT_TRUE(keys) << render(keys.error());
  EXPECT_EQ(keys->size(), job::printed_keys(job).size());
  EXPECT_FALSE(read.facts("name: [", "/nowhere"));
  EXPECT_FALSE(read.keys("name: [", "/nowhere"));
}

TEST(JobShape, ASandboxedActorIsStartedByTheNodesOwnBinary) {
  job::JobSpec job;
  job.actors["open"] = {.command = {{"/bin/a"}}};
  job.actors["caged"] = {.command = {{"/bin/a"}},
                         .memory_megabytes = 2,
                         .env = {{"A", "secret"}},
                         .sandbox = sandbox::SandboxMode::kStrict,
                         .readable = {"/data"}};
  const auto programs = job_shape(job).programs;
  EXPECT_TRUE(programs.at(Role{"open"}).launcher.empty());
  const auto& launcher = programs.at(Role{"caged"}).launcher;
  ASSERT_EQ(launcher.size(), 2u);
  EXPECT_EQ(launcher[0], "cage");
  EXPECT_EQ(parse_json(launcher[1]), (nlohmann::json{{"mode", "strict"},
                                                     {"memory_bytes", 2 << 20},
                                                     {"readable", {"/data"}},
                                                     {"variables", {"A"}}}))
      << "values of variables are not for lists of processes";
}

}  // namespace
}  // namespace tandem::app
