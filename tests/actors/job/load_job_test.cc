// Job files become specifications: defaults, --set, names of other systems, rules over several
// keys, and errors that point into the file.
#include "actors/job/load_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "actors/job/job_files.h"
#include "actors/job/job_rules.h"
#include "actors/job/print_job.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

TEST(LoadJob, FillsInDefaultsAndMakesPathsAbsolute) {
  const JobFolder folder;
  folder.write("job.yaml", folder.minimal());
  const auto job = load_job(folder.root() / "job.yaml", {});
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.name, "tiny");
  EXPECT_EQ(job->spec.model.path, folder.root() / "models/tiny");
  EXPECT_EQ(job->spec.data.train_files, std::vector{folder.root() / "data/train.jsonl"});
  EXPECT_TRUE(job->spec.data.val_files.empty());
  EXPECT_FALSE(job->spec.warm_start);
  EXPECT_EQ(job->spec.rollout.n, 8);
  EXPECT_EQ(lookahead(job->spec.async), 2);
  EXPECT_TRUE(job->warnings.empty());
}

TEST(LoadJob, TakesSetsInOrderFromTheCallersFolder) {
  const JobFolder folder;
  const auto job = folder.parse(
      folder.minimal(), {"rollout.n=4", "data.val_files=[val.jsonl]", "rollout.n=6",
                         "rollout.stop=[\"\\n\", 'end']", "warm_start.train_files=[warm.jsonl]"});
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.rollout.n, 6);
  EXPECT_EQ(job->spec.data.val_files, std::vector{folder.root() / "data/val.jsonl"});
  EXPECT_EQ(job->spec.rollout.sampling.stop, (std::vector<std::string>{"\n", "end"}));
  ASSERT_TRUE(job->spec.warm_start);
  EXPECT_EQ(job->spec.warm_start->train_files, std::vector{folder.root() / "data/warm.jsonl"});
}

TEST(LoadJob, SetsMayRemoveASectionAndFillAnotherOne) {
  const JobFolder folder;
  const std::string yaml = folder.minimal() + "warm_start: { train_files: [data/warm.jsonl] }\n";
  const auto without = folder.parse(yaml, {"warm_start=null"});
  ASSERT_TRUE(without) << render(without.error());
  EXPECT_FALSE(without->spec.warm_start);
  const auto again = folder.parse(yaml, {"warm_start=null", "warm_start.lr=0.1"});
  EXPECT_EQ(refused(again).message, "`warm_start.train_files` is missing");
  const auto merged = folder.parse(yaml, {"rollout={n: 4, temperature: 0.5}", "rollout.n=2"});
  ASSERT_TRUE(merged) << render(merged.error());
  EXPECT_EQ(merged->spec.rollout.n, 2);
  EXPECT_EQ(merged->spec.rollout.sampling.temperature, 0.5);
}

TEST(LoadJob, NamesTheSetThatIsWrong) {
  const JobFolder folder;
  const auto check = [&](const std::string& set, const std::string& message) {
    const Refused r = refused(folder.parse(folder.minimal(), {set}));
    EXPECT_EQ(r.where, "--set " + set);
    EXPECT_HAS(r.message, message);
    EXPECT_EQ(r.code, ErrorCode::kInvalid);
  };
  check("rollout.n", "is not KEY=VALUE");
  check("rollout.n=many", "expects an integer");
  check("rolout.n=8", "unknown key `rolout.n`");
  check("rollout.n=[1", "not valid YAML");
  check("=3", "is not KEY=VALUE");
  check("rollout=5", "is a section");
  check("async.lookahead=3", "more than `async.max_staleness`");
}

TEST(LoadJob, PointsIntoTheFile) {
  const JobFolder folder;
  const auto at = [&](const std::string& more) {
    return refused(folder.parse(folder.minimal() + more));
  };
  EXPECT_EQ(at("rollout:\n  n: many\n").where, "job.yaml:5:6");
  EXPECT_EQ(at("rollout:\n  n: 8\n  n: 4\n").where, "job.yaml:6:3");
  EXPECT_HAS(at("rollout:\n  n: 8\n  n: 4\n").help, "job.yaml:5:3");
  EXPECT_EQ(at("rollout:\n\tn: 8\n").where, "job.yaml:5:1");
  EXPECT_HAS(at("rollout:\n\tn: 8\n").message, "tab");
  EXPECT_EQ(at("rollout: { n: 8\n").code, ErrorCode::kInvalid);
  EXPECT_HAS(at("rollout: { n: 8\n").where, "job.yaml:");
  EXPECT_EQ(at("rollout: 8\n").where, "job.yaml:4:10");
  EXPECT_EQ(at("rollout:\n  stop: [a, 5]\n").where, "job.yaml:5:13");
  EXPECT_HAS(at("---\nname: b\n").message, "more than one YAML document");
  // yaml-cpp finds an empty document in front of such a comma, again and again.
  for (const auto& [text, where] :
       {std::pair(",", "job.yaml:1:1"), std::pair("{name: a},\n", "job.yaml:1:10")}) {
    EXPECT_HAS(refused(folder.parse(text)).message, "a value cannot begin with a comma");
    EXPECT_EQ(refused(folder.parse(text)).where, where);
  }
  EXPECT_HAS(at("a: *nobody\n").message, "not valid YAML");
  EXPECT_HAS(at("x: \xff\n").message, "UTF-8");
  EXPECT_HAS(refused(folder.parse("")).message, "empty");
  EXPECT_HAS(refused(folder.parse("- a\n")).message, "found a list");
}

