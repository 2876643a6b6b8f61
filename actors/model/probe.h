// The probe of a version: fixed tokens whose log-probabilities tell weights apart. The learner
// computes them whenever it publishes; an engine whose weights are elsewhere has its server score
// the same tokens, and so knows that the server computes with that version.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::model {

inline constexpr std::int64_t kProbeTokensMax = 32;

// For sequences of at most `positions` tokens, at least 3. A server that scores a prompt samples
// one token behind it.
inline std::vector<std::int32_t> probe_tokens(std::int64_t vocabulary, std::int64_t positions) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < std::min(kProbeTokensMax, positions - 1); ++i)
    tokens.push_back(static_cast<std::int32_t>(derive_seed(17, {static_cast<std::uint64_t>(i)}) %
                                               static_cast<std::uint64_t>(vocabulary)));
  return tokens;
}

}  // namespace tandem::model
