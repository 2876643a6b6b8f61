// The words that completion offers, with a controller that this test plays and without one.
#include "actors/cli/complete_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/cli/fake_controller.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

TEST(Completion, OffersWhatThereIs) {
  FakeController controller;
  const auto words = [&](const char* names) {
    std::string all;
    for (const std::string& word : completion_words(names, controller.address())) all += word + " ";
    return all;
  };
  EXPECT_EQ(words("jobs"), "a-1 a-2 ");
  EXPECT_EQ(words("live"), "a-2 ") << "a-1 has ended, and `cancel` is of no use to it";
  EXPECT_EQ(words("records"), "a-1 a-2 old-1 ");
  EXPECT_EQ(words("runs/"), "runs/a-2 runs/old-1 ");
  EXPECT_EQ(words("targets"), "a-1 a-1/rollout/0 a-2 a-2/learner/0 a-2/rollout/0 old-1 ");
  EXPECT_NE(words("objects").find("actors/a-2/learner/0 "), std::string::npos);
  EXPECT_NE(words("sets").find("rollout.n= "), std::string::npos);
  EXPECT_NE(words("keys").find("async "), std::string::npos);
  EXPECT_EQ(words("nonsense"), "");
  controller.set_jobs(
      json::array({job_json("$(reboot)-1", "Running"), job_json("b-1", "Running")}));
  EXPECT_EQ(words("jobs"), "b-1 ") << "a shell would carry the other one out";
}

TEST(Completion, OffersTheActorsOfPastRuns) {
  FakeController controller;
  const job::JobFolder folder;
  folder.write("logs/learner.0.1.log", "");
  controller.set_runs(json::array({{{"id", "past-1"}, {"run_dir", folder.root()}}}));
  for (const auto& [names, word] :
       {std::pair("logs", "past-1/learner/0"), std::pair("known_actors", "past-1/learner/0"),
        std::pair("objects", "actors/past-1/learner/0")})
    EXPECT_EQ(std::ranges::count(completion_words(names, controller.address()), word), 1) << names;
}

TEST(Completion, IsSilentWithoutAController) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  const Outcome none = run({"__complete", "jobs"});
  EXPECT_TRUE(none.ok);
  EXPECT_EQ(none.out + none.err, "");
  EXPECT_NE(run({"__complete", "sets"}).out.find("seed=\n"), std::string::npos);
}

TEST(Completion, OffersActorsAndCheckpointsOfRunsWithoutAController) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  for (const char* const file : {"logs/learner.0.1.log", "logs/learner.0.2.log",
                                 "logs/rollout.0.1.log", "checkpoints/step-5/config.json",
                                 "checkpoints/step-12/config.json", "checkpoints/best/config.json"})
    folder.write("runs/past-1/" + std::string(file), "");
  folder.write("runs/.deleted/past-0/note", "");
  const std::string run_dir = folder.root() / "runs/past-1";
  const std::pair<const char*, std::string> kWords[] = {
      {"records", "past-1\n"},
      {"targets", "past-1\n"},
      {"runs", "past-1\n"},
      {"logs", "past-1\npast-1/learner/0\npast-1/rollout/0\n"},
      {"known_actors", "past-1/learner/0\npast-1/rollout/0\n"},
      {"objects", "actors/past-1/learner/0\nactors/past-1/rollout/0\nruns/past-1\n"},
      {"models", run_dir + "/checkpoints/best\n" + run_dir + "/checkpoints/step-12\n"},
      {"live", ""},
      {"jobs", ""},
      {"actors", ""}};
  for (const auto& [names, words] : kWords)
    EXPECT_EQ(run({"__complete", names}).out, words) << names;
}

TEST(Completion, OffersRunsWithoutAController) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  folder.write("runs/tiny-1/job.yaml", "");
  folder.write("runs/.deleted/tiny-0/x", "");
  EXPECT_EQ(run({"__complete", "records"}).out, "tiny-1\n");
  EXPECT_EQ(run({"__complete", "runs/"}).out, "runs/tiny-1\n");
  EXPECT_EQ(run({"__complete", "live"}).out, "");
}

}  // namespace
}  // namespace tandem::cli