TEST(LoadJob, NestingIsBounded) {
  const JobFolder folder;
  const auto lists = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const auto set = [&](const std::string& value) {
    return refused(folder.parse(folder.minimal(), {"rollout.stop=" + value}));
  };
  EXPECT_HAS(set(lists(64)).message, "`rollout.stop`") << "read, and of the wrong type";
  const std::string blocks = [] {
    std::string text;
    for (int i = 0; i < 65; ++i) text += "- ";
    return text + "a";
  }();
  std::string maps;
  for (int i = 0; i < 65; ++i) maps += "{a: ";
  for (const std::string& value :
       {lists(65), lists(400'000), std::string(400'000, '['), blocks, maps}) {
    const Refused r = set(value);
    EXPECT_HAS(r.message, "nested more than 64 deep");
    EXPECT_EQ(r.code, ErrorCode::kInvalid);
  }
  const Refused file = refused(folder.parse("a:\n  " + lists(64) + "\n"));
  EXPECT_HAS(file.message, "nested more than 64 deep");
  EXPECT_EQ(file.where, "job.yaml:2:66") << "the bracket that is too much";
}

TEST(LoadJob, ResolvesAnchorsAndMergeKeys) {
  const JobFolder folder;
  const auto job =
      folder.parse(folder.minimal() + "learner: { ranks: &r 2 }\nreward: { replicas: *r }\n");
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.reward.replicas, 2);
  // A map's own keys win, then the first of the merged maps, whose own merges come last.
  const auto merged = folder.parse(
      folder.minimal() +
      "pools:\n"
      "  rollout: &base { cpus_per_actor: 0.25, threads_per_actor: 3 }\n"
      "  learner: &more { <<: *base, threads_per_actor: 2 }\n"
      "  reward: { <<: [{ cpus_per_actor: 0.125 }, { cpus_per_actor: 1 }] }\n"
      "warm_start:\n  <<: { train_files: [data/warm.jsonl], batch_size: 7 }\n  batch_size: 9\n");
  ASSERT_TRUE(merged) << render(merged.error());
  EXPECT_EQ(merged->spec.pools.learner.cpus_per_actor, 0.25);
  EXPECT_EQ(merged->spec.pools.learner.threads_per_actor, 2);
  EXPECT_EQ(merged->spec.pools.reward.cpus_per_actor, 0.125);
  EXPECT_EQ(merged->spec.warm_start->batch_size, 9);
  const auto at = [&](const std::string& more) {
    return refused(folder.parse(folder.minimal() + more));
  };
  EXPECT_EQ(at("rollout: &a { n: 8 }\nreward: { <<: *a }\n").where, "job.yaml:4:15")
      << "the place of the key that the section has not";
  EXPECT_EQ(at("reward: { <<: 3 }\n").where, "job.yaml:4:15");
  EXPECT_HAS(at("reward: { <<: 3 }\n").message, "a map or a list of maps");
  EXPECT_HAS(at("reward: { <<: [3] }\n").message, "`<<` merges maps");
  std::string doubled = "&a0 { n: 8 }";
  for (int i = 1; i < 60; ++i) {
    const std::string before = std::to_string(i - 1);
    doubled += ", &a" + std::to_string(i) + " { <<: [*a" + before + ", *a" + before + "] }";
  }
  EXPECT_HAS(at("rollout: { <<: [" + doubled + "] }\n").message, "too many maps");
  EXPECT_HAS(refused(folder.parse("reward: &a0 { n: 1 }\nlearner: { <<: *l }\n")).message,
             "not valid YAML");
}

