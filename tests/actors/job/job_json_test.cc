// A job as trackers take it: what it has to say to them, and its configuration as JSON.
//
// Tests actors/job/job_json.h, actors/job/load_job.h.
#include "actors/job/job_json.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

TEST(LoadJob, TrackersAndLabels) {
  const JobFolder folder;
  const auto with = [&folder](const std::vector<std::string>& sets) {
    return folder.parse(folder.minimal(), sets);
  };
  EXPECT_TRUE(with({})->spec.tensorboard);
  EXPECT_TRUE(has_tracker(with({})->spec, TrackerName::kTensorboard)) << "the default";
  const JobSpec both = with({"trackers=[tensorboard, wandb]"})->spec;
  EXPECT_TRUE(both.tensorboard && has_tracker(both, TrackerName::kWandb));
  const JobSpec without = with({"trackers=[tensorboard, wandb]", "tensorboard=false"})->spec;
  EXPECT_EQ(without.trackers, std::vector<std::string>{"wandb"});
  EXPECT_FALSE(with({"trackers=[]"})->spec.tensorboard);
  for (const JobSpec& job : {both, without, with({"trackers=[]"})->spec}) {
    const auto again = folder.parse(print_job(job), {});
    EXPECT_EQ(again->spec.trackers, job.trackers);
    EXPECT_EQ(again->spec.tensorboard, job.tensorboard);
  }
  EXPECT_HAS(refused(with({"trackers=[mlflow]"})).message, "`mlflow` is no tracker");
  EXPECT_HAS(refused(with({"trackers=[mlflow]"})).help, "tensorboard, wandb");
  for (const char* wrong : {"tracking.group='a,b'", "tracking.tags=['']",
                            "tracking.run_name=\"a\\nb\"", "tracking.project=\"\""})
    EXPECT_HAS(refused(with({wrong})).help, "without commas") << wrong;
}

TEST(JobJson, HasEveryKeyAndNoValueOfAnEnvironment) {
  const JobFolder folder;
  const auto job =
      folder.parse(folder.minimal(),
                   {"reward.type=command", "reward.command=[cat]", "reward.env={API_KEY: secret}",
                    "rollout.stop=null", "tracking.notes=\"a\\nb\""});
  ASSERT_TRUE(job) << render(job.error());
  const nlohmann::json all = job_json(job->spec);
  EXPECT_EQ(all["learner"]["optimizer"]["lr"], job->spec.learner.optimizer.lr);
  EXPECT_EQ(all["data"]["train_files"].size(), 1U);
  EXPECT_EQ(all["model"]["init"], "pretrained");
  EXPECT_EQ(all["tracking"]["notes"], "a\nb");
  EXPECT_EQ(all["reward"]["env"], nlohmann::json({"API_KEY"}));
  EXPECT_EQ(dump_json(all).find("secret"), std::string::npos);
  EXPECT_FALSE(all.contains("warm_start")) << "the section is left out";
  for (const PrintedKey& key : printed_keys(job->spec)) {
    const nlohmann::json* at = &all;
    for (std::size_t begin = 0; begin <= key.path.size();) {
      const std::size_t end = std::min(key.path.find('.', begin), key.path.size());
      ASSERT_TRUE(at->contains(key.path.substr(begin, end - begin))) << key.path;
      at = &(*at)[key.path.substr(begin, end - begin)];
      begin = end + 1;
    }
  }
}

}  // namespace
}  // namespace tandem::job
