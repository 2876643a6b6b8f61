// The means of one evaluation, from the outcomes of its completions in whatever order they come.
// Pure arithmetic; the exchange's evaluations and `tandem eval` use it.
//
// Letters: n samples of a prompt, of which s have a score and c succeed; k samples are drawn.
//
//   EM-1  A completion that failed is in no mean: it is counted, and never a reward of 0.
//   EM-2  A mean is that of its prompts' means, so each prompt weighs the same; sums are taken in
//         the order of samples and prompts, so figures repeat to the bit.
//   EM-3  pass@k is the mean over prompts with s >= k of 1 - C(s-c, k) / C(s, k), the unbiased
//         estimate of arXiv:2107.03374. Other prompts are left out.
//   EM-4  maj@k is the mean over the same prompts of the reward of the answer that most of k
//         samples vote for: the mean over the s/k blocks of k scored samples that follow each
//         other. Among answers with equally many votes the earliest wins; a sample without an
//         answer has no vote, and a block without any vote has its first sample's reward.
//   EM-5  The mean of a number of the reward's `extra` is taken as that of rewards, over the
//         samples that have it. Only the first kExtraKeysMax names in their order have means, so
//         that figures do not depend on which outcomes come first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/messages/evaluation_figures.h"
#include "actors/messages/rollout.h"

namespace tandem::exchange {

inline constexpr std::size_t kExtraKeysMax = 32;  // numbers of `extra` that become metrics
inline constexpr double kSuccessAbove = 0.5;      // a sample with a reward above this succeeds
inline constexpr std::size_t kSourcesMax = 64;    // sources with figures of their own
inline constexpr std::size_t kSourceCharsMax = 64;
inline constexpr const char* kOtherSources = "other_sources";  // all beyond kSourcesMax

// Which data set each prompt is from, by names that are safe in keys, labels and on terminals.
struct EvaluationSources {
  std::vector<std::string> names;                      // each once; at most kSourcesMax + 1
  std::vector<std::optional<std::uint8_t>> of_prompt;  // into `names`; empty: no prompt has one
};
// `data_source`: the name of each prompt's data set; nullopt or empty where it has none. The first
// kSourcesMax names keep figures of their own, the others share kOtherSources.
EvaluationSources sources_of(const std::vector<std::optional<std::string>>& data_source);
// The name in letters, digits, `.`, `_` and `-`, with a `_` for any other character; at most
// kSourceCharsMax characters.
std::string source_name(std::string_view data_source);

// How many prompts are evaluated, and how each is completed.
struct EvaluationPlan {
  std::int32_t prompts = 0;
  messages::EvaluationSampling sampling;
  std::uint64_t seed = 0;
  EvaluationSources sources;
  double failure_reward = 0;  // used for RewardFigures::mean_with_failures
};
// The seed of a prompt. It follows from the job's seed and the prompt's place alone, so that an
// evaluation repeats.
std::uint64_t prompt_seed(const EvaluationPlan& plan, std::int32_t index);

// The powers of two up to n, and n; none for n = 1.
std::vector<std::int32_t> pass_sizes(std::int32_t n);

struct SampleCount {
  std::int32_t scored = 0;     // s
  std::int32_t succeeded = 0;  // c
};
double pass_at(std::int32_t k, SampleCount samples);  // EM-3; needs s >= k

// A completion that has a score.
struct Outcome {
  double reward = 0;
  std::optional<std::uint64_t> vote = {};    // as Scored::vote
  std::map<std::string, double> extra = {};  // as numbers_in() Scored::extra
};
double majority_at(std::int32_t k, std::span<const Outcome> scored);  // EM-4; needs s >= k

struct CompletionId {
  std::int32_t index = 0;   // the number of the prompt
  std::int32_t sample = 0;  // as EvaluationText's
  auto operator<=>(const CompletionId&) const = default;
};

// Holds the rewards of prompts that lack outcomes, and a summary of the finished ones. One thread.
class EvaluationMeans {
 public:
  explicit EvaluationMeans(const EvaluationPlan& plan);

  // Each completion has exactly one outcome, scored or failed.
  void scored(CompletionId completion, Outcome outcome) { take(completion, std::move(outcome)); }
  void scored(CompletionId completion, double reward) { take(completion, Outcome{reward}); }
  void failed(CompletionId completion) { take(completion, std::nullopt); }
  bool done() const { return outcomes_left_ == 0; }
  std::int64_t outcomes_left() const { return outcomes_left_; }
  // The figures of the prompts that have all their outcomes so far.
  messages::EvaluationFigures figures() const;
  // A name of `extra` that has no mean (EM-5); empty where all of them have.
  const std::optional<std::string>& extra_left_out() const { return extra_left_out_; }

 private:
  struct Open {  // a prompt that has not all its outcomes
    std::vector<std::optional<Outcome>> outcomes;
    std::int32_t outcomes_left = 0;
  };
  struct Prompt {
    SampleCount samples;
    std::int32_t failed = 0;          // completions
    std::int32_t samples_failed = 0;  // those completions that were sampled
    double mean = 0;                  // over the samples with a score
    double mean_with_failures = 0;    // over all samples
    std::optional<double> greedy;
    std::vector<double> majority;  // for pass_sizes_ up to s; empty where no sample has a vote
  };
  struct Sums;
  void take(CompletionId completion, std::optional<Outcome> outcome);
  // The summary of a prompt that has all its outcomes.
  Prompt closed(const Open& open) const;
  void keep_extras(std::int32_t prompt, const Open& open);

  const messages::EvaluationSampling sampling_;
  const EvaluationSources sources_;
  const std::vector<std::int32_t> pass_sizes_;
  const double failure_reward_;
  // One summary per prompt; zeros until it has all its outcomes.
  std::vector<Prompt> prompts_;
  // The mean of each prompt for each number of `extra`; at most kExtraKeysMax names.
  std::map<std::string, std::vector<std::optional<double>>> extras_;
  std::optional<std::string> extra_left_out_;
  std::map<std::int32_t, Open> open_;
  std::int64_t outcomes_left_ = 0;
};

}  // namespace tandem::exchange
