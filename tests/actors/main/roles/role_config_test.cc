// Tests the configuration that a role gets from a job beyond copies of the job's fields.
#include "actors/main/roles/role_config.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <set>

#include "actors/exchange/samples.h"
#include "actors/job/job_table.h"
#include "actors/job/print_job.h"
#include "actors/learner/objective.h"
#include "actors/learner/warm_start.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/log_prob.h"
#include "kernels/ops/sample.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"
#include "tests/actors/main/exchange_config_of.h"
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
  job.data.chat_template = {"llama3"};
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
  job.data.chat_template = {"llama3"};
  const auto config = exchange_config_of(job);
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

TEST(ExchangeConfig, HasTheJobsSchedulesAndFilter) {
  const job::JobFolder folder;
  const auto job = folder.parse(
      folder.minimal() +
          "learner: { save_freq: 0, save_every_epochs: 2, save_every_minutes: 0.5, "
          "val_before_train: false, keep_best: val/reward/mean, keep_best_mode: min }\n"
          "algorithm: { filter_groups: { enable: true, metric: acc, lower_bound: 0.1 } }\n",
      {"data.val_files=[val.jsonl]"});
  ASSERT_TRUE(job) << render(job.error());
  const auto config = exchange_config_of(job->spec);
  ASSERT_TRUE(config) << render(config.error());
  EXPECT_EQ(config->save.steps, 0);
  EXPECT_EQ(config->save.epochs, 2);
  EXPECT_EQ(config->save.time, std::chrono::seconds(30));
  EXPECT_FALSE(config->val_before_train);
  EXPECT_TRUE(config->best.least);
  EXPECT_TRUE(config->filter_groups.enable && config->filter_groups.by_accuracy);
  EXPECT_EQ(config->filter_groups.lower, 0.1);
  EXPECT_FALSE(config->filter_groups.upper);
}

TEST(ExchangeConfig, HasTheJobsDevicesAndTheirPrices) {
  const job::JobFolder folder;
  job::JobSpec job = folder.parse(folder.minimal())->spec;
  const auto plain = exchange_config_of(job);
  ASSERT_TRUE(plain) << render(plain.error());
  EXPECT_EQ(plain->devices.per_rollout, 1);
  EXPECT_EQ(plain->devices.learner, 1);
  EXPECT_FALSE(plain->pricing);
  job.learner.ranks = 4;
  job.pools.rollout.gpus_per_actor = 0.25;
  job.pools.learner.gpus_per_actor = 0.5;
  job.pricing = scheduler::Pricing{.rollout = 2.1, .learner = 4};
  const auto priced = exchange_config_of(job);
  EXPECT_EQ(priced->devices.per_rollout, 0.25);
  EXPECT_EQ(priced->devices.learner, 2);
  EXPECT_EQ(priced->pricing, job.pricing);
}

TEST(ExchangeConfig, ASampleTellsAnAnswerWithinAnObject) {
  const job::JobFolder folder;
  folder.write("data/train.jsonl",
               R"({"prompt": "1+2=", "reward_model": {"ground_truth": "3"}, "from": {"set": "a"}})"
               "\n");
  job::JobSpec job = folder.full();
  job.data.answer_key = "reward_model.ground_truth";
  job.data.data_source_key = "from.set";
  job.data.val_files.clear();
  const auto config = exchange_config_of(job);
  ASSERT_TRUE(config) << render(config.error());
  nlohmann::json line;
  exchange::add_record_fields(line, config->train[0].data, config->record_keys);
  EXPECT_EQ(line, (nlohmann::json{{"answer", "3"}, {"data_source", "a"}}));
}

TEST(ExchangeConfig, HasTheJobsSamplesAndWhatAFailureIsWorth) {
  const job::JobFolder folder;
  const auto job = folder.parse(folder.minimal() +
                                "samples: { per_step: 40, evaluation: all }\n"
                                "reward: { on_failure: -0.5 }\n");
  ASSERT_TRUE(job) << render(job.error());
  const auto config = exchange_config_of(job->spec);
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
    return exchange_config_of(job->spec);
  };
  const auto refused = read("");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no `answer`"), std::string::npos);
  EXPECT_FALSE(read("reward: { type: regex, pattern: \"= (.*)\" }\n"));
  EXPECT_TRUE(read("reward: { type: regex, pattern: \"^ok\" }\n"));
  EXPECT_TRUE(read("reward: { type: command, command: [cat] }\n"));
}

using device::tensor;

// Values next to a bound, in double and in float, and some that only a double tells apart from it.
std::vector<double> values_around(const job::Range& range) {
  std::vector<double> values{0,   5e-324, 1e-46, 1e-45,  1e-30, 1e-6,
                             0.5, 1,      1e30,  3.4e38, 1e39,  1e300};
  for (const double bound : {range.min, range.max}) {
    if (!std::isfinite(bound)) continue;
    values.push_back(bound);
    for (const double away : {-HUGE_VAL, HUGE_VAL}) {
      values.push_back(std::nextafter(bound, away));
      values.push_back(std::nextafter(static_cast<float>(bound), static_cast<float>(away)));
      for (const double apart : {1e-8, 1e-10}) values.push_back(bound + std::copysign(apart, away));
    }
  }
  return values;
}

