// Stop strings are searched in the bytes of the text, since such a string may begin and end inside
// tokens. Only a job with stop strings pays for the text while tokens come: without any, take()
// decodes all tokens once.
#include "actors/rollout/completion.h"

#include <algorithm>

#include "actors/model/utf8.h"
#include "runtime/base/check.h"

namespace tandem::rollout {

Result<StopRules> make_stop_rules(const EngineConfig& config, const model::ModelConfig& model) {
  StopRules rules{.stop_tokens = model.eos_token_ids,
                  .stop = config.sampling.stop,
                  .tokens_min = static_cast<std::int32_t>(config.sampling.min_tokens),
                  .tokens_max = config.max_response_length};
  for (const std::int64_t token : config.sampling.stop_token_ids) {
    if (token < 0 || token >= model.vocab_size)
      return Error{ErrorCode::kInvalid,
                   "stop token " + std::to_string(token) + " is not in the model's vocabulary of " +
                       std::to_string(model.vocab_size),
                   "rollout.stop_token_ids"};
    rules.stop_tokens.push_back(static_cast<std::int32_t>(token));
  }
  std::ranges::sort(rules.stop_tokens);
  const auto [last, end] = std::ranges::unique(rules.stop_tokens);
  rules.stop_tokens.erase(last, end);
  for (const std::string& stop : rules.stop) {
    if (stop.empty()) return Error{ErrorCode::kInvalid, "a stop string is empty", "rollout.stop"};
    rules.stop_bytes_max = std::max(rules.stop_bytes_max, stop.size());
  }
  if (config.sampling.min_tokens > config.max_response_length)
    return Error{ErrorCode::kInvalid,
                 "min_tokens " + std::to_string(config.sampling.min_tokens) +
                     " is above max_response_length " + std::to_string(config.max_response_length),
                 "rollout.min_tokens"};
  if (config.sampling.min_tokens > 0 && std::ssize(rules.stop_tokens) >= model.vocab_size)
    return Error{ErrorCode::kInvalid, "every token is a stop token", "rollout.stop_token_ids"};
  return rules;
}

std::span<const std::int32_t> Completion::banned(std::int32_t ahead) const {
  if (std::ssize(trajectory_.tokens) + ahead >= rules_->tokens_min) return {};
  return rules_->stop_tokens;
}

bool Completion::ends_by_length(std::int32_t ahead) const {
  return std::ssize(trajectory_.tokens) + ahead >= rules_->tokens_max;
}

std::optional<messages::FinishReason> Completion::push(const Sampled& sampled) {
  messages::Trajectory& t = trajectory_;
  const auto position = static_cast<std::int32_t>(t.tokens.size());
  const PolicyVersion oldest = std::min(sampled.version, sampled.kv_oldest);
  t.oldest = position == 0 ? oldest : std::min(t.oldest, oldest);
  if (t.versions.empty() || t.versions.back().version != sampled.version)
    t.versions.push_back({sampled.version, position, position});
  t.versions.back().end = position + 1;
  t.tokens.push_back(sampled.token);
  t.logprobs.push_back(sampled.logprob);

  const bool stop_string = ends_with_stop_string(sampled.token);
  const bool stop_token = std::ranges::binary_search(rules_->stop_tokens, sampled.token);
  if (stop_string || (stop_token && position + 1 > rules_->tokens_min))
    return messages::FinishReason::kStop;
  if (position + 1 < rules_->tokens_max) return std::nullopt;
  t.truncated = true;
  return messages::FinishReason::kLength;
}

// Looks for stop strings that end within the bytes of this token; earlier matches were seen before.
// If several match, the one that begins first cuts the text.
bool Completion::ends_with_stop_string(std::int32_t token) {
  if (rules_->stop.empty()) return false;
  std::string& text = trajectory_.text;
  const std::size_t before = text.size();
  text += bytes_.next(token);
  if (std::ssize(trajectory_.tokens) < rules_->tokens_min) return false;
  std::size_t cut = std::string::npos;
  for (const std::string& stop : rules_->stop) {
    // A match that ended before this token is excluded by its start.
    const std::size_t from = before + 1 > stop.size() ? before + 1 - stop.size() : 0;
    cut = std::min(cut, text.find(stop, from));
  }
  if (cut == std::string::npos) return false;
  text.resize(cut);
  text_is_cut_ = true;
  return true;
}

messages::Trajectory Completion::take() {
  trajectory_.special_text = special_text();
  trajectory_.text = text_is_cut_
                         ? model::replace_malformed_utf8(trajectory_.text)
                         : tokenizer_->decode(trajectory_.tokens, model::SpecialTokens::kSkip);
  return std::move(trajectory_);
}

// Rebuilds the text with its special tokens. A special token belongs to the text as far as the
// bytes before it do: one inside a stop string does not. A text that was cut is the bytes before
// the stop string, and `left` counts how many of them are still to come. The decoders' pieces may
// differ at the beginning of a text, which is elsewhere where special tokens count.
std::optional<std::string> Completion::special_text() const {
  std::span<const std::int32_t> tokens = trajectory_.tokens;
  if (!text_is_cut_ && !trajectory_.truncated && !tokens.empty() &&
      tokenizer_->is_special(tokens.back()))
    tokens = tokens.first(tokens.size() - 1);  // the stop token
  model::Detokenizer with_special(*tokenizer_, model::SpecialTokens::kKeep);
  model::Detokenizer plain(*tokenizer_, model::SpecialTokens::kSkip);
  std::string with;
  std::size_t left = text_is_cut_ ? trajectory_.text.size() : std::string::npos;
  bool any = false;
  for (const std::int32_t token : tokens) {
    const std::string_view bytes = with_special.next(token);
    if (tokenizer_->is_special(token)) {
      with += bytes;
      any = true;
      continue;
    }
    const std::size_t counted = plain.next(token).size();
    if (counted > left) {
      with += bytes.substr(0, bytes.size() - counted + left);
      break;
    }
    with += bytes;
    left -= counted;
  }
  return any ? std::optional(model::replace_malformed_utf8(with)) : std::nullopt;
}

}  // namespace tandem::rollout