TEST(LoadJob, PathsMayBeginWithTheHomeFolder) {
  const JobFolder folder;
  ASSERT_EQ(setenv("HOME", folder.root().c_str(), 1), 0);
  const auto job = folder.parse(
      "name: tiny\nmodel: { path: ~/models/tiny }\n"
      "data: { train_files: [$HOME/data/train.jsonl] }\n"
      "reward: { type: command, command: ['${HOME}/bin/counter', '~/data/val.jsonl'] }\n",
      {"data.val_files=[~/data/val.jsonl]"});
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.model.path, folder.root() / "models/tiny");
  EXPECT_EQ(job->spec.data.train_files, std::vector{folder.root() / "data/train.jsonl"});
  EXPECT_EQ(job->spec.data.val_files, std::vector{folder.root() / "data/val.jsonl"});
  EXPECT_EQ(job->spec.reward.command, (std::vector<std::string>{folder.root() / "bin/counter",
                                                                folder.root() / "data/val.jsonl"}));
}

TEST(LoadJob, ATextStandsForAListOfItAlone) {
  const JobFolder folder;
  folder.write("level", "");
  const auto job = folder.parse(
      "name: a\nmodel: { path: models/tiny }\ntrackers: wandb\n"
      "data: { train_files: data/train.jsonl, extra_keys: level }\n");
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.trackers, std::vector<std::string>{"wandb"});
  EXPECT_EQ(job->spec.data.train_files.at(0), folder.root() / "data/train.jsonl");
  EXPECT_EQ(job->spec.data.extra_keys, std::vector<std::string>{"level"})
      << "a name, and not the path of a file that is called so";
  EXPECT_HAS(folder.parse(folder.minimal(), {"tracking.tags=a,b"}).error().help,
             "put it in brackets: [a,b]");
  const auto several = folder.parse(folder.minimal(), {"data.extra_keys=[a, level]"});
  EXPECT_EQ(several->spec.data.extra_keys, (std::vector<std::string>{"a", "level"}));
}

TEST(LoadJob, RecognisesTheNamesOfOtherSystems) {
  const JobFolder folder;
  const auto help = [&](const std::string& more) {
    return refused(folder.parse(folder.minimal() + more)).help;
  };
  EXPECT_HAS(help("actor_rollout_ref:\n  rollout:\n    n: 8\n"), "`rollout.n`");
  EXPECT_HAS(help("trainer: { total_training_steps: 8 }\n"), "`learner.total_training_steps`");
  EXPECT_HAS(help("gconfig: { n_samples: 8 }\n"), "AReaL's");
  EXPECT_HAS(help("n_samples_per_prompt: 8\n"), "OpenRLHF's");
  EXPECT_HAS(help("async: { staleness_threshold: 0.5 }\n"), "`async.lookahead` m (1 + s) - 1");
  EXPECT_HAS(help("rollout: { lr: 0.5 }\n"), "`learner.optimizer.lr`");
  EXPECT_HAS(help("lr: 0.5\n"), "`learner.optimizer.lr`");
  EXPECT_HAS(help("rollouts: { n: 8 }\n"), "`rollout`");
}

TEST(LoadJob, TakesTheAliasesOfTheStalenessBound) {
  const JobFolder folder;
  for (const char* alias : {"max_head_offpolicyness", "max_off_policy_steps"}) {
    const auto job = folder.parse(folder.minimal() + "async: { " + std::string(alias) + ": 4 }\n");
    ASSERT_TRUE(job) << render(job.error());
    EXPECT_EQ(job->spec.async.max_staleness, 4);
  }
  const auto both =
      folder.parse(folder.minimal() + "async: { max_staleness: 1, max_off_policy_steps: 4 }\n");
  EXPECT_HAS(refused(both).message, "given twice");
}

TEST(LoadJob, PointsAtAPatternThatDoesNotCompile) {
  const JobFolder folder;
  const std::string reward = "reward:\n  type: regex\n  pattern: '[0-9'\n";
  const Refused r = refused(folder.parse(folder.minimal() + reward));
  EXPECT_HAS(r.message, "the pattern does not compile");
  EXPECT_HAS(r.where, ":" + std::to_string(std::ranges::count(folder.minimal(), '\n') + 3) + ":");
  EXPECT_EQ(r.code, ErrorCode::kInvalid);
  const std::string good = "reward:\n  type: regex\n  pattern: '([0-9]+)$'\n";
  EXPECT_TRUE(folder.parse(folder.minimal() + good));
}

