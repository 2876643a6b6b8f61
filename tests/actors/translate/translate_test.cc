// Tests actors/translate/translate.h, actors/translate/draft.h, actors/translate/write_job.h,
// actors/translate/job_text.h, actors/translate/shared_keys.h.
#include "actors/translate/translate.h"

#include <gtest/gtest.h>

#include "actors/job/load_job.h"
#include "actors/translate/dialects.h"
#include "actors/translate/read_yaml.h"
#include "actors/translate/write_job.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::translate {
namespace {

using nlohmann::json;

Translation translated(const std::string& name, const std::string& yaml) {
  const auto config = read_yaml(yaml, "dir/a.yaml");
  EXPECT_TRUE(config) << render(config.error());
  auto translation = translate(*config, *find_dialect(name));
  EXPECT_TRUE(translation) << render(translation.error());
  return *std::move(translation);
}

// The value of a key of the job as JSON, "-" where the job does not have it.
std::string value_of_key(const Translation& translation, const std::string& key) {
  for (const JobValue& value : translation.job)
    if (value.path == key) return dump_json(value.value);
  return "-";
}

// The severity of the findings about a key, "-" where there is none.
std::string told(const Translation& translation, const std::string& key) {
  std::string all;
  for (const Finding& finding : translation.findings)
    for (const std::string& one : finding.keys)
      if (one == key || one.starts_with(key + " "))
        all += std::string(spelling(finding.severity)) + ".";
  return all.empty() ? "-" : all;
}

Result<job::LoadedJob> loaded(const Translation& translation) {
  return job::parse_job({.yaml = write_job(translation),
                         .origin = "job.yaml",
                         .base = "/",
                         .set_base = "/",
                         .sets = {},
                         .files = job::Files::kUnchecked});
}

constexpr const char* kVerl =
    "actor_rollout_ref: {model: {path: /m}, rollout: {n: 4}}\n"
    "algorithm: {adv_estimator: grpo}\n";

// IM-3
TEST(Translate, IM3DefaultsOfTheFrameworkComeAlong) {
  const Translation job = translated("verl", kVerl);
  EXPECT_EQ(value_of_key(job, "algorithm.clip_ratio_high"), "0.2");
  EXPECT_EQ(value_of_key(job, "learner.optimizer.betas"), "[0.9,0.999]");
  EXPECT_EQ(value_of_key(job, "learner.optimizer.lr_scheduler_type"), "\"constant\"");
  EXPECT_EQ(value_of_key(job, "data.total_epochs"), "30");
  EXPECT_EQ(value_of_key(job, "async.max_staleness"), "0");
  // These are Tandem's own defaults.
  for (const char* key : {"algorithm.clip_ratio_low", "learner.optimizer.lr", "eval.temperature"})
    EXPECT_EQ(value_of_key(job, key), "-") << key;
  for (const JobValue& value : job.job)
    EXPECT_TRUE(!value.by_default || value.comment.starts_with("verl's default")) << value.path;
}

// Left out, the clip of gspo would be Tandem's own.
TEST(Translate, IM3ADefaultThatDependsOnAnotherKeyIsKept) {
  const Translation job = translated("verl", std::string(kVerl) + "data: {train_batch_size: 8}\n" +
                                                 "custom_reward_function: {path: a.py}\n");
  EXPECT_EQ(value_of_key(job, "learner.ppo_mini_batch_size"), "-") << "no less than the batch";
  const Translation gspo =
      translated("verl",
                 "actor_rollout_ref: {model: {path: /m}, rollout: {n: 4}, actor: "
                 "{policy_loss: {loss_mode: gspo}}}\nalgorithm: {adv_estimator: grpo}\n");
  EXPECT_EQ(value_of_key(gspo, "algorithm.clip_ratio_low"), "0.2");
  EXPECT_EQ(value_of_key(gspo, "algorithm.loss_agg_mode"), "-");
  EXPECT_EQ(value_of_key(gspo, "algorithm.clip_ratio_c"), "-");
}

// IM-2
TEST(Translate, IM2AKeyThatIsNotKnownIsTold) {
  const Translation job =
      translated("verl", std::string(kVerl) + "strange: {key: 1}\nnothing: null\n");
  EXPECT_EQ(told(job, "strange.key"), "unknown.");
  EXPECT_EQ(told(job, "nothing"), "-");
  EXPECT_FALSE(learns_the_same(job.findings));
}

TEST(Translate, WhatIsOffLosesNothing) {
  const Translation off = translated(
      "verl", std::string(kVerl) + "reward_model: {enable: False}\ndata: {image_key: images}\n");
  EXPECT_EQ(told(off, "reward_model.enable"), "-");
  EXPECT_EQ(told(off, "data.image_key"), "-");
  EXPECT_TRUE(learns_the_same(off.findings)) << findings_text(off.findings, "", 100);
  const Translation on = translated("verl", std::string(kVerl) + "reward_model: {enable: true}\n");
  EXPECT_EQ(told(on, "reward_model.enable"), "differs.");
  EXPECT_FALSE(learns_the_same(on.findings));
}

// IM-1
TEST(Translate, IM1AValueThatTheJobRefusesIsLeftOut) {
  const Translation job = translated(
      "verl",
      "actor_rollout_ref: {model: {path: /m}, rollout: {n: 4, temperature: 0}, actor: "
      "{ppo_mini_batch_size: 100, optim: {lr: fast}}}\nalgorithm: {adv_estimator: grpo}\n");
  EXPECT_EQ(value_of_key(job, "rollout.temperature"), "-");
  EXPECT_EQ(told(job, "actor_rollout_ref.rollout.temperature"), "differs.");
  EXPECT_EQ(told(job, "actor_rollout_ref.actor.optim.lr"), "differs.");
  EXPECT_EQ(told(job, "actor_rollout_ref.actor.ppo_mini_batch_size"), "differs.");
  EXPECT_TRUE(loaded(job));
}

TEST(Translate, RequiredKeysHavePlaceholders) {
  const Translation job = translated("prime-rl", "orchestrator: {batch_size: 64}\n");
  EXPECT_EQ(value_of_key(job, "model.path"), "\"model\"");
  EXPECT_EQ(told(job, "model.path"), "to do.");
  EXPECT_EQ(told(job, "data.train_files"), "to do.");
  EXPECT_TRUE(loaded(job));
}

TEST(Translate, NamesAreMadeFit) {
  EXPECT_EQ(value_of_key(translated("verl", kVerl), "name"), "\"a\"");
  const Translation job =
      translated("verl", std::string(kVerl) + "trainer: {experiment_name: ' my run: 1/2'}\n");
  EXPECT_EQ(value_of_key(job, "name"), "\"my-run--1-2\"");
  EXPECT_EQ(value_of_key(job, "tracking.run_name"), "\" my run: 1/2\"");
}

TEST(Translate, ACircleIsAnError) {
  const auto config =
      read_yaml("actor_rollout_ref: {a: '${x}'}\nx: '${actor_rollout_ref.a}'\n", "a.yaml");
  ASSERT_TRUE(config);
  const auto translation = translate(*config, *find_dialect("verl"));
  ASSERT_FALSE(translation);
  EXPECT_EQ(translation.error().where, "a.yaml:1");
}

TEST(Translate, FindingsAreWrappedUnderHeadings) {
  const std::string text =
      findings_text({{Severity::kDiffers, "one two three four", {"a.b (f:1)", "c (f:2)"}},
                     {Severity::kSame, "five", {}}},
                    "# ", 24);
  EXPECT_EQ(text,
            "# Something else is\n# learned:\n#   - a.b (f:1), c\n#     (f:2): one two\n"
            "#     three four\n# Without effect on what\n# is learned:\n#   - five\n");
}

// IM-1: whatever a file holds, the result loads, or the error has a place.
TEST(Translate, IM1HoldsForKeysAndValuesOfEveryKind) {
  const json values[] = {nullptr,
                         true,
                         -1,
                         0,
                         1,
                         3.5,
                         1e300,
                         "",
                         "x",
                         "none",
                         "a/b",
                         "/p",
                         "${HOME}",
                         "1e-6",
                         "0.5_2.0",
                         json::array(),
                         json::array({1, "a"}),
                         json::object(),
                         1000000007,
                         "é\n\"'#: {"};
  for_seeds(60, [&values](std::uint64_t seed) {
    Rng rng(seed);
    const Dialect& dialect = dialects()[seed % dialects().size()];
    ForeignConfig config("fuzz.yaml");
    for (int i = 0; i < 14; ++i) {
      std::string key(dialect.rules[rng.next() % dialect.rules.size()].key);
      if (key.ends_with('*')) key.replace(key.size() - 1, 1, i % 2 ? "zz" : "enabled");
      config.set({key, values[rng.next() % std::size(values)], "fuzz.yaml:1"});
    }
    const auto translation = translate(config, dialect);
    if (!translation) {
      EXPECT_FALSE(translation.error().where.empty());
      return;
    }
    const auto job = loaded(*translation);
    EXPECT_TRUE(job) << render(job.error()) << write_job(*translation);
  });
}

}  // namespace
}  // namespace tandem::translate
