// How the prompts of evaluations are completed: a part of Evaluate (rollout.h).
#pragma once

#include <cstdint>

#include "runtime/wire/fields.h"

namespace tandem::messages {

// How an evaluation completes each of its prompts: `n` times, and once more if `greedy` is set. The
// completions 0 … n - 1 are sampled, or greedy where the temperature is 0; completion n is greedy.
struct EvaluationSampling {
  std::int32_t n = 1;
  float temperature = 0;
  float top_p = 1;
  std::int32_t top_k = 0;  // 0: off
  bool greedy = false;
};
TANDEM_WIRE(EvaluationSampling, n, temperature, top_p, top_k, greedy)

// How many completions each prompt gets.
constexpr std::int32_t completions_of(const EvaluationSampling& sampling) {
  return sampling.n + (sampling.greedy ? 1 : 0);
}
// Whether completion `sample` of a prompt is greedy, and so draws nothing.
constexpr bool is_greedy(const EvaluationSampling& sampling, std::int32_t sample) {
  return sampling.temperature == 0 || sample == sampling.n;
}

}  // namespace tandem::messages
