// One evaluation under way: which prompts wait, which an actor generates or scores, what came back.
// Plain state; the exchange moves it and sends the messages. All prompts are done by one version.
//
// A prompt is generated as a whole and scored completion by completion. A rollout's answer may come
// in parts: where it dies between them the prompt is generated again, the same completions come
// out, and those that had come are not taken twice.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/exchange/evaluation_means.h"
#include "actors/messages/reward.h"

namespace tandem::actors {

enum class EvaluationKind { kBefore, kAfterWarmStart, kPeriodic, kFinal };
const char* name(EvaluationKind kind);

class Evaluation {
 public:
  Evaluation(EvaluationId id, EvaluationKind kind, PolicyVersion version,
             const EvaluationPlan& plan);

  EvaluationId id() const { return id_; }
  EvaluationKind kind() const { return kind_; }
  PolicyVersion version() const { return version_; }

  // Takes up to `count` prompts that wait for `rollout` to generate them.
  std::vector<std::int32_t> take_prompts(const std::string& rollout, std::size_t count);
  bool prompts_wait() const { return !prompts_.empty(); }
  std::size_t prompts_waiting() const { return prompts_.size(); }
  // What came back. A prompt that cannot be served fails for good.
  void generated(const std::string& rollout, std::vector<EvaluationText> texts,
                 const std::vector<std::int32_t>& unservable);

  std::vector<EvaluationText> take_texts(const std::string& reward, std::size_t count);
  bool texts_wait() const { return !texts_.empty(); }
  // Returns what was judged, for the samples.
  struct Judged {
    EvaluationText text;
    TrajectoryScore score;
  };
  std::vector<Judged> scored(const std::string& reward, const std::vector<TextScore>& scores);

  void actor_down(const std::string& actor);  // what it held waits again
  void fail_waiting();                        // the prompts that wait can't be generated any more
  bool held_by(const std::string& actor) const;
  bool generated() const { return prompts_.empty() && generating_.empty(); }

  bool done() const { return means_.done(); }
  EvaluationFigures figures() const { return means_.figures(); }
  const std::string& failure() const { return failure_; }  // of the first completion that failed

 private:
  void take_text(std::set<std::int32_t>& held, EvaluationText text);
  void fail_prompt(std::int32_t index, const std::string& reason);
  void fail(CompletionId completion, const std::string& reason);

  const EvaluationId id_;
  const EvaluationKind kind_;
  const PolicyVersion version_;
  const std::int32_t completions_;  // of each prompt
  std::deque<std::int32_t> prompts_;
  std::map<std::string, std::set<std::int32_t>> generating_;
  std::map<std::int32_t, std::set<std::int32_t>> come_;  // samples of a prompt of which more come
  std::deque<EvaluationText> texts_;
  std::map<std::string, std::map<CompletionId, EvaluationText>> scoring_;
  EvaluationMeans means_;
  std::string failure_;
};

}  // namespace tandem::actors
