// A prompt is summarised when its last outcome comes, in the order of its samples, and figures()
// adds the summaries in the order of the prompts. The order in which outcomes come thus changes no
// bit of a figure (EM-2).
#include "actors/exchange/evaluation_means.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/rng.h"

namespace tandem::exchange {
namespace {

bool is_plain(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
         c == '_' || c == '-';
}

bool continues_character(unsigned char c) { return (c & 0xC0) == 0x80; }  // in UTF-8

}  // namespace

std::string source_name(std::string_view data_source) {
  std::string name;
  for (const char c : data_source) {
    if (name.size() == kSourceCharsMax) break;
    if (!continues_character(static_cast<unsigned char>(c)))
      name += is_plain(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name.empty() ? "_" : name;
}

EvaluationSources sources_of(const std::vector<std::optional<std::string>>& data_source) {
  EvaluationSources sources;
  std::map<std::string, std::uint8_t> known;
  for (std::size_t i = 0; i < data_source.size(); ++i) {
    if (!data_source[i] || data_source[i]->empty()) continue;
    std::string name = source_name(*data_source[i]);
    // Different names may become the same source_name(); they then share figures.
    if (!known.contains(name) && known.size() >= kSourcesMax) name = kOtherSources;
    const auto [at, is_new] = known.emplace(name, static_cast<std::uint8_t>(sources.names.size()));
    if (is_new) sources.names.push_back(name);
    sources.of_prompt.resize(data_source.size());
    sources.of_prompt[i] = at->second;
  }
  return sources;
}

std::uint64_t prompt_seed(const EvaluationPlan& plan, std::int32_t index) {
  return derive_seed(plan.seed, {static_cast<std::uint64_t>(index)});
}

std::vector<std::int32_t> pass_sizes(std::int32_t n) {
  std::vector<std::int32_t> sizes;
  if (n == 1) return sizes;
  for (std::int32_t k = 1; k < n; k *= 2) sizes.push_back(k);
  sizes.push_back(n);
  return sizes;
}

// C(s-c, k) / C(s, k) is the product of (i - k) / i for i in s-c+1 … s.
double pass_at(std::int32_t k, SampleCount samples) {
  const auto [s, c] = samples;
  CHECK(k >= 1 && k <= s && c >= 0 && c <= s);
  if (s - c < k) return 1;
  // The probability that k samples without replacement all fail.
  double none = 1;
  for (std::int32_t i = s - c + 1; i <= s; ++i)
    none *= static_cast<double>(i - k) / static_cast<double>(i);
  return 1 - none;
}

double majority_at(std::int32_t k, std::span<const Outcome> scored) {
  const auto size = static_cast<std::size_t>(k);
  CHECK(k >= 1 && size <= scored.size());
  const std::size_t blocks = scored.size() / size;
  double sum = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::span<const Outcome> block = scored.subspan(i * size, size);
    const Outcome* winner = &block.front();
    std::ptrdiff_t most = 0;
    for (const Outcome& one : block) {
      if (!one.vote) continue;
      const std::ptrdiff_t votes = std::ranges::count(block, one.vote, &Outcome::vote);
      if (votes <= most) continue;
      most = votes;
      winner = &one;
    }
    sum += winner->reward;
  }
  return sum / static_cast<double>(blocks);
}

EvaluationMeans::EvaluationMeans(const EvaluationPlan& plan)
    : sampling_(plan.sampling),
      sources_(plan.sources),
      pass_sizes_(pass_sizes(plan.sampling.n)),
      failure_reward_(plan.failure_reward),
      prompts_(static_cast<std::size_t>(plan.prompts)),
      outcomes_left_(std::int64_t{plan.prompts} * completions_of(plan.sampling)) {
  CHECK(sources_.of_prompt.empty() || sources_.of_prompt.size() == prompts_.size());
}

void EvaluationMeans::take(CompletionId completion, std::optional<Outcome> outcome) {
  const std::int32_t completions = completions_of(sampling_);
  Open& open = open_[completion.index];
  // Prompts are opened by their first outcome, so that memory grows with the work under way.
  if (open.outcomes.empty()) {
    open.outcomes.resize(static_cast<std::size_t>(completions));
    open.outcomes_left = completions;
  }
  open.outcomes.at(static_cast<std::size_t>(completion.sample)) = std::move(outcome);
  --outcomes_left_;
  if (--open.outcomes_left > 0) return;
  prompts_.at(static_cast<std::size_t>(completion.index)) = closed(open);
  keep_extras(completion.index, open);
  open_.erase(completion.index);
}

EvaluationMeans::Prompt EvaluationMeans::closed(const Open& open) const {
  Prompt prompt;
  std::vector<Outcome> scored;  // samples
  double sum = 0;
  const auto n = static_cast<std::size_t>(sampling_.n);
  for (std::size_t i = 0; i < open.outcomes.size(); ++i) {
    const std::optional<Outcome>& outcome = open.outcomes[i];
    if (!outcome) {
      ++prompt.failed;
      prompt.samples_failed += i < n ? 1 : 0;
      // Sample n, behind the n sampled ones, is the greedy completion (EvaluationSampling).
    } else if (i == n) {
      prompt.greedy = outcome->reward;
    } else {
      sum += outcome->reward;
      scored.push_back(*outcome);
      prompt.samples.succeeded += outcome->reward > kSuccessAbove ? 1 : 0;
    }
  }
  prompt.samples.scored = static_cast<std::int32_t>(scored.size());
  if (!scored.empty()) prompt.mean = sum / prompt.samples.scored;
  prompt.mean_with_failures =
      (sum + prompt.samples_failed * failure_reward_) / static_cast<double>(sampling_.n);
  if (std::ranges::any_of(scored, [](const Outcome& one) { return one.vote.has_value(); }))
    for (const std::int32_t k : pass_sizes_)
      if (k <= prompt.samples.scored) prompt.majority.push_back(majority_at(k, scored));
  return prompt;
}

void EvaluationMeans::keep_extras(std::int32_t prompt, const Open& open) {
  struct Sum {
    double total = 0, count = 0;
  };
  std::map<std::string, Sum> sums;
  for (std::size_t i = 0; i < static_cast<std::size_t>(sampling_.n); ++i) {
    if (!open.outcomes[i]) continue;
    for (const auto& [name, number] : open.outcomes[i]->extra) {
      sums[name].total += number;
      sums[name].count += 1;
    }
  }
  for (const auto& [name, sum] : sums) {
    auto& means = extras_[name];
    means.resize(prompts_.size());
    means[static_cast<std::size_t>(prompt)] = sum.total / sum.count;
  }
  // A name that goes never comes back: only names before it take its place.
  while (extras_.size() > kExtraKeysMax)
    extra_left_out_ = extras_.extract(std::prev(extras_.end())).key();
}

// The sums over all prompts, or over those of one source.
struct EvaluationMeans::Sums {
  struct Sum {
    double total = 0;
    std::int64_t prompts = 0;
    // The mean so far and the sum of squares of the distances from it (Welford).
    double centre = 0, squares = 0;
    void add(double value) {
      total += value;
      ++prompts;
      const double apart = value - centre;
      centre += apart / static_cast<double>(prompts);
      squares += apart * (value - centre);
    }
    std::optional<double> mean() const {
      if (prompts == 0) return std::nullopt;
      return total / static_cast<double>(prompts);
    }
    std::optional<double> standard_error() const {
      if (prompts < 2) return std::nullopt;
      const auto count = static_cast<double>(prompts);
      return std::sqrt(squares / (count - 1) / count);
    }
  };
  Sum reward, greedy, with_failures;
  std::vector<Sum> pass, majority;  // one element for each of pass_sizes_
  std::map<std::string, Sum> extra;
  std::int64_t scored = 0, failed = 0, samples_failed = 0;

  // A prompt without enough scored samples is in no mean (EM-1, EM-3); its counts are added.
  void add(const Prompt& prompt, const std::vector<std::int32_t>& sizes) {
    pass.resize(sizes.size());
    majority.resize(sizes.size());
    failed += prompt.failed;
    samples_failed += prompt.samples_failed;
    if (prompt.samples.scored + prompt.samples_failed > 0)
      with_failures.add(prompt.mean_with_failures);
    scored += prompt.samples.scored + (prompt.greedy ? 1 : 0);
    if (prompt.samples.scored > 0) reward.add(prompt.mean);
    if (prompt.greedy) greedy.add(*prompt.greedy);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (prompt.samples.scored >= sizes[i]) pass[i].add(pass_at(sizes[i], prompt.samples));
    for (std::size_t i = 0; i < prompt.majority.size(); ++i) majority[i].add(prompt.majority[i]);
  }

  messages::RewardFigures figures(const std::vector<std::int32_t>& sizes) const {
    messages::RewardFigures figures{.mean = reward.mean(),
                                    .greedy = greedy.mean(),
                                    .pass = {},
                                    .scored = scored,
                                    .failed = failed,
                                    .standard_error = reward.standard_error()};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i < pass.size() && pass[i].prompts > 0)
        figures.pass.push_back({sizes[i], *pass[i].mean()});
      // One vote alone decides nothing: maj@1 would be the mean.
      if (i < majority.size() && majority[i].prompts > 0 && sizes[i] > 1)
        figures.majority.push_back({sizes[i], *majority[i].mean()});
    }
    for (const auto& [name, sum] : extra) figures.extra[name] = *sum.mean();
    if (samples_failed > 0 && reward.prompts > 0) figures.mean_with_failures = with_failures.mean();
    return figures;
  }
};

messages::EvaluationFigures EvaluationMeans::figures() const {
  Sums all;
  std::vector<Sums> of_source(sources_.names.size());
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const bool has_source = !sources_.of_prompt.empty() && sources_.of_prompt[i];
    for (Sums* const sums : {&all, has_source ? &of_source[*sources_.of_prompt[i]] : nullptr}) {
      if (!sums) continue;
      sums->add(prompts_[i], pass_sizes_);
      for (const auto& [name, means] : extras_)
        if (means[i]) sums->extra[name].add(*means[i]);
    }
  }
  messages::EvaluationFigures figures{.all = all.figures(pass_sizes_), .sources = {}};
  for (std::size_t i = 0; i < of_source.size(); ++i)
    figures.sources.emplace_back(sources_.names[i], of_source[i].figures(pass_sizes_));
  // Sources are sorted by name, so that files and views of two runs can be compared.
  std::ranges::sort(figures.sources, {}, [](const auto& source) { return source.first; });
  return figures;
}

}  // namespace tandem::exchange
