// Completions of a model that a server has, by OpenAI's /v1/completions with token ids as the
// prompt: vLLM, SGLang, llama.cpp and others. For `tandem eval --url`; a run's rollouts speak to
// servers in another way (actors/rollout/external), which tells tokens and log-probabilities.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/evaluation_means.h"
#include "actors/messages/rollout.h"
#include "actors/rollout/engine_config.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::app {

struct CompletionServer {
  std::string url;      // http://host:port, also with /v1 or the whole path
  std::string model;    // the server's name of the model; empty: is not told
  int concurrency = 8;  // requests at once
  Duration timeout = std::chrono::minutes(10);  // of each
  Duration pause = std::chrono::seconds(2);     // before a request is made again
};

struct PromptTokens {
  std::int32_t index = 0;  // of the evaluation's prompt
  std::vector<std::int32_t> tokens;
};

// The completions of all prompts by the plan's sampling and the configuration's rules for the end,
// in the order of prompts and samples. A request that fails is made again, kCompletionTries times
// in all; the error is the last one's. Errors: also an answer that is no completion.
inline constexpr int kCompletionTries = 5;
Result<std::vector<messages::EvaluationText>> completions_from(
    const CompletionServer& server, const exchange::EvaluationPlan& plan,
    const rollout::EngineConfig& config, const std::vector<PromptTokens>& prompts);

}  // namespace tandem::app
