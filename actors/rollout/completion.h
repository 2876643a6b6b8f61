// One trajectory in the making: its sampled tokens, what is recorded with each, and when it ends.
//
// It ends by a stop token (the model's eos or one of stop_token_ids), which is kept among the
// tokens; by a stop string, which may begin and end inside tokens: the text is cut before it, the
// tokens are kept up to the one that completed it; or by its length. Nothing ends it before
// min_tokens: stop tokens are banned until then, and a stop string that is complete by then is text
// like any other.
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

namespace tandem::actors {

struct StopRules {
  std::vector<std::int32_t> stop_tokens;  // ascending
  std::vector<std::string> stop;
  std::size_t stop_bytes_max = 0;  // of the longest of `stop`
  std::int32_t tokens_min = 0;
  std::int32_t tokens_max = 0;
};

// kInvalid: a stop token that the model does not have, an empty stop string, min_tokens above
// max_response_length, or no token left to sample before min_tokens.
Result<StopRules> make_stop_rules(const EngineConfig& config, const ModelConfig& model);

class Completion {
 public:
  // Both are borrowed and outlive the completion.
  Completion(const StopRules& rules, const Tokenizer& tokenizer)
      : rules_(&rules), tokenizer_(&tokenizer) {}

  // `ahead`: tokens that are being drawn and will be pushed before the one in question.
  // Tokens that must not be sampled then.
  std::span<const std::int32_t> banned(std::int32_t ahead) const;
  // True if it will have ended by its length then, if not before.
  bool ends_by_length(std::int32_t ahead) const;

  // `version` sampled the token after reading keys and values of `kv_oldest` and later versions.
  struct Sampled {
    std::int32_t token = 0;
    float logprob = 0;
    PolicyVersion version;
    PolicyVersion kv_oldest;
  };
  std::optional<FinishReason> push(const Sampled& sampled);

  // Once, after push() said that it ended.
  Trajectory take();

 private:
  bool ends_with_stop_string(std::int32_t token);
  std::optional<std::string> special_text() const;

  const StopRules* rules_;
  const Tokenizer* tokenizer_;
  Trajectory trajectory_;
  bool text_is_cut_ = false;
};

}  // namespace tandem::actors
