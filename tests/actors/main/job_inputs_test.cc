// Tests the decisions that a job's data make before the job starts.
#include "actors/main/job_inputs.h"

#include <gtest/gtest.h>

#include "actors/main/roles/role_config.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::app {
namespace {

// Ten prompts, of which the last two are long, for the model of the quickstart.
class JobInputs : public testing::Test {
 protected:
  JobInputs() {
    std::string lines;
    for (int i = 0; i < 10; ++i)
      lines += R"({"prompt": ")" + std::string(i < 8 ? "1+2" : "111111111111+222222222222") +
               R"(=", "answer": "3"})" + "\n";
    folder_.write("data/train.jsonl", lines);
  }
  job::LoadedJob job(const std::vector<std::string>& sets) const {
    auto loaded = folder_.parse(
        "name: tiny\nmodel: { path: " TANDEM_SOURCE_DIR
        "/configs/models/arithmetic, init: random }\n"
        "data: { train_files: [data/train.jsonl], max_prompt_length: 16, train_batch_size: 3 }\n",
        sets);
    EXPECT_TRUE(loaded) << render(loaded.error());
    return *loaded;
  }

  const job::JobFolder folder_;
};

TEST_F(JobInputs, EpochsBecomeSteps) {
  job::LoadedJob loaded = job({"data.total_epochs=2"});
  const auto checked = check_inputs(loaded);
  ASSERT_TRUE(checked) << render(checked.error());
  EXPECT_EQ(loaded.spec.learner.total_training_steps, 6) << "of 20 prompts";
  EXPECT_EQ(loaded.spec.data.total_epochs, std::nullopt);
  EXPECT_EQ(checked->warnings.back(),
            "2 epochs of 10 prompts, in batches of 3, are 6 steps (data.total_epochs)");

  job::LoadedJob none = job({"data.total_epochs=1", "data.train_batch_size=11"});
  const auto refused = check_inputs(none);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("are 0 steps"), std::string::npos);
  EXPECT_EQ(refused.error().where, "--set data.total_epochs=1");

  job::LoadedJob plain = job({});
  ASSERT_TRUE(check_inputs(plain));
  EXPECT_EQ(plain.spec.learner.total_training_steps, 1500);
}

TEST_F(JobInputs, PromptsThatAreTooLongAreToldOnceAndLeftOut) {
  job::LoadedJob loaded = job({"data.filter_overlong_prompts=true", "data.total_epochs=3"});
  const auto checked = check_inputs(loaded);
  ASSERT_TRUE(checked) << render(checked.error());
  ASSERT_GE(checked->warnings.size(), 2u);
  EXPECT_EQ(checked->warnings[checked->warnings.size() - 2],
            "2 of the 10 prompts of data.train_files are longer than data.max_prompt_length, 16 "
            "tokens, and are left out");
  EXPECT_EQ(loaded.spec.learner.total_training_steps, 8) << "of 24 prompts";
  const auto config = exchange_config(loaded.spec, {"job", "run"}, false);
  ASSERT_TRUE(config) << render(config.error());
  EXPECT_EQ(config->train.size(), 8u);

  job::LoadedJob all = job({});
  ASSERT_TRUE(check_inputs(all));
  EXPECT_EQ(exchange_config(all.spec, {"job", "run"}, false)->train.size(), 10u);
}

}  // namespace
}  // namespace tandem::app
