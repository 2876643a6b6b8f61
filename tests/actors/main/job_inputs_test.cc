// Tests the decisions that a job's data make before the job starts.
#include "actors/main/job_inputs.h"

#include <gtest/gtest.h>

#include <set>

#include "actors/main/roles/job_prompts.h"
#include "tests/actors/job/job_folder.h"
#include "tests/actors/main/exchange_config_of.h"

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

  // The prompts that check_inputs() keeps are those that read_prompts() finds in the files.
  void expect_kept_as_read(const std::vector<std::string>& sets) const {
    job::LoadedJob loaded = job(sets);
    auto checked = check_inputs(loaded);
    ASSERT_TRUE(checked) << render(checked.error());
    ASSERT_TRUE(checked->prompts);
    auto read = read_prompts(loaded.spec);
    ASSERT_TRUE(read) << render(read.error());
    TrainingPrompts &kept = checked->prompts->training, &training = read->training;
    ASSERT_EQ(kept.records.size(), training.records.size());
    for (std::size_t i = 0; i < kept.records.size(); ++i) {
      EXPECT_EQ(kept.records[i].prompt, training.records[i].prompt);
      EXPECT_EQ(kept.records[i].data, training.records[i].data);
    }
    for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(kept.order.at(i), training.order.at(i));
    const std::vector<job::Record>& validation = checked->prompts->validation;
    ASSERT_EQ(validation.size(), read->validation.size());
    for (std::size_t i = 0; i < validation.size(); ++i) {
      EXPECT_EQ(validation[i].prompt, read->validation[i].prompt);
      EXPECT_EQ(validation[i].json, read->validation[i].json);
    }
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

  job::LoadedJob counted = job({"data.total_epochs=2"});
  const auto dropped = check_inputs(counted, {}, KeepPrompts::kNo);
  ASSERT_TRUE(dropped) << render(dropped.error());
  EXPECT_FALSE(dropped->prompts);
  EXPECT_EQ(counted.spec.learner.total_training_steps, 6);
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
  const auto config = exchange_config_of(loaded.spec);
  ASSERT_TRUE(config) << render(config.error());
  EXPECT_EQ(config->train.size(), 8u);

  job::LoadedJob all = job({});
  ASSERT_TRUE(check_inputs(all));
  EXPECT_EQ(exchange_config_of(all.spec)->train.size(), 10u);
}

TEST_F(JobInputs, TheExchangeGetsWhatItWouldRead) {
  const std::string held_out = "data.val_files=[train.jsonl]";
  expect_kept_as_read({});
  expect_kept_as_read({held_out, "data.shuffle=false"});
  expect_kept_as_read({held_out, "data.filter_overlong_prompts=true"});
  expect_kept_as_read({held_out, "data.max_samples=5", "data.max_val_samples=3"});
}

// Prompts "0+0=", "1+0=", … of two data sets, two of `gsm8k` for one of `math`.
class MixedInputs : public JobInputs {
 protected:
  MixedInputs() {
    std::string lines;
    for (int i = 0; i < 30; ++i)
      lines += R"({"prompt": ")" + std::to_string(i) + R"(+0=", "answer": "0", "level": 1, )" +
               R"("data_source": ")" + (i % 3 == 0 ? "math" : "gsm8k") + "\"}\n";
    folder_.write("data/train.jsonl", lines);
  }
  Error refused(const std::vector<std::string>& sets) const {
    job::LoadedJob loaded = job(sets);
    const auto checked = check_inputs(loaded);
    EXPECT_FALSE(checked) << sets.front();
    return checked ? Error{} : checked.error();
  }
  // The first prompts of training, as the exchange asks for them.
  std::vector<std::string> prompts(const std::vector<std::string>& sets, int count) const {
    expect_kept_as_read(sets);
    const auto config = exchange_config_of(job(sets).spec);
    EXPECT_TRUE(config) << render(config.error());
    std::vector<std::string> visited;
    for (int i = 0; config && i < count; ++i)
      visited.push_back(config->train[config->prompt_at(i)].prompt);
    return visited;
  }
};

TEST_F(MixedInputs, WithoutWeightsTheOrderIsThatOfTheEpochs) {
  const auto visited = prompts({"seed=5"}, 60);
  const std::uint64_t seed = derive_seed(5, "data");
  for (std::uint32_t i = 0; i < 60; ++i)
    EXPECT_EQ(visited[i], std::to_string(job::epoch_order(seed, i / 30, 30, true)[i % 30]) + "+0=");
}

