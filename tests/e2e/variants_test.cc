// Every way to reward, to weigh and to exchange that a job file can name trains a few steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

using nlohmann::json;

constexpr int kVariantSteps = 5;

struct Variant {
  std::string name;
  Words settings;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class Variants : public testing::TestWithParam<Variant> {};

TEST_P(Variants, Train) {
  const Home home;
  const Words settings = Words{"data.val_files=[]"} + GetParam().settings;
  const json result = home.train(kSmallId, small_job(kVariantSteps, settings));
  EXPECT_EQ(result["state"], "Succeeded");
  EXPECT_EQ(result["eval"], json()) << "there are no val_files";
  EXPECT_EQ(result["ledger"]["trained"], kVariantSteps * kGroupsPerStep);
  EXPECT_EQ(result["logprob_diff"]["max_at_staleness_0"], 0.0);
  EXPECT_NE(result["weights_sha256"], "");
  expect_ledger_balances(home.run_dir(kSmallId), result);
}

const Variant kVariants[] = {
    {"reward_exact", {"reward.type=exact", "reward.pattern=null"}},
    {"reward_math", {"reward.type=math", "reward.pattern=null"}},
    {"dr_grpo", {"algorithm.adv_estimator=dr_grpo"}},
    {"rloo", {"algorithm.adv_estimator=rloo"}},
    {"reinforce_plus_plus", {"algorithm.adv_estimator=reinforce_plus_plus", "rollout.n=1"}},
    {"gspo", {"algorithm.loss_mode=gspo"}},
    {"cispo", {"algorithm.loss_mode=cispo"}},
    {"proximal_token_weights", {"algorithm.bypass_mode=false", "algorithm.rollout_is=token"}},
    {"proximal_sequence_weights", {"algorithm.bypass_mode=false", "algorithm.rollout_is=sequence"}},
    {"kl_and_entropy",
     {"algorithm.use_kl_loss=true", "algorithm.kl_loss_coef=0.01", "algorithm.entropy_coeff=0.01"}},
    {"several_updates",
     {"learner.ppo_epochs=2", "learner.ppo_mini_batch_size=2", "algorithm.bypass_mode=false"}},
    {"kl_in_reward_and_masked_truncation",
     {"algorithm.use_kl_in_reward=true", "algorithm.kl_penalty=low_var_kl",
      "algorithm.mask_truncated_completions=true"}},
    {"overlong", {"algorithm.overlong_buffer={len: 4, penalty_factor: 1.0}"}},
    {"sync_every_second_step", {"async.trigger_parameter_sync_step=2"}},
    {"whole_answers_of_one_version", {"async.partial_rollout=false"}},
    {"recomputed_kv", {"async.kv_on_update=recompute"}},
    {"weights_by_disk", {"weight_broadcast.type=disk"}},
    {"two_of_each",
     {"rollout.replicas=2", "reward.replicas=2", "learner.ranks=2",
      "pools.rollout.cpus_per_actor=0.2", "pools.learner.cpus_per_actor=0.2"}},
    {"bf16", {"model.dtype=bfloat16", "async.schedule=fixed_lag"}},
    {"bf16_two_of_each",
     {"model.dtype=bfloat16", "rollout.replicas=2", "learner.ranks=2",
      "pools.rollout.cpus_per_actor=0.2", "pools.learner.cpus_per_actor=0.2"}},
    {"no_warm_start", {"warm_start=null"}},
    {"no_prefix_cache", {"rollout.enable_prefix_caching=false"}},
    {"truncating_samplers", {"rollout.top_k=5", "rollout.top_p=0.9", "rollout.temperature=0.8"}},
};

INSTANTIATE_TEST_SUITE_P(Each, Variants, testing::ValuesIn(kVariants),
                         [](const auto& variant) { return variant.param.name; });

TEST(FilterGroups, GroupsWithoutVarianceAreReplaced) {
  const Home home;
  const json result = home.train(
      kSmallId,
      small_job(kVariantSteps, {"data.val_files=[]", "algorithm.filter_groups.enable=true"}));
  EXPECT_EQ(result["ledger"]["trained"], kVariantSteps * kGroupsPerStep);
  EXPECT_GT(result["ledger"]["discarded"]["zero_variance"], 0);
  expect_ledger_balances(home.run_dir(kSmallId), result);
}

class Evaluation : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(In, Evaluation, testing::Values("float32", "bfloat16"),
                         [](const auto& dtype) { return std::string(dtype.param); });

TEST_P(Evaluation, OfACheckpointRepeatsWhatItsRunSaid) {
  const Home home;
  const std::filesystem::path file = home.path() / "val.jsonl";
  {
    std::ofstream lines(file);
    for (int i = 0; i < 60; ++i)
      lines << json{{"prompt", std::to_string(10 + i) + "+" + std::to_string(90 - i) + "="},
                    {"answer", "100"},
                    {"data_source", i % 3 == 0 ? "thirds" : "others/all"}}
            << "\n";
  }
  const Words job = small_job(kVariantSteps, {"data.val_files=[" + file.string() + "]",
                                              "eval={n: 5, temperature: 1.0, greedy: true}",
                                              std::string("model.dtype=") + GetParam()});
  const json run = home.train(kSmallId, job)["eval"]["figures"]["final"];
  EXPECT_EQ(run["scored"], 60 * 6);
  EXPECT_GT(run["pass@5"], run["pass@1"]);
  EXPECT_EQ(run["sources"]["thirds"]["scored"], 20 * 6);
  EXPECT_EQ(run["sources"]["others_all"]["failed"], 0);
  const auto checkpoint =
      home.run_dir(kSmallId) / "checkpoints" / ("step-" + std::to_string(kVariantSteps));
  json again = home.json(Words{"eval", checkpoint.string()} + job);
  EXPECT_EQ(again["prompts"], 60);
  for (const char* beside : {"prompts", "failure", "failure_reward"}) again.erase(beside);
  EXPECT_EQ(again["completions"].size(), 60u * 6);
  again.erase("completions");
  EXPECT_EQ(again, run) << "to the bit";
}

TEST(Reward, ACommandOfTheUsersOwnRewards) {
  const Home home;
  const json result = home.train(
      "command-reward-1", Words{"configs/command_reward.yaml"} +
                              sets({"learner.total_training_steps=5", "warm_start.max_steps=40",
                                    "data.val_files=[]", "data.train_batch_size=16"}));
  EXPECT_GT(result["reward_mean"], 0.0);
  expect_ledger_balances(home.run_dir("command-reward-1"), result);
}

// A job of programs, as small as it can be.
Words code_job(const Words& settings = {}) {
  return Words{"configs/code.yaml"} +
         sets({"learner.total_training_steps=2", "learner.save_freq=2", "warm_start.max_steps=150",
               "data.val_files=[]"}) +
         sets(settings);
}

TEST(Reward, ProgramsOfAModelAreJudgedByTheirTests) {
  const Home home;
  const json result = home.train("code-grpo-1", code_job());
  EXPECT_GT(result["reward_mean"], 0.0);
  expect_ledger_balances(home.run_dir("code-grpo-1"), result);
  const auto samples = read_file(home.run_dir("code-grpo-1") / "samples.jsonl");
  ASSERT_TRUE(samples);
  for (const char* word : {"passed", "\"language\":\"python\""})
    EXPECT_NE(samples->find(word), std::string::npos) << word;
}

// As in a container of Docker's: no namespaces of its own, and no capabilities.
TEST(Reward, WorksInAPlainContainerOrSaysWhatItLacks) {
  Home home;
  const Words plain{"unshare",
                    "--user",
                    "--map-root-user",
                    "sh",
                    "-c",
                    "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set "
                    "-all --inh-caps -all \"$@\"",
                    "sh"};
  const Finished possible = home.start_program(plain + Words{"unshare", "--user", "true"}).wait();
  if (possible.err.find("No space left") == std::string::npos)
    GTEST_SKIP() << "no such container can be made here: " << possible.text();
  home.start_by(plain);
  home.train(kSmallId, small_job(2, {"data.val_files=[]"}));

  const std::string right = home.path() / "right.jsonl";
  std::ofstream(right) << json{{"prompt", "Add."},
                               {"completion", "print(sum(map(int, input().split())))"},
                               {"answer", {{{"input", "1 2"}, {"output", "3"}}}}}
                       << "\n";
  const json scored = json::parse(home.run({"score", "--type", "code", right, "-o", "jsonl"}).out);
  EXPECT_EQ(scored["reward"], 1) << scored;
  const Finished explained = home.run({"explain", "reward.sandbox"});
  EXPECT_NE(explained.out.find("Here: "), std::string::npos) << explained.text();
  EXPECT_NE(explained.out.find("lacks: namespaces"), std::string::npos) << explained.text();
  const Finished strict =
      home.run({"score", "--type", "code", right, "--set", "reward.sandbox=strict"});
  EXPECT_EQ(strict.code, 64) << strict.text();
  EXPECT_NE(strict.err.find("this machine lacks namespaces"), std::string::npos) << strict.text();
}

}  // namespace
}  // namespace tandem::e2e
