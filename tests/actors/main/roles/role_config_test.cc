// What a role gets from a job beyond copies of its fields.
#include "actors/main/roles/role_config.h"

#include <gtest/gtest.h>

#include "actors/learner/warm_start.h"
#include "runtime/base/json.h"
#include "tests/actors/main/job/job_folder.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

// Llama 3's tokens, of which the first eos_token_id ends a text and another one a turn.
constexpr std::int32_t kEndOfText = 200, kEndOfTurn = 201;

actors::Tokenizer llama_tokenizer() {
  std::string printable;
  for (char c = ' '; c < 127; ++c) printable += c;
  nlohmann::json document = parse_json(actors::testing::character_tokenizer(printable));
  document["model"]["vocab"]["\u010a"] = 150;  // a new line
  std::int32_t id = kEndOfText;
  for (const char* content : {"<|end_of_text|>", "<|eot_id|>", "<|begin_of_text|>",
                              "<|start_header_id|>", "<|end_header_id|>"})
    document["added_tokens"].push_back({{"id", id++}, {"content", content}, {"special", true}});
  auto tokenizer = actors::Tokenizer::parse(document.dump(), "tokenizer.json");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *std::move(tokenizer);
}

TEST(WarmStartRecords, EndWithTheEndOfATurnWhereATemplateMadeThePrompt) {
  const JobFolder folder;
  folder.write("data/warm.jsonl",
               R"({"messages": [{"role": "user", "content": "1+2="}], "completion": "3"}
{"prompt": "1+2=", "completion": "3"}
)");
  JobSpec job = folder.full();
  job.data.chat_template = actors::ChatTemplate::kLlama3;
  job.data.max_prompt_length = 200;
  actors::ModelConfig model = actors::testing::tiny_config(actors::Family::kLlama);
  model.eos_token_ids = {kEndOfText, kEndOfTurn};
  const auto last_tokens = [&] {
    const auto records = warm_start_records(job, model, llama_tokenizer());
    EXPECT_TRUE(records) << render(records.error());
    std::vector<std::int32_t> last;
    for (const actors::WarmStartRecord& record : *records) last.push_back(record.completion.back());
    return last;
  };
  EXPECT_EQ(last_tokens(), (std::vector<std::int32_t>{kEndOfTurn, kEndOfText}));
  model.eos_token_ids = {kEndOfText};  // the model would not stop at the other
  EXPECT_EQ(last_tokens(), (std::vector<std::int32_t>{kEndOfText, kEndOfText}));
}

TEST(TrainerConfig, HasTheWarmStartsOptimizer) {
  const JobFolder folder;
  const auto job = folder.parse(folder.minimal() +
                                "warm_start: { train_files: [data/warm.jsonl], betas: [0.8, 0.9], "
                                "weight_decay: 0.5, grad_clip: 2.0, lr_warmup_steps: 7 }\n");
  ASSERT_TRUE(job) << render(job.error());
  const actors::TrainerConfig config = trainer_config(job->spec, {"job", "run"}, false);
  ASSERT_TRUE(config.warm_start);
  const actors::OptimizerConfig optimizer = actors::warm_start_optimizer(*config.warm_start);
  EXPECT_EQ(optimizer.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(optimizer.weight_decay, 0.5);
  EXPECT_EQ(optimizer.grad_clip, 2);
  EXPECT_EQ(optimizer.lr_warmup_steps, 7);
  EXPECT_EQ(config.observe_fraction, 0.1);
}

}  // namespace
}  // namespace tandem::app