TEST(LoadJob, RefusesWhatKeysTogetherForbid) {  // JS-1
  const JobFolder folder;
  const auto check = [&](std::vector<std::string> sets, const std::string& message) {
    const Refused r = refused(folder.parse(folder.minimal(), std::move(sets)));
    EXPECT_HAS(r.message, message);
    EXPECT_FALSE(r.help.empty());
    EXPECT_FALSE(r.where.empty());
    EXPECT_EQ(r.code, ErrorCode::kInvalid);
  };
  check({"rollout.n=1"}, "compares the completions");
  check({"rollout.n=1", "algorithm.adv_estimator=rloo"}, "compares the completions");
  check({"algorithm.rollout_is=token"}, "bypass_mode");
  const std::string rs = "algorithm.rollout_rs";
  check({rs + "=token", rs + "_threshold=0.5"}, "below 1: `token` bounds a ratio");
  check({rs + "=seq_max_k3", rs + "_threshold_lower=0.5"}, "bounds a divergence");
  check({rs + "_also={token_k2: 1}"}, "which is null");
  check({rs + "=token", rs + "_also={token_k9: 1}"}, "which is no criterion");
  check({rs + "=token", rs + "_also={token_k1: 2}"}, "is a second `token`");
  check({rs + "=token_k2", rs + "_also={token_k1: 0.5}"}, "below 1");
  check({"algorithm.rollout_is_batch_normalize=true"}, "there are no weights");
  check({"async.lookahead=3"}, "more than `async.max_staleness`");
  check({"async.trigger_parameter_sync_step=4"}, "more than lookahead + 1");
  check({"async.schedule=fixed_lag", "async.trigger_parameter_sync_step=2"}, "fixed_lag");
  check({"async.schedule=fixed_lag", "model.batch_invariant=false"}, "model.batch_invariant");
  check({"rollout.min_tokens=65"}, "max_response_length");
  check({"rollout.block_size=24"}, "multiple of 16");
  check({"rollout.max_num_seqs=4"}, "less than one group");
  check({"rollout.max_num_batched_tokens=16"}, "decode a token each");
  check({"learner.max_token_len=100"}, "one sequence may have 128 tokens");
  check({"async.max_concurrent_rollouts=4"}, "less than one group");
  check({"reward.type=regex"}, "needs `reward.pattern`");
  check({"reward.pattern=a+"}, "does not use");
  check({"reward.type=regex", "reward.pattern=\"a(b\""}, "missing closing parenthesis at byte 3");
  check({"reward.type=command"}, "needs `reward.command`");
  check({"reward.command=[cat]"}, "does not use");
  check({"learner.ranks=65"}, "more than the groups of a step");
  check({"learner.ppo_mini_batch_size=10"}, "does not divide `data.train_batch_size: ");
  check({"learner.ppo_mini_batch_size=1", "learner.ranks=2"}, "more than the groups of an update");
  check({"weight_broadcast.type=cuda_ipc"}, "on one GPU");
  check({"weight_broadcast.type=cuda_ipc", "pools.learner.gpus_per_actor=0.5",
         "pools.rollout.gpus_per_actor=0.3", "rollout.replicas=2"},
        "on one GPU");
  for (const std::string pool : {"rollout", "learner"})  // a node with two GPUs would part them
    check({"weight_broadcast.type=cuda_ipc", "pools.learner.gpus_per_actor=0.5",
           "pools.rollout.gpus_per_actor=0.5", "pools." + pool + ".strategy=spread"},
          "`pools." + pool + ".strategy: spread` takes the GPU with the most left");
  check({"weight_broadcast.type=nccl"}, "`pools.learner.gpus_per_actor` is 0");
  check({"weight_broadcast.type=nccl", "pools.learner.gpus_per_actor=1"},
        "`pools.rollout.gpus_per_actor` is 0");
  check({"weight_broadcast.type=nccl", "pools.rollout.gpus_per_actor=1"},
        "`pools.learner.gpus_per_actor` is 0");
  check({"algorithm.overlong_buffer.len=65"}, "longer than a completion");
  check({"rollout.n=1", "algorithm.adv_estimator=reinforce_plus_plus",
         "algorithm.filter_groups.enable=true"},
        "zero variance");
  check({"rollout.stop=[\"\"]"}, "empty string");
  check({"eval.n=8"}, "with `eval.temperature: 0` all completions of a prompt are the same");
  check({"eval.greedy=true"}, "the only completion is greedy");
  check({"eval.n=256", "eval.temperature=1", "eval.greedy=true"}, "one evaluated prompt, 257");
  check({"eval.temperature=1e-9"}, "0 or at least 1e-6 is allowed");
  const std::string filter = "algorithm.filter_groups.";
  check({filter + "lower_bound=0.9", filter + "upper_bound=0.1"}, "no group's mean lies between");
  check({filter + "metric=acc", filter + "lower_bound=1"}, "no group's mean lies between");
  check({filter + "metric=acc", filter + "upper_bound=0"}, "no group's mean lies between");
  for (const std::string estimator : {"dr_grpo", "reinforce_plus_plus"})
    check({"algorithm.scale_rewards=group", "algorithm.adv_estimator=" + estimator},
          "`algorithm.scale_rewards` is group");
  check({"algorithm.advantage_batch_normalize=true", "algorithm.adv_estimator=reinforce_plus_plus"},
        "whitens over the batch by itself");
  check({"data.data_source_key=\"\""}, "is empty");
  check({"data.extra_keys=[a, \"\"]"}, "holds an empty name");
  check({"data.system_prompt=Be brief.", "data.system_prompt_file=train.jsonl"}, "are both given");
  check({"data.mixture={a: 0, b: 0}"}, "are all 0");
  check({"data.mixture={a: 1, b: 1e-5}"}, "gives `b` less than a ten-thousandth");
  check({"data.train_files=[]"}, "is empty");
  check({"name=\"a b\""}, "cannot name a job");
  check({"name=\"../a\""}, "cannot name a job");
}

