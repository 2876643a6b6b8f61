// Work moves along a line: prompts_, generating_ (by rollout), texts_, scoring_ (by reward actor),
// means_. Each completion reaches means_ once: a held set is checked before an answer counts, and
// an actor that ends puts its work back to where it came from.
#include "actors/exchange/evaluation.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/reward_extras.h"

namespace tandem::exchange {

Evaluation::Evaluation(messages::EvaluationId id, EvaluationKind kind, PolicyVersion version,
                       const EvaluationPlan& plan, Time began)
    : id_(id),
      kind_(kind),
      version_(version),
      began_(began),
      completions_(completions_of(plan.sampling)),
      completions_in_all_(std::int64_t{plan.prompts} * completions_),
      means_(plan) {
  for (std::int32_t i = 0; i < plan.prompts; ++i) prompts_.push_back(i);
}

std::vector<std::int32_t> Evaluation::take_prompts(const std::string& rollout, std::size_t count,
                                                   const MayHave& may) {
  std::vector<std::int32_t> taken;
  std::erase_if(prompts_, [&](std::int32_t index) {
    if (taken.size() == count || (may && !may(index))) return false;
    taken.push_back(index);
    return true;
  });
  if (!taken.empty()) generating_[rollout].insert(taken.begin(), taken.end());
  return taken;
}

bool Evaluation::prompt_waits(std::int32_t index) const {
  return std::ranges::find(prompts_, index) != prompts_.end();
}

std::set<std::int32_t> Evaluation::prompts_of(const std::string& rollout) const {
  const auto held = generating_.find(rollout);
  return held == generating_.end() ? std::set<std::int32_t>{} : held->second;
}

void Evaluation::generated(const std::string& rollout, std::vector<messages::EvaluationText> texts,
                           const std::vector<std::int32_t>& unservable) {
  const auto it = generating_.find(rollout);
  if (it == generating_.end()) return;
  for (messages::EvaluationText& text : texts) take_text(it->second, std::move(text));
  for (const std::int32_t index : unservable)
    if (it->second.erase(index) > 0)
      fail_prompt(index, "the prompt cannot be served: too long, or not to be encoded");
  if (it->second.empty()) generating_.erase(it);
}

void Evaluation::take_text(std::set<std::int32_t>& held, messages::EvaluationText text) {
  const std::int32_t index = text.index;
  // A late part of a prompt that another rollout has meanwhile, or an index that was never asked
  // for.
  if (!held.contains(index) || text.sample < 0 || text.sample >= completions_) return;
  auto& come = come_[index];
  if (come.insert(text.sample).second) texts_.push_back(std::move(text));
  if (std::ssize(come) < completions_) return;
  // All completions are here: the rollout holds this prompt no longer.
  come_.erase(index);
  held.erase(index);
}

std::vector<messages::EvaluationText> Evaluation::take_texts(const std::string& reward,
                                                             std::size_t count) {
  std::vector<messages::EvaluationText> taken;
  auto& held = scoring_[reward];
  for (; !texts_.empty() && taken.size() < count; texts_.pop_front()) {
    messages::EvaluationText& text = texts_.front();
    held.emplace(CompletionId{text.index, text.sample}, text);
    taken.push_back(std::move(text));
  }
  return taken;
}

std::vector<Evaluation::Judged> Evaluation::scored(const std::string& reward,
                                                   const std::vector<messages::TextScore>& scores) {
  std::vector<Judged> judged;
  const auto it = scoring_.find(reward);
  if (it == scoring_.end()) return judged;
  for (const messages::TextScore& score : scores) {
    const CompletionId completion{score.index, score.sample};
    // The completion is taken out, so that a repeated score finds nothing.
    auto held = it->second.extract(completion);
    if (held.empty()) continue;
    if (const auto* scored = std::get_if<messages::Scored>(&score.score))
      means_.scored(completion, {scored->value, scored->vote, numbers_in(scored->extra)});
    else
      fail(completion, std::get<messages::ScoreFailed>(score.score).reason);
    judged.push_back({std::move(held.mapped()), score.score});
  }
  if (it->second.empty()) scoring_.erase(it);
  return judged;
}

void Evaluation::actor_down(const std::string& actor) {
  if (auto held = generating_.extract(actor); !held.empty())
    prompts_.insert(prompts_.end(), held.mapped().begin(), held.mapped().end());
  if (auto held = scoring_.extract(actor); !held.empty())
    for (auto& [completion, text] : held.mapped()) texts_.push_back(std::move(text));
}

void Evaluation::fail_waiting() {
  for (; !prompts_.empty(); prompts_.pop_front())
    fail_prompt(prompts_.front(), "its version is gone");
}

void Evaluation::fail_waiting(std::int32_t index, const std::string& reason) {
  if (std::erase(prompts_, index) > 0) fail_prompt(index, reason);
}

// Fails the completions that have not arrived; those that have are scored all the same.
void Evaluation::fail_prompt(std::int32_t index, const std::string& reason) {
  const auto come = come_.extract(index);
  for (std::int32_t sample = 0; sample < completions_; ++sample)
    if (come.empty() || !come.mapped().contains(sample)) fail({index, sample}, reason);
}

void Evaluation::fail(CompletionId completion, const std::string& reason) {
  if (failure_.empty()) failure_ = reason;
  means_.failed(completion);
}

bool Evaluation::held_by(const std::string& actor) const {
  return generating_.contains(actor) || scoring_.contains(actor);
}

}  // namespace tandem::exchange
