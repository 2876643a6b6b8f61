// Settings of the frameworks that are easily misread: the job must have what a framework's source
// code does with them. Versions are named where they differ.
// Tests actors/translate/openrlhf_keys.h.
#include <gtest/gtest.h>

#include <algorithm>

#include "actors/translate/dialects.h"
#include "actors/translate/read_yaml.h"
#include "actors/translate/translate.h"
#include "runtime/base/json.h"

namespace tandem::translate {
namespace {

class Imported {
 public:
  Imported(const std::string& dialect, const std::string& yaml) {
    const auto config = read_yaml(yaml, "a.yaml");
    EXPECT_TRUE(config) << render(config.error());
    auto made = translate(*config, *find_dialect(dialect));
    EXPECT_TRUE(made) << render(made.error());
    translation_ = *std::move(made);
  }
  // As JSON; "-" where the job does not have the key.
  std::string operator[](const std::string& key) const {
    const auto found = std::ranges::find(translation_.job, key, &JobValue::path);
    return found == translation_.job.end() ? "-" : dump_json(found->value);
  }
  // Whether something else is learned because of the framework's key.
  bool differs(const std::string& key) const {
    return std::ranges::any_of(translation_.findings, [&](const Finding& finding) {
      return finding.severity == Severity::kDiffers &&
             std::ranges::any_of(finding.keys, [&](const std::string& one) {
               return one == key || one.starts_with(key + " ");
             });
    });
  }
  bool says(const std::string& part) const {
    return std::ranges::any_of(translation_.findings, [&](const Finding& finding) {
      return finding.text.find(part) != std::string::npos;
    });
  }