TEST(LoadJob, SettlesAndWarns) {
  const JobFolder folder;
  const auto warnings = [&](std::vector<std::string> sets) {
    const auto job = folder.parse(folder.minimal(), std::move(sets));
    EXPECT_TRUE(job) << render(job.error());
    std::string all;
    for (const std::string& warning : job->warnings) all += warning + "\n";
    return all;
  };
  EXPECT_HAS(warnings({"async.max_staleness=6"}), "above 5");
  EXPECT_EQ(warnings({"async.max_staleness=5"}), "");
  EXPECT_HAS(warnings({"rollout.top_k=20"}), "truncate");
  EXPECT_HAS(warnings({"eval.top_k=20"}), "no effect while eval.temperature is 0");
  EXPECT_EQ(warnings({"eval.top_k=20", "eval.temperature=1", "eval.n=256"}), "");
  EXPECT_HAS(warnings({"algorithm.bypass_mode=false"}), "every ratio is 1");
  EXPECT_EQ(warnings({"algorithm.bypass_mode=false", "learner.ppo_epochs=2"}), "");
  EXPECT_EQ(warnings({"algorithm.bypass_mode=false", "algorithm.rollout_is=token"}), "");
  EXPECT_HAS(warnings({"async.schedule=fixed_lag"}), "partial_rollout is off");
  EXPECT_HAS(warnings({"algorithm.use_kl_loss=true"}), "only reports the divergence");
  EXPECT_EQ(warnings({"algorithm.use_kl_loss=true", "algorithm.kl_loss_coef=0.01"}), "");
  EXPECT_HAS(warnings({"rollout.min_tokens=2"}), "bans the end of a completion");
  EXPECT_HAS(warnings({"algorithm.filter_groups.upper_bound=0.9"}), "enable is false");
  EXPECT_HAS(warnings({"learner.keep_best_mode=min"}), "no effect without learner.keep_best");
  const auto lag = folder.parse(folder.minimal(), {"async.schedule=fixed_lag"});
  EXPECT_FALSE(lag->spec.async.partial_rollout);
}

// A rate for random weights destroys pretrained ones within some steps.
TEST(LoadJob, TheLearningRateFitsTheWeightsThatItChanges) {
  const JobFolder folder;
  const auto job = [&](std::vector<std::string> sets) {
    auto read = folder.parse(folder.minimal(), std::move(sets));
    EXPECT_TRUE(read) << render(read.error());
    return *read;
  };
  const std::string pretrained = "model.init=pretrained", random = "model.init=random";
  EXPECT_EQ(job({pretrained}).spec.learner.optimizer.lr, 1e-6);
  EXPECT_EQ(job({random}).spec.learner.optimizer.lr, 1e-3);
  EXPECT_EQ(job({random, "learner.optimizer.lr=1e-6"}).spec.learner.optimizer.lr, 1e-6);
  EXPECT_TRUE(job({pretrained, "learner.optimizer.lr=1e-4"}).warnings.empty());
  EXPECT_TRUE(job({random, "learner.optimizer.lr=1e-2"}).warnings.empty());
  const LoadedJob hot = job({pretrained, "learner.optimizer.lr=1e-3"});
  ASSERT_EQ(hot.warnings.size(), 1u);
  EXPECT_HAS(hot.warnings[0], "learner.optimizer.lr is 0.001");
  EXPECT_HAS(hot.warnings[0], "destroy a pretrained model");
  EXPECT_EQ(folder.parse(print_job(job({random}).spec), {})->spec.learner.optimizer.lr, 1e-3);
}

