#include "actors/rollout/external/served_answer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/base/text.h"

namespace tandem::rollout {
namespace {

// Log-probabilities are sums of rounded numbers, so that one of a certain token may be above 0.
constexpr float kLogprobMax = 1e-3f;

Error unfit(std::string message) {
  return {ErrorCode::kInvalid, "the server's answer does not fit the request: " + message};
}

std::string text(std::int64_t number) { return std::to_string(number); }

// The version of each token, or why there is none.
Result<std::vector<PolicyVersion>> versions_of(const ServedCompletion& completion,
                                               const AskedCompletions& asked,
                                               const AnswerRules& rules) {
  std::vector<PolicyVersion> versions;
  for (const LabelSpan& span : completion.versions) {
    if (span.begin != std::ssize(versions) || span.end < span.begin ||
        span.end > std::ssize(completion.tokens))
      return unfit("its weight_versions do not cover the tokens one after another");
    const auto known = rules.versions.find(span.label);
    if (known == rules.versions.end())
      return unfit("tokens are of weights called `" + visible(span.label, Lines::kOne) +
                   "`, which this rollout did not give; does something else update this server?");
    if (known->second < asked.sent_under)
      return unfit("tokens are of version " + text(known->second.value) + ", which version " +
                   text(asked.sent_under.value) + " had replaced");
    versions.resize(static_cast<std::size_t>(span.end), known->second);
  }
  if (versions.size() != completion.tokens.size())
    return unfit("its weight_versions cover " + text(std::ssize(versions)) + " of " +
                 text(std::ssize(completion.tokens)) + " tokens");
  return versions;
}

std::optional<std::string> token_fault(const ServedCompletion& completion, std::size_t i,
                                       const AskedCompletions& asked, const AnswerRules& rules) {
  const std::int32_t token = completion.tokens[i];
  if (token < 0 || token >= rules.vocabulary)
    return "token " + text(token) + " is not in the vocabulary of " + text(rules.vocabulary);
  if (!asked.needs_logprobs) return {};
  const float logprob = completion.logprobs[i];
  if (!std::isfinite(logprob) || logprob > kLogprobMax)
    return "a token has the log-probability " + std::to_string(logprob);
  return {};
}

// Why the server stopped where our rules do not.
Error early(const ServedCompletion& completion, const AnswerRules& rules) {
  const std::string after = " after " + text(std::ssize(completion.tokens)) + " tokens";
  switch (completion.end) {
    case ServedEnd::kAborted:
      return {ErrorCode::kUnreachable, "the server aborted the request" + after};
    case ServedEnd::kLength:
      return unfit("it was cut" + after + ", and " + text(rules.stop.tokens_max) +
                   " were asked for; the server's own limit of positions is too low");
    case ServedEnd::kStop:
      break;
  }
  return unfit("it was stopped" + after + " by none of the job's rules");
}

Result<messages::Trajectory> trajectory_of(const ServedCompletion& completion,
                                           const AskedCompletions& asked,
                                           const AnswerRules& rules) {
  if (asked.needs_logprobs && completion.logprobs.size() != completion.tokens.size())
    return unfit(text(std::ssize(completion.tokens)) + " tokens have " +
                 text(std::ssize(completion.logprobs)) + " log-probabilities");
  const auto versions = versions_of(completion, asked, rules);
  if (!versions) return versions.error();
  Completion made(rules.stop, rules.tokenizer);
  for (std::size_t i = 0; i < completion.tokens.size(); ++i) {
    if (auto fault = token_fault(completion, i, asked, rules)) return unfit(*std::move(fault));
    const bool ended = made.push({.token = completion.tokens[i],
                                  .logprob = asked.needs_logprobs ? completion.logprobs[i] : 0,
                                  .version = (*versions)[i],
                                  .kv_oldest = asked.keeps_kv ? asked.sent_under : (*versions)[i]})
                           .has_value();
    if (ended) return made.take();
  }
  return early(completion, rules);
}

}  // namespace

Result<std::vector<messages::Trajectory>> trajectories_of(const ServedAnswer& answer,
                                                          const AskedCompletions& asked,
                                                          const AnswerRules& rules) {
  if (answer.id != asked.id)
    return unfit("it is for the request `" + visible(answer.id, Lines::kOne) + "`, not `" +
                 asked.id + "`");
  if (!std::ranges::equal(answer.prompt, asked.prompt))
    return unfit("it is for another prompt, of " + text(std::ssize(answer.prompt)) +
                 " tokens, and not for the one of " + text(std::ssize(asked.prompt)));
  if (std::ssize(answer.completions) != asked.n)
    return unfit("it has " + text(std::ssize(answer.completions)) + " completions of " +
                 text(asked.n));
  std::vector<messages::Trajectory> trajectories;
  for (const ServedCompletion& completion : answer.completions) {
    auto trajectory = trajectory_of(completion, asked, rules);
    if (!trajectory) return trajectory.error();
    trajectories.push_back(*std::move(trajectory));
  }
  return trajectories;
}

}  // namespace tandem::rollout