// Draws a token, and computes its log-probability, as the job's engine and learner do.
void sample_as(const job::JobSpec& job) {
  const float logits[] = {300, 1, 2, -300};
  const rollout::SamplingParams& sampling = engine_config(job, 1 << 30).sampling;
  const messages::EvaluationSampling evaluation = evaluation_plan(job, {}).sampling;
  const kernels::RowSampling rows[] = {{.seed = 1,
                                        .temperature = static_cast<float>(sampling.temperature),
                                        .top_p = static_cast<float>(sampling.top_p),
                                        .min_p = static_cast<float>(sampling.min_p)},
                                       {.seed = 2,
                                        .temperature = evaluation.temperature,
                                        .top_p = evaluation.top_p,
                                        .logits_row = 0}};
  std::int32_t tokens[2] = {};
  float log_prob[2] = {};
  kernels::sample({}, {.logits = tensor(logits, {1, 4}),
                       .rows = rows,
                       .tokens = tensor(tokens, {2}),
                       .log_prob = tensor(log_prob, {2})});
  for (const float value : log_prob) EXPECT_TRUE(std::isfinite(value)) << value;
  float learned = 0;
  kernels::log_prob({},
                    {.logits = tensor(logits, {1, 4}),
                     .targets = tensor(tokens, {1}),
                     .temperature = trainer_config(job, {"job", "run"}, false).batch.temperature,
                     .log_prob = tensor(&learned, {1}),
                     .entropy = {},
                     .lse = {}});
  EXPECT_EQ(learned, log_prob[0]);
}

// The loss of two tokens, with all of its terms and weights.
void learn_as(learner::AlgorithmConfig config) {
  config.bypass_mode = false;
  if (!config.rollout_is) config.rollout_is = kernels::ImportanceLevel::kToken;
  config.use_kl_loss = true;
  learner::TrainBatch batch;
  batch.groups.push_back({GroupId{1}, {1}, {{{2}, {-1}, {}, 1}, {{3}, {-2}, {}, 0}}});
  const learner::BatchAdvantages advantages = learner::compute_advantages(config, {}, batch);
  learner::Objective objective(config, 2);
  objective.begin(batch, advantages);
  learner::MicroBatch micro;
  micro.items.resize(2);
  micro.sequences = {0, 1};
  micro.sequence_begin = {0, 1, 2};
  const float log_prob[] = {-1.5f, -1.5f}, entropy[] = {0.1f, 0.1f}, reference[] = {-1, -1};
  const auto gradient = objective.evaluate({}, micro, {log_prob, entropy, reference});
  EXPECT_EQ(gradient.dlogprob.size(), 2u);
}

// A step of AdamW where one gradient is 0.
void step_as(const learner::OptimizerConfig& config) {
  float parameters[] = {1, 1}, m[] = {0, 0}, v[] = {0, 0};
  const float gradients[] = {0.5f, 0};
  kernels::adamw({}, {.parameters = tensor(parameters, {2}),
                      .gradients = tensor(gradients, {2}),
                      .m = tensor(m, {2}),
                      .v = tensor(v, {2}),
                      .step = 1,
                      .lr = config.lr,
                      .beta1 = config.betas[0],
                      .beta2 = config.betas[1],
                      .eps = config.eps,
                      .weight_decay = config.weight_decay,
                      .rounded = {},
                      .changed = {},
                      .changed_count = {},
                      .workspace = {}});
  for (const float parameter : parameters) EXPECT_TRUE(std::isfinite(parameter)) << parameter;
}

// JT-2: no value that a key takes aborts a kernel's check, or becomes a division by 0.
TEST(JobNumbers, KernelsTakeWhatTheKeysTakeJT2) {
  const job::JobFolder folder;
  job::JobSpec defaults = job::full_default_job();
  std::size_t keys = 0, taken = 0, refused = 0;
  for (const job::Key& key : job::job_keys()) {
    if (!key.range.as_float) continue;
    ++keys;
    const bool pair = std::holds_alternative<std::array<double, 2>*>(key.field(defaults));
    for (double value : values_around(key.range)) {
      const std::string number = job::print_value(&value);
      const std::string set =
          std::string(key.path) + "=" + (pair ? "[0.5, " + number + "]" : number);
      SCOPED_TRACE(set);
      const auto job = folder.parse(
          folder.minimal() + "warm_start: { train_files: [data/warm.jsonl] }\n", {set});
      ++(job ? taken : refused);
      if (!job) continue;
      // Values that are far from usual may overflow without being a mistake of their bound.
      sample_as(job->spec);
      learn_as(job->spec.algorithm);
      if (value < 1e20) step_as(job->spec.learner.optimizer);
      if (value < 1e20) step_as(learner::warm_start_optimizer(*job->spec.warm_start));
    }
  }
  EXPECT_GE(keys, 20u);
  EXPECT_GE(taken, 5 * keys);
  EXPECT_GE(refused, 2 * keys);
}