// A choice that brings its own loss aggregation or clip says so where the user gave another.
TEST(LoadJob, AChoiceOfLossTellsWhichGivenKeysItChanges) {
  const JobFolder folder;
  const auto job = [&](std::vector<std::string> sets) {
    auto read = folder.parse(folder.minimal(), std::move(sets));
    EXPECT_TRUE(read) << render(read.error());
    return *read;
  };
  const std::string gspo = "algorithm.loss_mode=gspo", cispo = "algorithm.loss_mode=cispo";
  const std::string dr_grpo = "algorithm.adv_estimator=dr_grpo";

  const LoadedJob plain = job({gspo});
  EXPECT_TRUE(plain.warnings.empty());
  EXPECT_EQ(plain.spec.algorithm.loss_agg_mode, LossAggMode::kSeqMeanTokenMean);
  EXPECT_EQ(plain.spec.algorithm.clip_ratio_low, 3e-4);
  EXPECT_EQ(plain.spec.algorithm.clip_ratio_high, 4e-4);
  const LoadedJob again = *folder.parse(print_job(plain.spec), {});  // settled values stay
  EXPECT_TRUE(again.warnings.empty());

  const LoadedJob changed = job({gspo, "algorithm.loss_agg_mode=token-mean",
                                 "algorithm.clip_ratio_c=3", "algorithm.clip_ratio_high=0.28"});
  ASSERT_EQ(changed.warnings.size(), 3u);
  EXPECT_EQ(changed.warnings[0],
            "algorithm.loss_agg_mode is seq-mean-token-mean: it is part of loss_mode gspo");
  EXPECT_EQ(changed.warnings[1], "algorithm.clip_ratio_c is off: loss_mode gspo has no dual clip");
  EXPECT_HAS(changed.warnings[2], "a whole sequence's ratio");
  EXPECT_FALSE(changed.spec.algorithm.clip_ratio_c);
  EXPECT_EQ(changed.spec.algorithm.clip_ratio_high, 0.28);

  EXPECT_EQ(
      job({cispo, "algorithm.clip_ratio_c=3"}).warnings,
      std::vector<std::string>{"algorithm.clip_ratio_c is off: loss_mode cispo has no dual clip"});
  EXPECT_EQ(job({dr_grpo, "algorithm.loss_agg_mode=token-mean"}).warnings,
            std::vector<std::string>{"algorithm.loss_agg_mode is seq-mean-token-sum-norm: it is "
                                     "part of adv_estimator dr_grpo"});
  EXPECT_TRUE(job({dr_grpo}).warnings.empty());
}

TEST(LoadJob, ClipsAreThoseOfTheLoss) {
  const JobFolder folder;
  const auto algorithm = [&](std::vector<std::string> sets) {
    auto read = folder.parse(folder.minimal(), std::move(sets));
    EXPECT_TRUE(read) << render(read.error());
    EXPECT_TRUE(read->warnings.empty());
    return read->spec.algorithm;
  };
  const auto vanilla = algorithm({});
  EXPECT_EQ(vanilla.clip_ratio_c, 3.0) << "as in verl";
  EXPECT_EQ(vanilla.clip_ratio_high, 0.28);
  EXPECT_FALSE(algorithm({"algorithm.clip_ratio_c=null"}).clip_ratio_c);
  const auto cispo = algorithm({"algorithm.loss_mode=cispo"});
  EXPECT_EQ(cispo.clip_ratio_low, 1);
  EXPECT_EQ(cispo.clip_ratio_high, 4);
  EXPECT_FALSE(cispo.clip_ratio_c);
  EXPECT_EQ(algorithm({"algorithm.loss_mode=cispo", "algorithm.clip_ratio_high=2"}).clip_ratio_high,
            2);
}

TEST(LoadJob, EstimatesOfKlHaveTheirNamesOfVerl) {
  const JobFolder folder;
  const auto type = [&](const std::string& name) {
    auto read = folder.parse(folder.minimal(), {"algorithm.kl_loss_type=" + name});
    EXPECT_TRUE(read) << render(read.error());
    return read->spec.algorithm.kl_loss_type;
  };
  EXPECT_EQ(folder.parse(folder.minimal(), {})->spec.algorithm.kl_loss_type, KlPenalty::kLowVarKl);
  for (const char* name : {"kl", "k1"}) EXPECT_EQ(type(name), KlPenalty::kKl);
  for (const char* name : {"mse", "k2"}) EXPECT_EQ(type(name), KlPenalty::kMse);
  for (const char* name : {"low_var_kl", "k3"}) EXPECT_EQ(type(name), KlPenalty::kLowVarKl);
  EXPECT_EQ(type("abs"), KlPenalty::kAbs);
  const auto again = folder.parse(folder.minimal(), {"algorithm.kl_loss_type=k2"});
  EXPECT_HAS(print_job(again->spec), "kl_loss_type: mse");
}

