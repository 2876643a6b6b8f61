// Tests the configuration that a role gets from a job beyond copies of the job's fields.
#include "actors/main/roles/role_config.h"

#include <gtest/gtest.h>

#include "actors/exchange/samples.h"
#include "actors/learner/warm_start.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

// Llama 3's tokens, of which the first eos_token_id ends a text and another one a turn.
constexpr std::int32_t kEndOfText = 200, kEndOfTurn = 201;

model::Tokenizer llama_tokenizer() {
  std::string printable;
  for (char c = ' '; c < 127; ++c) printable += c;
  nlohmann::json document = parse_json(model::testing::character_tokenizer(printable));
  document["model"]["vocab"]["\u010a"] = 150;  // a new line
  std::int32_t id = kEndOfText;
  for (const char* content : {"<|end_of_text|>", "<|eot_id|>", "<|begin_of_text|>",
                              "<|start_header_id|>", "<|end_header_id|>"})
    document["added_tokens"].push_back({{"id", id++}, {"content", content}, {"special", true}});
  auto tokenizer = model::Tokenizer::parse(document.dump(), "tokenizer.json");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *std::move(tokenizer);
}

TEST(WarmStartRecords, EndWithTheEndOfATurnWhereATemplateMadeThePrompt) {
  const job::JobFolder folder;
  folder.write("data/warm.jsonl",
               R"({"messages": [{"role": "user", "content": "1+2="}], "completion": "3"}
{"prompt": "1+2=", "completion": "3"}
)");
  job::JobSpec job = folder.full();
  job.data.chat_template = model::ChatTemplate::kLlama3;
  job.data.max_prompt_length = 200;
  model::ModelConfig model = model::testing::tiny_config(model::Family::kLlama);
  model.eos_token_ids = {kEndOfText, kEndOfTurn};
  const auto last_tokens = [&] {
    const auto records = warm_start_records(job, model, llama_tokenizer());
    EXPECT_TRUE(records) << render(records.error());
    std::vector<std::int32_t> last;
    for (const learner::WarmStartRecord& record : *records)
      last.push_back(record.completion.back());
    return last;
  };
  EXPECT_EQ(last_tokens(), (std::vector<std::int32_t>{kEndOfTurn, kEndOfText}));
  model.eos_token_ids = {kEndOfText};  // the model would not stop at the other
  EXPECT_EQ(last_tokens(), (std::vector<std::int32_t>{kEndOfText, kEndOfText}));
}

TEST(TrainerConfig, HasTheWarmStartsOptimizer) {
  const job::JobFolder folder;
  const auto job = folder.parse(folder.minimal() +
                                "warm_start: { train_files: [data/warm.jsonl], betas: [0.8, 0.9], "
                                "weight_decay: 0.5, grad_clip: 2.0, lr_warmup_steps: 7 }\n");
  ASSERT_TRUE(job) << render(job.error());
  const learner::TrainerConfig config = trainer_config(job->spec, {"job", "run"}, false);
  ASSERT_TRUE(config.warm_start);
  const learner::OptimizerConfig optimizer = learner::warm_start_optimizer(*config.warm_start);
  EXPECT_EQ(optimizer.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(optimizer.weight_decay, 0.5);
  EXPECT_EQ(optimizer.grad_clip, 2);
  EXPECT_EQ(optimizer.lr_warmup_steps, 7);
  EXPECT_EQ(config.observe_fraction, 0.1);
}

TEST(ExchangeConfig, APromptsOwnWordsAreKnownOfAChatFile) {
  const job::JobFolder folder;
  const std::string chat =
      R"({"messages": [{"role": "system", "content": "Be brief."}, )"
      R"({"role": "user", "content": "1+2="}, {"role": "assistant", "content": "hm"}, )"
      R"({"role": "user", "content": "Go on."}], "answer": "3"})";
  folder.write("data/train.jsonl", chat + "\n" + R"({"prompt": "2+2=", "answer": "4"})" + "\n");
  job::JobSpec job = folder.full();
  job.data.chat_template = model::ChatTemplate::kLlama3;
  const auto config = exchange_config(job, {"job", "run"}, false);
  ASSERT_TRUE(config) << render(config.error());
  const auto line_of = [&](std::size_t index) {
    nlohmann::json line;
    exchange::add_record_fields(line, config->train[index].data, config->record_keys);
    return line;
  };
  EXPECT_EQ(line_of(0)["user"], "Go on.") << "the last message of the user";
  EXPECT_EQ(line_of(0)["answer"], "3");
  EXPECT_NE(config->train[0].prompt.find("<|start_header_id|>"), std::string::npos);
  EXPECT_FALSE(line_of(1).contains("user")) << "a prompt that is a text is its own words";
}

TEST(ExchangeConfig, HasTheJobsSamplesAndWhatAFailureIsWorth) {
  const job::JobFolder folder;
  const auto job = folder.parse(folder.minimal() +
                                "samples: { per_step: 40, evaluation: all }\n"
                                "reward: { on_failure: -0.5 }\n");
  ASSERT_TRUE(job) << render(job.error());
  const auto config = exchange_config(job->spec, {"job", "run"}, false);
  ASSERT_TRUE(config) << render(config.error());
  EXPECT_EQ(config->samples.per_step, 40);
  EXPECT_EQ(config->samples.evaluation, std::nullopt);
  EXPECT_EQ(config->on_failure, -0.5);
  EXPECT_EQ(config->evaluation.failure_reward, -0.5);
  const auto plain = folder.parse(folder.minimal());
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->spec.reward.on_failure, std::nullopt) << "discard";
  EXPECT_EQ(plain->spec.samples.evaluation, 160);
}

TEST(ExchangeConfig, AnAnswerIsAskedForWhereTheRewardComparesWithIt) {
  const job::JobFolder folder;
  folder.write("data/train.jsonl", "{\"prompt\": \"1+2=\"}\n");
  const auto read = [&](const std::string& reward) {
    const auto job = folder.parse(folder.minimal() + reward);
    EXPECT_TRUE(job) << render(job.error());
    return exchange_config(job->spec, {"job", "run"}, false);
  };
  const auto refused = read("");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no `answer`"), std::string::npos);
  EXPECT_FALSE(read("reward: { type: regex, pattern: \"= (.*)\" }\n"));
  EXPECT_TRUE(read("reward: { type: regex, pattern: \"^ok\" }\n"));
  EXPECT_TRUE(read("reward: { type: command, command: [cat] }\n"));
}

}  // namespace
}  // namespace tandem::app