TEST_F(MixedInputs, BatchesHaveTheSharesOfTheWeights) {
  const std::string weights = "data.mixture={math: 3, gsm8k: 1}";
  const auto visited = prompts({weights}, 400);
  EXPECT_EQ(visited, prompts({weights}, 400));
  for (std::size_t batch = 0; batch < 400; batch += 20) {
    int math = 0;
    for (std::size_t i = batch; i < batch + 20; ++i) math += std::stoi(visited[i]) % 3 == 0;
    EXPECT_EQ(math, 15) << "in the batch from " << batch;
  }
  const auto math_alone = prompts({"data.mixture={math: 1, gsm8k: 0}"}, 30);
  EXPECT_EQ(std::set(math_alone.begin(), math_alone.end()).size(), 10u);
  // A data set without a name in its lines has that of its file.
  folder_.write("data/code.v2.jsonl", R"({"prompt": "7+7=", "answer": "14"})");
  const auto with_file = prompts({"data.train_files=[code.v2.jsonl, train.jsonl]",
                                  "data.mixture={math: 0, gsm8k: 1, code: 1}"},
                                 40);
  EXPECT_EQ(std::ranges::count(with_file, "7+7="), 20);
}

TEST_F(MixedInputs, WeightsFitTheDataSets) {
  const Error without = refused({"data.mixture={math: 1}"});
  EXPECT_NE(without.message.find("the data set `gsm8k` has no weight"), std::string::npos);
  EXPECT_TRUE(without.where.ends_with("train.jsonl:2")) << without.where;
  const std::string too_many = "data.mixture={math: 1, gsm8k: 1, code: 1}";
  EXPECT_NE(refused({too_many}).message.find("has a weight for `code`"), std::string::npos);
  EXPECT_EQ(refused({too_many}).where, "--set " + too_many);
  EXPECT_NE(refused({"data.mixture={math: 1}", "data.data_source_key=none"})
                .message.find("the data set `train` has no weight in `data.mixture`; the line has "
                              "no data source"),
            std::string::npos);
  EXPECT_NE(
      refused({"data.extra_keys=[level, difficulty]"}).message.find("no record has `difficulty`"),
      std::string::npos);
}

TEST_F(MixedInputs, SomeSamplesAreDrawnBeforeAllElse) {
  const auto drawn = prompts({"data.max_samples=7"}, 14);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 7u);
  EXPECT_EQ(drawn, prompts({"data.max_samples=7"}, 14));
  EXPECT_NE(drawn, prompts({"data.max_samples=7", "seed=99"}, 14));
  EXPECT_EQ(prompts({"data.max_samples=3", "data.shuffle=false"}, 4),
            (std::vector<std::string>{"0+0=", "1+0=", "2+0=", "0+0="}));
  const auto held_out = read_validation_prompts(
      job({"data.val_files=[train.jsonl]", "data.max_val_samples=4", "data.shuffle=false"}).spec);
  ASSERT_TRUE(held_out) << render(held_out.error());
  ASSERT_EQ(held_out->size(), 4u);
  EXPECT_EQ(held_out->back().prompt, "3+0=");
  EXPECT_EQ(
      read_validation_prompts(job({"data.val_files=[train.jsonl]", "data.max_val_samples=40"}).spec)
          ->size(),
      30u);
}

TEST_F(MixedInputs, AnEpochCountsWhatTrainingVisits) {
  const auto steps = [&](std::vector<std::string> sets) {
    sets.push_back("data.total_epochs=3");
    job::LoadedJob loaded = job(sets);
    const auto checked = check_inputs(loaded);
    EXPECT_TRUE(checked) << render(checked.error());
    return loaded.spec.learner.total_training_steps;
  };
  EXPECT_EQ(steps({}), 30);
  EXPECT_EQ(steps({"data.max_samples=10"}), 10);
  EXPECT_EQ(steps({"data.mixture={math: 5, gsm8k: 1}"}), 30);
  EXPECT_EQ(steps({"data.mixture={math: 5, gsm8k: 0}"}), 10);
  // "10+0=" and so on have one token more than "9+0=".
  EXPECT_EQ(steps({"data.max_prompt_length=4", "data.filter_overlong_prompts=true"}), 10);
  EXPECT_EQ(steps({"data.max_prompt_length=4", "data.filter_overlong_prompts=true",
                   "data.mixture={math: 1, gsm8k: 0}"}),
            4);
}

TEST_F(MixedInputs, ALongPromptMayRefuseTheJobOrBeCut) {
  const Error refusal = refused({"data.max_prompt_length=4", "data.truncation=error"});
  EXPECT_EQ(refusal.message,
            "the prompt has 5 tokens, more than `data.max_prompt_length: 4` (`data.truncation: "
            "error`)");
  EXPECT_TRUE(refusal.where.ends_with("train.jsonl:11")) << refusal.where;
  EXPECT_NE(refused({"data.max_prompt_length=1"}).message.find("no prompt of `data.train_files`"),
            std::string::npos);
  job::LoadedJob cut = job({"data.max_prompt_length=1", "data.truncation=left"});
  const auto checked = check_inputs(cut);
  EXPECT_TRUE(checked) << render(checked.error());
  EXPECT_EQ(engine_config(cut.spec, 1 << 30).truncation, rollout::Truncation::kLeft);
  job::LoadedJob filtered = job(
      {"data.max_prompt_length=4", "data.truncation=error", "data.filter_overlong_prompts=true"});
  EXPECT_TRUE(check_inputs(filtered)) << "no long prompt is left";
}

}  // namespace
}  // namespace tandem::app