TEST(LoadJob, FindsMissingFilesBeforeAnythingStarts) {
  const JobFolder folder;
  const auto check = [&](const std::string& set, const std::string& file) {
    const Refused r = refused(folder.parse(folder.minimal(), {set}));
    EXPECT_HAS(r.message, file);
    EXPECT_EQ(r.where, "--set " + set);
    EXPECT_EQ(r.code, ErrorCode::kFailed);
  };
  check("data.train_files=[nothing.jsonl]", "nothing.jsonl");
  check("data.val_files=[nothing.jsonl]", "nothing.jsonl");
  check("model.path=nothing", "nothing/config.json");
  folder.write("notes/read.me", "no data");
  check("data.train_files=[../notes]", "the folder has no data files");
  check("data.val_files=[../models/*.jsonl]", "no file matches");
  const Refused command = refused(
      folder.parse(folder.minimal(), {"reward.type=command", "reward.command=[./nothing.py]"}));
  EXPECT_HAS(command.message, "cannot run");
  const auto missing = load_job(folder.root() / "nothing.yaml", {});
  EXPECT_EQ(refused(missing).code, ErrorCode::kFailed);
  EXPECT_HAS(refused(load_job(folder.root(), {})).message, "folder");
}

TEST(LoadJob, TheTextOfASystemPromptBecomesAPartOfTheJob) {
  const JobFolder folder;
  folder.write("data/system.txt", "Think first.\n\nThen answer: \"é\".\r\n");
  const std::string set = "data.system_prompt_file=system.txt";
  const auto job = folder.parse(folder.minimal(), {set});
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.data.system_prompt, "Think first.\n\nThen answer: \"é\".");
  EXPECT_EQ(job->spec.data.system_prompt_file, std::nullopt);
  folder.write("data/system.txt", "Another one.");
  const auto again = folder.parse(print_job(job->spec));
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(again->spec.data.system_prompt, job->spec.data.system_prompt);
  const auto check = [&](const std::string& text, const std::string& message) {
    folder.write("data/system.txt", text);
    const Refused r = refused(folder.parse(folder.minimal(), {set}));
    EXPECT_HAS(r.message, message);
    EXPECT_EQ(r.where, "--set " + set);
  };
  check("\n", "is empty");
  check("\xff", "is not UTF-8 text");
  check(std::string(kSystemPromptBytesMax + 1, 'x'), "system.txt");
  EXPECT_HAS(refused(folder.parse(folder.minimal(), {"data.system_prompt_file=nothing"})).message,
             "cannot read");
}

TEST(LoadJob, TheKeyOfTheBestCheckpointIsOneOfItsEvaluations) {
  const JobFolder folder;
  const auto refused = [&](const std::string& key, const std::string& rest) {
    const auto job = folder.parse(folder.minimal() + "learner: { keep_best: \"" + key + "\" }\n" +
                                      "eval: { n: 6, temperature: 1.0 }\n",
                                  {rest});
    return job ? std::string() : job.error().message;
  };
  const std::string evaluates = "data.val_files=[val.jsonl]";
  for (const char* key : {"val/reward/mean", "val/gsm8k/reward/mean", "val/reward/pass@4",
                          "val/reward/pass@6", "val/math/reward/maj@2"})
    EXPECT_EQ(refused(key, evaluates), "") << key;
  // Numbers in `extra` come from rewards that can send some.
  const std::string python = "reward={type: python, function: MODULE:f}";
  const std::string parts = "reward.parts={right: {type: exact}, code: {type: exact}}";
  for (const auto& [key, reward] : {std::pair("val/reward/extra/length/mean", python),
                                    std::pair("val/math/reward/extra/a.b/mean", python),
                                    std::pair("val/reward/extra/right/mean", parts)}) {
    const auto job = folder.parse(folder.minimal() + "learner: { keep_best: \"" + key + "\" }\n",
                                  {evaluates, reward});
    EXPECT_TRUE(job) << key << " " << job.error().message;
    EXPECT_NE(refused(key, evaluates).find("sends no number"), std::string::npos)
        << key << ": exact has none, " << refused(key, evaluates);
  }
  EXPECT_NE(folder
                .parse(folder.minimal() + "learner: { keep_best: val/reward/extra/nope/mean }\n",
                       {evaluates, parts})
                .error()
                .message.find("no number `nope`"),
            std::string::npos);
  for (const char* key : {"reward/mean", "val/reward/greedy", "val/reward/pass@3",
                          "val/reward/maj@1", "val/a/b/reward/mean", "critic/rewards/mean",
                          "val/reward/extra/mean", "val/reward/extra/length"})
    EXPECT_NE(refused(key, evaluates).find(std::string("have no `") + key), std::string::npos)
        << key;
  EXPECT_NE(refused("val/reward/mean", "data.val_files=[]").find("no evaluations"),
            std::string::npos);
}

