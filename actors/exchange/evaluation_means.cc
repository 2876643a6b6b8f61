// A prompt is summarised when its last outcome comes, in the order of its samples, and figures()
// adds the summaries in the order of the prompts. The order in which outcomes come thus changes no
// bit of a figure (EM-2).
#include "actors/exchange/evaluation_means.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/rng.h"

namespace tandem::actors {
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

EvaluationMeans::EvaluationMeans(const EvaluationPlan& plan)
    : sampling_(plan.sampling),
      sources_(plan.sources),
      pass_sizes_(pass_sizes(plan.sampling.n)),
      prompts_(static_cast<std::size_t>(plan.prompts)),
      outcomes_left_(std::int64_t{plan.prompts} * completions_of(plan.sampling)) {
  CHECK(sources_.of_prompt.empty() || sources_.of_prompt.size() == prompts_.size());
}

void EvaluationMeans::take(CompletionId completion, std::optional<double> reward) {
  const std::int32_t completions = completions_of(sampling_);
  Open& open = open_[completion.index];
  // Prompts are opened by their first outcome, so that memory grows with the work under way.
  if (open.rewards.empty()) {
    open.rewards.resize(static_cast<std::size_t>(completions));
    open.outcomes_left = completions;
  }
  open.rewards.at(static_cast<std::size_t>(completion.sample)) = reward;
  --outcomes_left_;
  if (--open.outcomes_left > 0) return;
  prompts_.at(static_cast<std::size_t>(completion.index)) = closed(open);
  open_.erase(completion.index);
}

EvaluationMeans::Prompt EvaluationMeans::closed(const Open& open) const {
  Prompt prompt;
  double sum = 0;
  const auto n = static_cast<std::size_t>(sampling_.n);
  for (std::size_t i = 0; i < open.rewards.size(); ++i) {
    const std::optional<double>& reward = open.rewards[i];
    if (!reward) {
      ++prompt.failed;
      // Sample n, behind the n sampled ones, is the greedy completion (EvaluationSampling).
    } else if (i == n) {
      prompt.greedy = reward;
    } else {
      sum += *reward;
      ++prompt.samples.scored;
      prompt.samples.succeeded += *reward > kSuccessAbove ? 1 : 0;
    }
  }
  if (prompt.samples.scored > 0) prompt.mean = sum / prompt.samples.scored;
  return prompt;
}

// Of all prompts, or of one source's.
struct EvaluationMeans::Sums {
  struct Sum {
    double total = 0;
    std::int64_t prompts = 0;
    void add(double value) {
      total += value;
      ++prompts;
    }
    std::optional<double> mean() const {
      if (prompts == 0) return std::nullopt;
      return total / static_cast<double>(prompts);
    }
  };
  Sum reward, greedy;
  std::vector<Sum> pass;  // of each of pass_sizes_
  std::int64_t scored = 0, failed = 0;

  // A prompt without enough scored samples is in no mean (EM-1, EM-3); its counts are added.
  void add(const Prompt& prompt, const std::vector<std::int32_t>& sizes) {
    pass.resize(sizes.size());
    failed += prompt.failed;
    scored += prompt.samples.scored + (prompt.greedy ? 1 : 0);
    if (prompt.samples.scored > 0) reward.add(prompt.mean);
    if (prompt.greedy) greedy.add(*prompt.greedy);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (prompt.samples.scored >= sizes[i]) pass[i].add(pass_at(sizes[i], prompt.samples));
  }

  RewardFigures figures(const std::vector<std::int32_t>& sizes) const {
    RewardFigures figures{.mean = reward.mean(),
                          .greedy = greedy.mean(),
                          .pass = {},
                          .scored = scored,
                          .failed = failed};
    for (std::size_t i = 0; i < pass.size(); ++i)
      if (const auto value = pass[i].mean()) figures.pass.push_back({sizes[i], *value});
    return figures;
  }
};

EvaluationFigures EvaluationMeans::figures() const {
  Sums all;
  std::vector<Sums> of_source(sources_.names.size());
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    all.add(prompts_[i], pass_sizes_);
    if (!sources_.of_prompt.empty() && sources_.of_prompt[i])
      of_source[*sources_.of_prompt[i]].add(prompts_[i], pass_sizes_);
  }
  EvaluationFigures figures{.all = all.figures(pass_sizes_), .sources = {}};
  for (std::size_t i = 0; i < of_source.size(); ++i)
    figures.sources.emplace_back(sources_.names[i], of_source[i].figures(pass_sizes_));
  // By name, so that files and views of two runs can be compared.
  std::ranges::sort(figures.sources, {}, [](const auto& source) { return source.first; });
  return figures;
}

}  // namespace tandem::actors