// Numbers that are not in this list are used as floats, and their rows say so.
TEST(JobNumbers, EveryOtherRealNumberIsUsedAsADouble) {
  const std::set<std::string_view> kDoubles{"actors.NAME.cpus_per_actor",
                                            "actors.NAME.gpus_per_actor",
                                            "warm_start.grad_clip",
                                            "warm_start.until.value",
                                            "rollout.gpu_memory_utilization",
                                            "rollout.engine.startup_timeout_s",
                                            "rollout.engine.request_timeout_s",
                                            "rollout.engine.logprob_tolerance",
                                            "eval.rollout_share",
                                            "reward.timeout_s",
                                            "reward.start_timeout_s",
                                            "reward.case_timeout_s",
                                            "reward.compile_timeout_s",
                                            "reward.weight",
                                            "reward.scale",
                                            "reward.bias",
                                            "reward.clip",
                                            "reward.judge.range",
                                            "reward.judge.temperature",
                                            "reward.on_failure",
                                            "reward.limits.cpu_seconds_per_line",
                                            "learner.observe_fraction",
                                            "learner.save_every_minutes",
                                            "learner.optimizer.lr_warmup_steps_ratio",
                                            "algorithm.filter_groups.lower_bound",
                                            "algorithm.filter_groups.upper_bound",
                                            "learner.optimizer.min_lr_ratio",
                                            "learner.optimizer.grad_clip",
                                            "weight_broadcast.timeout_s",
                                            "pricing.rollout",
                                            "pricing.learner",
                                            "pools.rollout.cpus_per_actor",
                                            "pools.rollout.gpus_per_actor",
                                            "pools.rollout.autoscale.target_trainer_idle",
                                            "pools.rollout.autoscale.headroom",
                                            "pools.rollout.autoscale.cooldown_s",
                                            "pools.learner.cpus_per_actor",
                                            "pools.learner.gpus_per_actor",
                                            "pools.reward.cpus_per_actor"};
  job::JobSpec defaults = job::full_default_job();
  for (const job::Key& key : job::job_keys()) {
    const job::FieldRef field = key.field(defaults);
    const auto* word = std::get_if<job::WordOrNumber>(&field);
    const bool real = std::holds_alternative<double*>(field) ||
                      std::holds_alternative<std::optional<double>*>(field) ||
                      std::holds_alternative<std::array<double, 2>*>(field) ||
                      (word && word->number.index() == 1);
    if (real) {
      EXPECT_NE(key.range.as_float, kDoubles.contains(key.path)) << key.path;
    }
  }
}

TEST(ExchangeConfig, ARecordThatNoRewardIsForIsRefusedWithItsLine) {
  const job::JobFolder folder;
  folder.write("data/train.jsonl",
               "{\"prompt\": \"1\", \"answer\": \"1\", \"data_source\": \"easy\"}\n"
               "{\"prompt\": \"2\", \"answer\": \"2\", \"data_source\": \"odd\"}\n");
  const auto read = [&](const std::string& reward) {
    const auto job = folder.parse(folder.minimal() + "reward: " + reward + "\n");
    EXPECT_TRUE(job) << render(job.error());
    return exchange_config_of(job->spec);
  };
  const auto refused = read("[{ name: a, sources: [easy] }, { name: b, sources: [hard] }]");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the record has the data source `odd`, which no reward is for");
  EXPECT_NE(refused.error().where.find("train.jsonl:2"), std::string::npos);
  EXPECT_TRUE(read("[{ name: a, sources: [easy] }, { name: b }]"));
  EXPECT_TRUE(read("[{ name: a, sources: [easy] }, { name: b, sources: [odd] }]"));
  EXPECT_FALSE(read("{ sources: [easy] }"));
}

TEST(RewardParts, AreThoseOfTheJobWithTheirPayments) {
  const job::JobFolder folder;
  const auto job = folder.parse(folder.minimal() + R"(
reward:
  scale: 0.5
  parts:
    one: { type: http, url: "http://a:1/b", header_env: { X-Key: KEY }, batch_size: 3 }
    two: { type: math, weight: 2, sources: [s] }
)");
  ASSERT_TRUE(job) << render(job.error());
  const reward::RewardParts reward = reward_parts(job->spec, "log");
  ASSERT_EQ(reward.parts.size(), 2u);
  EXPECT_EQ(reward.whole.scale, 0.5);
  EXPECT_EQ(reward.verifiers[0].http.url, "http://a:1/b");
  EXPECT_EQ(reward.verifiers[0].http.batch_size, 3);
  EXPECT_EQ(reward.parts[1].name, "two");
  EXPECT_EQ(reward.parts[1].payment.weight, 2);
  EXPECT_EQ(reward.parts[1].sources, std::vector<std::string>{"s"});

  const auto plain = folder.parse(folder.minimal());
  const reward::RewardParts single = reward_parts(plain->spec, "");
  EXPECT_EQ(single.parts[0].name, "");
  EXPECT_EQ(single.whole, reward::Payment{});
}

}  // namespace
}  // namespace tandem::app