TEST(LoadJob, AWarmUpIsStepsOrAShareOfThem) {
  const JobFolder folder;
  const std::string ratio = "learner.optimizer.lr_warmup_steps_ratio=0.03";
  const auto alone = folder.parse(folder.minimal(), {ratio});
  ASSERT_TRUE(alone) << render(alone.error());
  EXPECT_TRUE(alone->warnings.empty());
  EXPECT_EQ(alone->spec.learner.optimizer.lr_warmup_steps_ratio, 0.03);
  EXPECT_EQ(alone->spec.learner.optimizer.lr_warmup_steps, 0);
  const auto both = folder.parse(folder.minimal(), {ratio, "learner.optimizer.lr_warmup_steps=9"});
  ASSERT_EQ(both->warnings.size(), 1u);
  EXPECT_HAS(both->warnings[0], "lr_warmup_steps_ratio decides");
  EXPECT_TRUE(folder.parse(print_job(both->spec))->warnings.empty()) << "settled values stay";
}

TEST(LoadJob, OfStepsAndEpochsTheLaterOneCounts) {
  const JobFolder folder;
  const std::string steps = "learner.total_training_steps=7", epochs = "data.total_epochs=2";
  const auto length = [&](const std::string& file, std::vector<std::string> sets) {
    const auto job = folder.parse(folder.minimal() + file, std::move(sets));
    EXPECT_TRUE(job) << render(job.error());
    const auto printed = folder.parse(print_job(job->spec));
    EXPECT_EQ(print_job(printed->spec), print_job(job->spec));
    EXPECT_TRUE(printed->warnings.empty()) << "settled values stay";
    const auto number = job->spec.data.total_epochs;
    return (number ? std::to_string(*number) + " epochs"
                   : std::to_string(job->spec.learner.total_training_steps) + " steps") +
           (job->warnings.empty() ? "" : ", " + job->warnings[0]);
  };
  const std::string by_steps =
      "7 steps, data.total_epochs is not used: "
      "learner.total_training_steps decides";
  const std::string by_epochs =
      "2 epochs, learner.total_training_steps is not used: "
      "data.total_epochs decides";
  EXPECT_EQ(length("", {steps}), "7 steps");
  EXPECT_EQ(length("", {epochs}), "2 epochs");
  EXPECT_EQ(length("learner: { total_training_steps: 7 }\n", {epochs}), by_epochs);
  const auto both = folder.parse(
      "name: a\nmodel: { path: models/tiny }\nlearner: { total_training_steps: 7 }\n"
      "data: { train_files: data/train.jsonl, total_epochs: 2 }\n");
  ASSERT_TRUE(both) << render(both.error());
  EXPECT_EQ(both->spec.data.total_epochs, std::nullopt) << "one file has both";
  EXPECT_EQ(both->spec.learner.total_training_steps, 7);
  EXPECT_EQ(length("learner: { total_training_steps: 7 }\n", {epochs, steps}), by_steps);
  EXPECT_EQ(length("", {steps, epochs}), by_epochs);
}

TEST(LoadJob, ScaleRewardsIsTheSameSettingAsVerlsUnderGrpo) {
  const JobFolder folder;
  const auto job = [&](std::vector<std::string> sets) {
    auto read = folder.parse(folder.minimal(), std::move(sets));
    EXPECT_TRUE(read) << render(read.error());
    return *read;
  };
  const std::string norm = "algorithm.norm_adv_by_std_in_grpo=";
  EXPECT_FALSE(job({"algorithm.scale_rewards=none"}).spec.algorithm.norm_adv_by_std_in_grpo);
  EXPECT_TRUE(job({"algorithm.scale_rewards=none"}).warnings.empty());
  const LoadedJob both = job({"algorithm.scale_rewards=batch", norm + "false"});
  EXPECT_EQ(both.warnings, std::vector<std::string>{
                               "algorithm.norm_adv_by_std_in_grpo is true: scale_rewards decides"});
  EXPECT_TRUE(job({"algorithm.scale_rewards=batch", norm + "true"}).warnings.empty());
  job({"algorithm.scale_rewards=group", "algorithm.adv_estimator=rloo"});
  job({"algorithm.scale_rewards=none", "algorithm.adv_estimator=dr_grpo"});
}

}  // namespace
}  // namespace tandem::job