 private:
  Translation translation_;
};

TEST(Conversions, OpenRlhfsNewerNames) {
  const std::string at = "data: {prompt_dataset: d, max_len: 3000}\n";
  const Imported both("openrlhf", at + "rollout: {max_new_tokens: 1000}\n");
  EXPECT_EQ(both["data.max_prompt_length"], "2000") << "what a completion leaves of max_len";
  EXPECT_EQ(both["data.max_response_length"], "1000");
  EXPECT_EQ(both["data.truncation"], "\"left\"");
  EXPECT_EQ(both["model.dtype"], "\"bfloat16\"") << "param_dtype, since 0.9.10";
  EXPECT_FALSE(both.differs("data.max_len"));
  EXPECT_TRUE(Imported("openrlhf", at).differs("data.max_len"));
  const Imported older("openrlhf", "prompt_data: d\n");
  EXPECT_EQ(older["data.max_prompt_length"], "1024");
  EXPECT_EQ(older["data.truncation"], "\"right\"");
  EXPECT_EQ(older["model.dtype"], "-");

  const Imported parts("openrlhf",
                       "reward: {overlong_buffer_len: 64, overlong_penalty_factor: 2, "
                       "stop_properly_penalty_coef: 0.5}\nds: {lora: {rank: 8}}\n"
                       "critic: {freezing_steps: 9}\n");
  EXPECT_EQ(parts["algorithm.overlong_buffer.len"], "64");
  EXPECT_EQ(parts["algorithm.overlong_buffer.penalty_factor"], "2.0");
  for (const char* key :
       {"reward.stop_properly_penalty_coef", "ds.lora.rank", "critic.freezing_steps"})
    EXPECT_TRUE(parts.differs(key)) << key;
}

TEST(Conversions, OpenRlhfsEstimators) {
  const auto of = [](const std::string& name) {
    return Imported("openrlhf",
                    "prompt_data: d\nn_samples_per_prompt: 4\nreward_clip_range: "
                    "[-5, 5]\nno_advantage_std_norm: true\nadvantage_estimator: " +
                        name + "\n");
  };
  EXPECT_EQ(of("rloo")["algorithm.advantage_batch_normalize"], "-");
  EXPECT_EQ(of("reinforce_baseline")["algorithm.advantage_batch_normalize"], "true");
  EXPECT_EQ(of("group_norm")["algorithm.norm_adv_by_std_in_grpo"], "true")
      << "the flag is for whitening alone";
  EXPECT_FALSE(of("group_norm").differs("no_advantage_std_norm"));
  EXPECT_TRUE(of("reinforce").differs("no_advantage_std_norm"));
  EXPECT_EQ(of("reinforce")["reward.clip"], "[-5.0,5.0]");
  EXPECT_EQ(of("rloo")["reward.clip"], "-") << "it clips what the group's mean leaves";
  EXPECT_TRUE(of("rloo").differs("reward_clip_range"));
}

TEST(Conversions, VerlsCriteriaOfRejection) {
  const auto of = [](const std::string& rs, const std::string& threshold,
                     const std::string& more = "") {
    return Imported("verl", "algorithm: {rollout_correction: {rollout_rs: " + rs +
                                ", rollout_rs_threshold: " + threshold + more + "}}\n");
  };
  const Imported older = of("token", "5.0", ", rollout_rs_threshold_lower: 0.5");
  EXPECT_EQ(older["algorithm.rollout_rs"], "\"token\"");
  EXPECT_EQ(older["algorithm.rollout_rs_threshold"], "5.0");
  EXPECT_EQ(older["algorithm.rollout_rs_threshold_lower"], "0.5");
  const Imported newer = of("token_k1", "\"0.5_5.0\"");
  EXPECT_EQ(newer["algorithm.rollout_rs_threshold"], "2.0") << "its k1 is of the reverse ratio";
  EXPECT_EQ(newer["algorithm.rollout_rs_threshold_lower"], "0.2");
  EXPECT_EQ(of("seq_mean_k1", "1.01")["algorithm.rollout_rs_threshold_lower"], "-");
  const Imported open = of("token_k1", "\"0.0_2.0\"");
  EXPECT_EQ(open["algorithm.rollout_rs_threshold"], "1000000.0") << "none";
  EXPECT_EQ(open["algorithm.rollout_rs_threshold_lower"], "0.5");
  for (const char* nothing : {"\"0_0\"", "\"0.1_0.5\""})
    EXPECT_EQ(of("token_k1", nothing)["algorithm.rollout_rs"], "-") << "it takes no token";
  const Imported k3 = of("seq_mean_k3", "0.01");
  EXPECT_EQ(k3["algorithm.rollout_rs"], "\"seq_mean_k3\"");
  EXPECT_EQ(k3["algorithm.rollout_rs_threshold"], "0.01");
  EXPECT_FALSE(k3.differs("algorithm.rollout_correction.rollout_rs"));
  const Imported several = of("\"seq_mean_k3, token_k1,seq_max_k2\"", "\"0.01,0.5_4,2\"");
  EXPECT_EQ(several["algorithm.rollout_rs"], "\"token_k1\"") << "it alone has two bounds";
  EXPECT_EQ(several["algorithm.rollout_rs_threshold"], "2.0");
  EXPECT_EQ(several["algorithm.rollout_rs_threshold_lower"], "0.25");
  EXPECT_EQ(several["algorithm.rollout_rs_also"], "{\"seq_max_k2\":2.0,\"seq_mean_k3\":0.01}");
  const Imported shared = of("\"token_k2,seq_sum_k3\"", "0.5");
  EXPECT_EQ(shared["algorithm.rollout_rs_also"], "{\"seq_sum_k3\":0.5}");
  const std::string rs = "algorithm.rollout_correction.rollout_rs";
  EXPECT_TRUE(of("\"token_k1,seq_sum_k1\"", "\"0.5_4,0.1_2\"").differs(rs + "_threshold"));
  EXPECT_TRUE(of("block_k7", "2").differs(rs));
  EXPECT_TRUE(of("token_k1", "\"1.5_2\"").differs(rs + "_threshold"));
  EXPECT_EQ(of("token_k1", "\"1.5_2\"")["algorithm.rollout_rs"], "-");
}

TEST(Conversions, VerlsCorrections) {
  const auto of = [](const std::string& keys) {
    return Imported("verl", "algorithm: {rollout_correction: {" + keys + "}}\n");
  };
  const Imported icepop = of("rollout_is: sequence, rollout_is_threshold: \"0.5_5.0\"");
  EXPECT_EQ(icepop["algorithm.rollout_is"], "\"sequence\"");
  EXPECT_EQ(icepop["algorithm.rollout_rs"], "\"sequence\"");
  EXPECT_EQ(icepop["algorithm.rollout_rs_threshold"], "5.0") << "of the ratio as it is";
  EXPECT_EQ(icepop["algorithm.rollout_rs_threshold_lower"], "0.5");
  const Imported both =
      of("rollout_is: token, rollout_is_threshold: \"0.5_5.0\", rollout_rs: token_k1, "
         "rollout_rs_threshold: 3, rollout_is_batch_normalize: true");
  EXPECT_EQ(both["algorithm.rollout_rs_threshold"], "3.0") << "both take what lies between";
  EXPECT_EQ(both["algorithm.rollout_rs_threshold_lower"], "0.5");
  EXPECT_EQ(both["algorithm.rollout_is_batch_normalize"], "true");
  EXPECT_EQ(of("rollout_is_batch_normalize: true")["algorithm.rollout_is_batch_normalize"], "-")
      << "there are no weights";
  const Imported veto = of("rollout_token_veto_threshold: 1.0e-4");
  EXPECT_EQ(veto["algorithm.rollout_token_veto_threshold"], "0.0001");
  EXPECT_FALSE(veto.differs("algorithm.rollout_correction.rollout_token_veto_threshold"));
}

TEST(Conversions, SkyrlsMasks) {
  const std::string at =
      "trainer: {policy: {model: {path: x}}, algorithm: {off_policy_correction: ";
  const Imported both("skyrl", at + "{token_mask_is_threshold_low: 0.1, "
                                    "token_mask_is_threshold_high: 5, sequence_mask_metric: "
                                    "product, outlier_token_is_threshold_low: 1.0e-4}}}\n");
  EXPECT_EQ(both["algorithm.rollout_rs"], "\"token\"");
  EXPECT_EQ(both["algorithm.rollout_rs_threshold_lower"], "0.1");
  EXPECT_EQ(both["algorithm.rollout_rs_also"], "{\"sequence\":2.0}");
  EXPECT_EQ(both["algorithm.rollout_token_veto_threshold"], "0.0001");
  EXPECT_EQ(both["algorithm.bypass_mode"], "false");
  EXPECT_EQ(
      Imported("skyrl", at + "{token_mask_is_threshold_low: 0.1}}}\n")["algorithm.rollout_rs"], "-")
      << "SkyRL asks for both bounds";
}

TEST(Conversions, ArealsDivergences) {
  const auto of = [](const std::string& keys) {
    return Imported("areal",
                    "gconfig: {n_samples: 4}\nactor: {use_decoupled_loss: true, "
                    "rejection_sampling: {" +
                        keys + "}}\n");
  };
  const Imported k2 = of("metric: kl_k2, level: sequence, agg: max, upper: 0.5");
  EXPECT_EQ(k2["algorithm.rollout_rs"], "\"seq_max_k2\"");
  EXPECT_EQ(k2["algorithm.rollout_rs_threshold"], "0.5");
  EXPECT_EQ(k2["algorithm.rollout_is_threshold"], "1000000.0");
  EXPECT_FALSE(k2.differs("actor.rejection_sampling.metric"));
  const Imported k1 = of("metric: kl_k1, level: token, upper: 0.5");
  EXPECT_EQ(k1["algorithm.rollout_rs"], "\"token\"");
  EXPECT_EQ(k1["algorithm.rollout_rs_threshold_lower"], "0.0") << "it has no lower bound";
  EXPECT_EQ(k1["algorithm.rollout_rs_threshold"].substr(0, 6), "1.6487");
  const Imported k3 = of("metric: kl_k3, level: token, upper: 0.5");
  EXPECT_EQ(k3["algorithm.rollout_rs"], "-") << "it is of the reverse ratio";
  EXPECT_TRUE(k3.differs("actor.rejection_sampling.metric"));
}

TEST(Conversions, PrimeRlsLosses) {
  const auto of = [](const std::string& loss) {
    return Imported("prime-rl",
                    "orchestrator: {batch_size: 64, rollouts_per_example: 8}\ntrainer: {loss: {" +
                        loss + "}}\n");
  };
  const Imported masked =
      of("ratio_type: token, mask_ratio_high: 4, sequence_mask_ratio_low: 1.0e-3");
  EXPECT_FALSE(masked.differs("trainer.loss.ratio_type"));
  EXPECT_EQ(masked["algorithm.rollout_rs"], "\"token\"");
  EXPECT_EQ(masked["algorithm.rollout_rs_threshold"], "4.0");
  EXPECT_EQ(masked["algorithm.rollout_rs_threshold_lower"], "0.125");
  EXPECT_EQ(masked["algorithm.rollout_token_veto_threshold"], "0.001");
  EXPECT_EQ(masked["algorithm.clip_ratio_low"], "1.0");
  EXPECT_EQ(masked["algorithm.clip_ratio_c"], "null");
  EXPECT_TRUE(of("ratio_type: sequence").differs("trainer.loss.ratio_type"));
  EXPECT_TRUE(of("mask_ratio_high: 4, kl_tau: 0.1").differs("trainer.loss.kl_tau"));
  const Imported open = of("dppo_mask_low: 1, dppo_mask_high: 1, kl_tau: 0");
  EXPECT_FALSE(open.differs("trainer.loss.kl_tau"));
  EXPECT_EQ(open["algorithm.clip_ratio_high"], "1000000.0");
  EXPECT_EQ(open["algorithm.rollout_rs"], "-");
  EXPECT_TRUE(
      of("dppo_mask_low: 0.2, dppo_mask_high: 1, kl_tau: 0").differs("trainer.loss.dppo_mask_low"));
  EXPECT_TRUE(of("adv_tau: 1").differs("trainer.loss.adv_tau")) << "the default masks";
}

TEST(Conversions, OpenRlhfsCorrectionsFiltersAndAsynchrony) {
  const std::string on = "prompt_data: d\nenable_vllm_is_correction: true\n";
  EXPECT_EQ(Imported("openrlhf", on)["algorithm.rollout_is_threshold"], "2.0");
  const Imported mask("openrlhf", on + "vllm_is_correction_type: seq-mask-tis\n"
                                       "vllm_is_truncated_threshold: [0.999, 1.002]\n");
  EXPECT_EQ(mask["algorithm.rollout_is_threshold"], "1000000.0") << "weights are not cut";
  EXPECT_EQ(mask["algorithm.rollout_rs_threshold"], "1.002");
  const Imported level("openrlhf",
                       "data: {prompt_dataset: d}\nalgo: {advantage: "
                       "{is_correction_level: token, is_correction_mode: mask}}\n");
  EXPECT_EQ(level["algorithm.rollout_rs"], "\"token\"");
  EXPECT_EQ(level["algorithm.rollout_is_threshold"], "5.0");
  const Imported other("openrlhf", "prompt_data: d\ndynamic_filtering: true\nasync_train: true\n");
  EXPECT_EQ(other["algorithm.filter_groups.max_num_gen_batches"], "1000000");
  EXPECT_EQ(other["algorithm.bypass_mode"], "false");
}

TEST(Conversions, NemoRls) {
  const Imported stop("nemo-rl",
                      "grpo: {reward_shaping: {enabled: true, overlong_buffer_length: "
                      "64, stop_properly_penalty_coef: 0.1}}\n");
  EXPECT_EQ(stop["algorithm.overlong_buffer.len"], "-") << "the coefficient replaces the buffer";
  EXPECT_TRUE(stop.differs("grpo.reward_shaping.stop_properly_penalty_coef"));
  const Imported most("nemo-rl",
                      "grpo: {reward_shaping: {enabled: true, max_response_length: "
                      "100}}\n");
  EXPECT_EQ(most["algorithm.overlong_buffer.len"], "128");
  EXPECT_TRUE(most.differs("grpo.reward_shaping.max_response_length"));
  const Imported mask("nemo-rl",
                      "loss_fn: {use_importance_sampling_correction: true, "
                      "truncated_importance_sampling_ratio: 1.002, "
                      "truncated_importance_sampling_type: seq-mask-tis}\n");
  EXPECT_EQ(mask["algorithm.rollout_is_threshold"], "1000000.0");
  EXPECT_EQ(mask["algorithm.rollout_rs_threshold"], "1.002");
  EXPECT_EQ(
      Imported("nemo-rl",
               "grpo: {adv_estimator: {name: reinforce_plus_plus}}\n")["algorithm.adv_estimator"],
      "\"grpo\"");
}

TEST(Conversions, Verls) {
  const std::string is =
      "actor_rollout_ref: {rollout: {n: 4}}\nalgorithm: {adv_estimator: grpo, "
      "rollout_correction: {rollout_is: token, bypass_mode: ";
  EXPECT_EQ(Imported("verl", is + "false}}\n")["algorithm.rollout_is"], "\"token\"");
  const Imported bypass("verl", is + "true}}\n");
  EXPECT_EQ(bypass["algorithm.rollout_is"], "-") << "metrics alone, since 0.7";
  EXPECT_EQ(bypass["algorithm.bypass_mode"], "true");
  const Imported newer("verl",
                       "actor_rollout_ref: {rollout: {n: 4}, model: {lora: {rank: 8}}}\n"
                       "trainer: {v1: {trainer_mode: separate_async}}\n");
  EXPECT_EQ(newer["async.max_staleness"], "8");
  EXPECT_EQ(newer["async.trigger_parameter_sync_step"], "4");
  EXPECT_TRUE(newer.differs("trainer.v1.trainer_mode"));
  EXPECT_TRUE(newer.differs("actor_rollout_ref.model.lora.rank"));
}

TEST(Conversions, VerlsShareOfStaleSamples) {
  const auto imported = [](const std::string& threshold, int period) {
    return Imported("verl",
                    "actor_rollout_ref: {rollout: {n: 4}}\nasync_training: "
                    "{staleness_threshold: " +
                        threshold + ", trigger_parameter_sync_step: " + std::to_string(period) +
                        "}\n");
  };
  constexpr const char* kKey = "async_training.staleness_threshold";
  struct Case {
    const char* threshold;
    int period;
    const char *ahead, *stale;
    bool differs;
  };
  for (const Case& one : {Case{"0", 4, "3", "3", false}, Case{"0.5", 4, "5", "7", false},
                          Case{"1", 1, "1", "1", false}, Case{"0.7", 10, "16", "19", false},
                          Case{"0.1", 4, "4", "7", true}, Case{"0.5", 1, "1", "1", true},
                          Case{"-1", 4, "3", "3", true}, Case{"1e300", 4, "64", "64", true}}) {
    const Imported job = imported(one.threshold, one.period);
    SCOPED_TRACE(one.threshold);
    EXPECT_EQ(job["async.lookahead"], one.ahead);
    EXPECT_EQ(job["async.max_staleness"], one.stale);
    EXPECT_EQ(job.differs(kKey), one.differs);
  }
  EXPECT_TRUE(imported("0.1", 4).says("rounded up to 0.25"));
}

TEST(Conversions, Trls) {
  const Imported usual("trl",
                       "num_generations: 4\nbeta: 0.04\nentropy_coef: 0.01\n"
                       "dtype: float32\nreward_funcs: [get_soft_overlong_punishment]\n");
  EXPECT_EQ(usual["data.max_response_length"], "512") << "since 1.10";
  EXPECT_EQ(usual["algorithm.entropy_coeff"], "0.01");
  EXPECT_EQ(usual["model.dtype"], "\"bfloat16\"") << "bf16 casts whatever dtype says";
  EXPECT_EQ(usual["algorithm.overlong_buffer.len"], "256");
  EXPECT_TRUE(usual.differs("beta"));
  EXPECT_FALSE(Imported("trl", "num_generations: 4\nbeta: 0.04\nuse_bias_correction_kl: false\n")
                   .differs("beta"));
  const Imported ahead("trl", "num_generations: 4\nqueue_maxsize: 16\n");
  EXPECT_EQ(ahead["async.max_staleness"], "4");
  EXPECT_EQ(ahead["data.max_response_length"], "2048");
  EXPECT_EQ(ahead["learner.optimizer.lr_scheduler_type"], "\"constant\"");
}

TEST(Conversions, Areals) {
  const std::string at =
      "gconfig: {n_samples: 4, temperature: 0.9}\nvalid_dataset: {path: v}\n"
      "actor: {mask_no_eos_with_zero: true, use_decoupled_loss: true, "
      "importance_sampling_level: sequence";
  const Imported plain("areal", at + "}\n");
  EXPECT_EQ(plain["data.total_epochs"], "1");
  EXPECT_EQ(plain["algorithm.bypass_mode"], "false");
  EXPECT_EQ(plain["algorithm.rollout_is"], "-") << "weights come with rejection_sampling";
  EXPECT_EQ(plain["eval.temperature"], "0.9");
  EXPECT_EQ(plain["eval.n"], "4");
  EXPECT_EQ(plain["algorithm.mask_truncated_completions"], "-");
  for (const char* key :
       {"actor.mask_no_eos_with_zero", "actor.importance_sampling_level", "actor.kl_ctl"})
    EXPECT_TRUE(plain.differs(key)) << key;
  const Imported sum("areal", at + ", rejection_sampling: {level: sequence, agg: sum}}\n");
  EXPECT_EQ(sum["algorithm.rollout_rs"], "\"sequence\"");
  const Imported most("areal", at + ", rejection_sampling: {level: sequence, agg: max}}\n");
  EXPECT_EQ(most["algorithm.rollout_rs"], "-");
  EXPECT_TRUE(most.differs("actor.rejection_sampling.agg"));
}

TEST(Conversions, PrimeRls) {
  const Imported job("prime-rl",
                     "orchestrator: {train: {filter_zero_advantages: true, sampling: "
                     "{min_tokens: 3, repetition_penalty: 1.1}}, filters: [{type: "
                     "gibberish, enforce: true}], algo: {type: opd}}\n");
  EXPECT_EQ(job["algorithm.filter_groups.enable"], "-") << "its groups are not replaced";
  EXPECT_EQ(job["rollout.min_tokens"], "3");
  for (const char* key : {"orchestrator.train.sampling.repetition_penalty", "orchestrator.filters",
                          "orchestrator.algo.type"})
    EXPECT_TRUE(job.differs(key)) << key;
  EXPECT_FALSE(Imported("prime-rl", "orchestrator: {filters: [{type: gibberish}]}\n")
                   .differs("orchestrator.filters"));
}

TEST(Conversions, SkyRls) {
  const Imported job("skyrl",
                     "trainer: {max_training_steps: 9, policy: {model: {path: /m}}, "
                     "fully_async: {enabled: true}, algorithm: {loss_reduction: "
                     "prompt_mean, off_policy_correction: {token_mask_is_threshold_low: "
                     "0.5, token_mask_is_threshold_high: 3, "
                     "outlier_token_is_threshold_low: 1e-4}}}\n");
  EXPECT_EQ(job["learner.total_training_steps"], "9");
  EXPECT_EQ(job["data.total_epochs"], "-");
  EXPECT_EQ(job["algorithm.bypass_mode"], "false");
  EXPECT_EQ(job["algorithm.rollout_rs"], "\"token\"");
  EXPECT_EQ(job["algorithm.rollout_rs_threshold"], "3.0");
  EXPECT_EQ(job["algorithm.rollout_rs_threshold_lower"], "0.5");
  EXPECT_EQ(job["algorithm.rollout_token_veto_threshold"], "0.0001");
  EXPECT_TRUE(job.differs("trainer.algorithm.loss_reduction"));
}

}  // namespace
}  // namespace tandem::translate
