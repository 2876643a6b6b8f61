// What a server answers to a request for completions, and the check that makes trajectories of it.
// A server is not trusted: an answer that does not fit the request is an Error, never a sample.
//
//   SV-1  Every token of a trajectory is in the vocabulary and has a finite log-probability, and a
//         version that this engine pushed.
//   SV-2  A trajectory ends where the rules of completion.h end it, wherever the server stopped; a
//         completion that the server ended otherwise is an Error.
//   SV-3  An answer to another request, or to another prompt, is an Error.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "actors/messages/payload.h"
#include "actors/model/tokenizer.h"
#include "actors/rollout/completion.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

enum class ServedEnd : std::uint8_t { kStop, kLength, kAborted };

struct LabelSpan {  // tokens [begin, end) were sampled by the version that the server calls `label`
  std::string label;
  std::int32_t begin = 0, end = 0;
};

struct ServedCompletion {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  ServedEnd end = ServedEnd::kStop;
  std::vector<LabelSpan> versions;
};

struct ServedAnswer {
  std::string id;                    // GenerateCall::id
  std::vector<std::int32_t> prompt;  // that the server computed
  std::vector<ServedCompletion> completions;
};

// What was asked. Borrowed for the call.
struct AskedCompletions {
  const std::string& id;
  std::span<const std::int32_t> prompt;
  std::int32_t n = 1;
  PolicyVersion sent_under;  // the version that was installed when the request was sent
  // Running requests keep keys and values of the version that they began with.
  bool keeps_kv = true;
  bool needs_logprobs = true;  // false: an evaluation's
};

// How answers of one engine are read.
struct AnswerRules {
  const StopRules& stop;
  const model::Tokenizer& tokenizer;
  std::int32_t vocabulary = 0;
  const std::map<std::string, PolicyVersion>& versions;  // by the server's labels
};

Result<std::vector<messages::Trajectory>> trajectories_of(const ServedAnswer& answer,
                                                          const AskedCompletions& asked,
                                                          const AnswerRules& rules);

}  // namespace tandem::rollout
