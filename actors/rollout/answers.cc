#include "actors/rollout/answers.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tandem::rollout {

void Answers::refuse(const Request& request, messages::UnservableReason reason,
                     std::string message) {
  if (const auto* evaluation = std::get_if<EvaluationKey>(&request.key))
    return evaluations_.unservable(*evaluation);
  const auto& [group, attempt] = std::get<GroupKey>(request.key);
  events_.push_back(GroupUnservable{group, attempt, reason, std::move(message)});
}

void Answers::complete(Request request, std::vector<messages::Trajectory> trajectories) {
  if (const auto* evaluation = std::get_if<EvaluationKey>(&request.key))
    return evaluations_.completed(*evaluation, std::move(trajectories));
  const auto& [group, attempt] = std::get<GroupKey>(request.key);
  events_.push_back(messages::GroupPayload{.group = group,
                                           .attempt = attempt,
                                           .prompt = std::move(request.prompt),
                                           .prompt_tokens = std::move(request.prompt_tokens),
                                           .trajectories = std::move(trajectories)});
}

void Answers::fail(Error error) { failure_ = std::move(error); }

std::vector<EngineEvent> Answers::take() {
  if (failure_) {
    events_.clear();
    events_.push_back(EngineFailed{*std::exchange(failure_, std::nullopt)});
  }
  for (EvaluationDone& done : evaluations_.take_done()) events_.push_back(std::move(done));
  return std::exchange(events_, {});
}

std::variant<std::vector<std::int32_t>, Unencoded> encode_prompt(const std::string& text,
                                                                 const model::Tokenizer& tokenizer,
                                                                 const EngineConfig& config) {
  using enum messages::UnservableReason;
  Result<std::vector<std::int32_t>> prompt = tokenizer.encode_prompt(text);
  if (!prompt) return Unencoded{kCannotEncode, prompt.error().message};
  if (prompt->empty()) return Unencoded{kCannotEncode, "the prompt has no tokens"};
  truncate(*prompt, config.max_prompt_length, config.truncation);
  if (std::ssize(*prompt) > config.max_prompt_length)
    return Unencoded{kPromptTooLong, "the prompt has " + std::to_string(prompt->size()) +
                                         " tokens, max_prompt_length is " +
                                         std::to_string(config.max_prompt_length)};
  return *std::move(prompt);
}

bool encode_prompt(Request& request, const model::Tokenizer& tokenizer, const EngineConfig& config,
                   Answers& answers) {
  auto prompt = encode_prompt(request.prompt, tokenizer, config);
  if (const auto* why = std::get_if<Unencoded>(&prompt)) {
    answers.refuse(request, why->reason, why->message);
    return false;
  }
  request.prompt_tokens = std::get<std::vector<std::int32_t>>(std::move(prompt));
  return true;
}

void refuse_pinned(WorkQueue& queue, PolicyVersion version, Answers& answers) {
  for (const Request& request : queue.remove([&](const Request& r) { return r.pinned == version; }))
    answers.refuse(request, messages::UnservableReason::kVersionGone,
                   "version " + std::to_string(version.value) + " is no longer published");
}

std::function<bool(const Request&)> is_of(std::span<const GroupId> groups) {
  return [groups](const Request& request) {
    const auto* key = std::get_if<GroupKey>(&request.key);
    return key && std::ranges::find(groups, key->group) != groups.end();
  };
}

}  // namespace tandem::rollout
