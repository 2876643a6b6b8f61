#include "actors/controller/evaluation.h"

#include <algorithm>

namespace tandem::actors {

const char* name(EvaluationKind kind) {
  switch (kind) {
    case EvaluationKind::kBefore:
      return "before";
    case EvaluationKind::kAfterWarmStart:
      return "after_warm_start";
    case EvaluationKind::kPeriodic:
      return "periodic";
    case EvaluationKind::kFinal:
      return "final";
  }
  return "";
}

Evaluation::Evaluation(EvaluationId id, EvaluationKind kind, PolicyVersion version,
                       std::int32_t prompts)
    : id_(id), kind_(kind), version_(version), prompts_total_(prompts) {
  for (std::int32_t i = 0; i < prompts; ++i) prompts_.push_back(i);
}

std::vector<std::int32_t> Evaluation::take_prompts(const std::string& rollout, std::size_t count) {
  std::vector<std::int32_t> taken;
  for (; !prompts_.empty() && taken.size() < count; prompts_.pop_front())
    taken.push_back(prompts_.front());
  auto& held = generating_[rollout];
  held.insert(held.end(), taken.begin(), taken.end());
  return taken;
}

void Evaluation::generated(const std::string& rollout, std::vector<EvaluationText> texts,
                           const std::vector<std::int32_t>& unservable) {
  const auto it = generating_.find(rollout);
  if (it == generating_.end()) return;
  for (EvaluationText& text : texts)
    if (std::erase(it->second, text.index) > 0) texts_.push_back(std::move(text));
  for (const std::int32_t index : unservable)
    if (std::erase(it->second, index) > 0)
      count_failure(
          "the prompt cannot be served: too long, "
          "or not to be encoded");
  if (it->second.empty()) generating_.erase(it);
}

std::vector<EvaluationText> Evaluation::take_texts(const std::string& reward, std::size_t count) {
  std::vector<EvaluationText> taken;
  auto& held = scoring_[reward];
  for (; !texts_.empty() && taken.size() < count; texts_.pop_front()) {
    held.emplace(texts_.front().index, texts_.front());
    taken.push_back(std::move(texts_.front()));
  }
  return taken;
}

std::vector<Evaluation::Judged> Evaluation::scored(const std::string& reward,
                                                   const std::vector<TextScore>& scores) {
  std::vector<Judged> judged;
  const auto it = scoring_.find(reward);
  if (it == scoring_.end()) return judged;
  for (const TextScore& score : scores) {
    auto held = it->second.extract(score.index);
    if (held.empty()) continue;
    if (const auto* value = std::get_if<Scored>(&score.score)) {
      values_[score.index] = value->value;
      ++scored_;
    } else {
      count_failure(std::get<ScoreFailed>(score.score).reason);
    }
    judged.push_back({std::move(held.mapped()), score.score});
  }
  if (it->second.empty()) scoring_.erase(it);
  return judged;
}

void Evaluation::actor_down(const std::string& actor) {
  if (auto held = generating_.extract(actor); !held.empty())
    prompts_.insert(prompts_.end(), held.mapped().begin(), held.mapped().end());
  if (auto held = scoring_.extract(actor); !held.empty())
    for (auto& [index, text] : held.mapped()) texts_.push_back(std::move(text));
}

void Evaluation::fail_waiting() {
  for (; !prompts_.empty(); prompts_.pop_front()) count_failure("its version is gone");
}

void Evaluation::count_failure(const std::string& reason) {
  if (failed_++ == 0) failure_ = reason;
}

bool Evaluation::held_by(const std::string& actor) const {
  return generating_.contains(actor) || scoring_.contains(actor);
}

std::optional<double> Evaluation::mean() const {
  if (values_.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [index, value] : values_) sum += value;
  return sum / static_cast<double>(values_.size());
}

}  // namespace tandem::actors
