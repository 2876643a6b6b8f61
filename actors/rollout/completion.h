// One trajectory while it is generated: its sampled tokens, the log-probability and version of
// each, and the rules for its end.
//
// A completion ends in one of three ways:
//   stop token   The model's eos, or one of stop_token_ids. The token is kept among the tokens.
//   stop string  A string that may begin and end inside tokens. The text is cut before the string;
//                the tokens are kept up to the one that completed it.
//   length       tokens_max tokens have been sampled; the trajectory is marked as truncated.
//
// No rule ends a completion before min_tokens: stop tokens are banned until then, and a stop string
// that is complete by then is text like any other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/messages/payload.h"
#include "actors/messages/rollout.h"
#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"
#include "actors/rollout/engine.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

struct StopRules {
  std::vector<std::int32_t> stop_tokens;  // ascending
  std::vector<std::string> stop;
  std::size_t stop_bytes_max = 0;  // the length of the longest string in `stop`
  std::int32_t tokens_min = 0;
  std::int32_t tokens_max = 0;
};

// Fails with kInvalid for a stop token that the model does not have, an empty stop string, a
// min_tokens above max_response_length, or stop tokens that leave no token to sample before
// min_tokens.
Result<StopRules> make_stop_rules(const EngineConfig& config, const model::ModelConfig& model);

class Completion {
 public:
  // Both are borrowed and outlive the completion.
  Completion(const StopRules& rules, const model::Tokenizer& tokenizer)
      : rules_(&rules), tokenizer_(&tokenizer), bytes_(tokenizer, model::SpecialTokens::kSkip) {}

  // The tokens that must not be sampled next. `ahead` counts the tokens that are already being
  // drawn and will be pushed before that one.
  std::span<const std::int32_t> banned(std::int32_t ahead) const;
  // True if the completion has reached its length after `ahead` more tokens, if no other rule ends
  // it before.
  bool ends_by_length(std::int32_t ahead) const;

  // A token that `version` sampled after reading keys and values of `kv_oldest` and later versions.
  struct Sampled {
    std::int32_t token = 0;
    float logprob = 0;
    PolicyVersion version;
    PolicyVersion kv_oldest;
  };
  // Appends a token. Returns why the completion has ended, or nullopt while it goes on.
  std::optional<messages::FinishReason> push(const Sampled& sampled);

  // The finished trajectory. Call take() once, after push() has returned a reason.
  messages::Trajectory take();

 private:
  bool ends_with_stop_string(std::int32_t token);
  std::optional<std::string> special_text() const;

  const StopRules* rules_;
  const model::Tokenizer* tokenizer_;
  model::Detokenizer bytes_;  // only used where there are stop strings
  messages::Trajectory trajectory_;
  // A stop string has ended the completion, so that trajectory_.text is already final.
  bool text_is_cut_ = false;
};

}  // namespace tandem::rollout
