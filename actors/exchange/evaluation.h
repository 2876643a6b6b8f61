// One evaluation under way: which prompts wait, which ones an actor generates or scores, and the
// outcomes so far. Plain state; the exchange calls it and sends the messages. One version generates
// all prompts.
//
// A prompt is generated as a whole and scored completion by completion. A rollout's answer may come
// in parts. If the rollout ends between two parts, the prompt is generated again with the same
// seed: the same completions come out, and those that had arrived are not taken twice.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/exchange/evaluation_means.h"
#include "actors/exchange/state/evaluation_kind.h"
#include "actors/messages/reward.h"
#include "runtime/base/clock.h"

namespace tandem::exchange {

// Used in the turns of one exchange. Answers for work that an actor does not hold are ignored.
class Evaluation {
 public:
  Evaluation(messages::EvaluationId id, EvaluationKind kind, PolicyVersion version,
             const EvaluationPlan& plan, Time began = {});

  messages::EvaluationId id() const { return id_; }
  EvaluationKind kind() const { return kind_; }
  PolicyVersion version() const { return version_; }
  Time began() const { return began_; }

  // Gives up to `count` waiting prompts to `rollout` to generate, of those that it may have: all,
  // where `may` is empty. Returns their indices.
  using MayHave = std::function<bool(std::int32_t)>;
  std::vector<std::int32_t> take_prompts(const std::string& rollout, std::size_t count,
                                         const MayHave& may = {});
  bool prompts_wait() const { return !prompts_.empty(); }
  bool prompt_waits(std::int32_t index) const;
  std::size_t prompts_waiting() const { return prompts_.size(); }
  // Takes the answer of a rollout. A prompt that cannot be served fails for good.
  void generated(const std::string& rollout, std::vector<messages::EvaluationText> texts,
                 const std::vector<std::int32_t>& unservable);

  // Gives up to `count` completions to a reward actor to score.
  std::vector<messages::EvaluationText> take_texts(const std::string& reward, std::size_t count);
  bool texts_wait() const { return !texts_.empty(); }
  // A completion with its score or failure, for the samples file.
  struct Judged {
    messages::EvaluationText text;
    messages::TrajectoryScore score;
  };
  std::vector<Judged> scored(const std::string& reward,
                             const std::vector<messages::TextScore>& scores);

  void actor_down(const std::string& actor);  // the work that the actor held waits again
  void fail_waiting();                        // the version is gone: waiting prompts fail
  void fail_waiting(std::int32_t index, const std::string& reason);  // this one, if it waits
  // Whether the actor generates or scores a part of this evaluation.
  bool held_by(const std::string& actor) const;
  std::set<std::int32_t> prompts_of(const std::string& rollout) const;  // that it generates
  // True when no prompt waits or is being generated: the version may then be released (EX-3).
  bool generated() const { return prompts_.empty() && generating_.empty(); }

  bool done() const { return means_.done(); }
  // Completions that are scored or have failed, and all of them.
  std::int64_t completions_done() const { return completions_in_all_ - means_.outcomes_left(); }
  std::int64_t completions_in_all() const { return completions_in_all_; }
  messages::EvaluationFigures figures() const { return means_.figures(); }
  const std::optional<std::string>& extra_left_out() const { return means_.extra_left_out(); }
  const std::string& failure() const { return failure_; }  // the reason of the first failure

 private:
  // Queues a new completion of a held prompt for scoring; a repeated one is dropped.
  void take_text(std::set<std::int32_t>& held, messages::EvaluationText text);
  void fail_prompt(std::int32_t index, const std::string& reason);
  // Counts a completion as failed, and keeps the first reason.
  void fail(CompletionId completion, const std::string& reason);

  const messages::EvaluationId id_;
  const EvaluationKind kind_;
  const PolicyVersion version_;
  const Time began_;
  const std::int32_t completions_;  // completions per prompt
  const std::int64_t completions_in_all_;
  std::deque<std::int32_t> prompts_;
  // The prompts that each rollout holds, and the completions that each reward actor holds.
  std::map<std::string, std::set<std::int32_t>> generating_;
  std::map<std::int32_t, std::set<std::int32_t>> come_;  // samples so far, by unfinished prompt
  std::deque<messages::EvaluationText> texts_;
  std::map<std::string, std::map<CompletionId, messages::EvaluationText>> scoring_;
  EvaluationMeans means_;
  std::string failure_;
};

}  // namespace tandem::exchange
