// One evaluation under way: which prompts wait, which an actor generates or scores, what came back.
// Plain state; the exchange moves it and sends the messages. All prompts are done by one version.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/reward.h"

namespace tandem::actors {

enum class EvaluationKind { kBefore, kAfterWarmStart, kPeriodic, kFinal };
const char* name(EvaluationKind kind);

class Evaluation {
 public:
  Evaluation(EvaluationId id, EvaluationKind kind, PolicyVersion version, std::int32_t prompts);

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

  bool done() const { return scored_ + failed_ == prompts_total_; }
  // Mean over the prompts with a score; none if there is none.
  std::optional<double> mean() const;
  std::int64_t scored() const { return scored_; }
  std::int64_t failed() const { return failed_; }
  const std::string& failure() const { return failure_; }  // of the first prompt that failed

 private:
  void count_failure(const std::string& reason);

  const EvaluationId id_;
  const EvaluationKind kind_;
  const PolicyVersion version_;
  const std::int32_t prompts_total_;
  std::deque<std::int32_t> prompts_;
  std::map<std::string, std::vector<std::int32_t>> generating_;
  std::deque<EvaluationText> texts_;
  std::map<std::string, std::map<std::int32_t, EvaluationText>> scoring_;
  std::int64_t scored_ = 0;
  std::int64_t failed_ = 0;
  std::string failure_;
  std::map<std::int32_t, double> values_;  // summed in index order: the mean repeats bit for bit
};

}  // namespace tandem::actors
