// Collects the events that an engine tells its rollout actor. An answered group is an event of its
// own; the answered prompts of an evaluation are one event together. Every engine uses this class.
// One thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/model/tokenizer.h"
#include "actors/rollout/engine.h"
#include "actors/rollout/work_queue.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

class Answers {
 public:
  // Calls `submit` with a request for each prompt of the evaluation.
  void open(messages::Evaluate evaluation, const std::function<void(Request)>& submit) {
    evaluations_.open(std::move(evaluation), submit);
  }
  void forget_evaluations() { evaluations_.clear(); }

  // The engine cannot generate the request.
  void refuse(const Request& request, messages::UnservableReason reason, std::string message);
  // The request's completions, all of them. Its prompt is moved out of it.
  void complete(Request request, std::vector<messages::Trajectory> trajectories);
  // The engine cannot go on (EN-5): events that were not taken are dropped for EngineFailed.
  void fail(Error error);

  std::vector<EngineEvent> take();  // the events since the last call

 private:
  OpenEvaluations evaluations_;
  std::vector<EngineEvent> events_;
  std::optional<Error> failure_;
};

// The tokens of a prompt, shortened as `config` says; or why it cannot be generated.
struct Unencoded {
  messages::UnservableReason reason;
  std::string message;
};
std::variant<std::vector<std::int32_t>, Unencoded> encode_prompt(const std::string& text,
                                                                 const model::Tokenizer& tokenizer,
                                                                 const EngineConfig& config);

// Sets the request's prompt_tokens, shortened as `config` says; or answers that the request cannot
// be generated, and returns false.
bool encode_prompt(Request& request, const model::Tokenizer& tokenizer, const EngineConfig& config,
                   Answers& answers);

// `version` is no longer published: answers the waiting requests that are pinned to it.
void refuse_pinned(WorkQueue& queue, PolicyVersion version, Answers& answers);

// Picks the requests of these groups; `groups` must outlive the function.
std::function<bool(const Request&)> is_of(std::span<const GroupId> groups);

}  // namespace tandem::rollout
