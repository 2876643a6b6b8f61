// The figures of one run, for result.json, metrics.jsonl and `tandem get jobs`. Plain numbers that
// the exchange adds to; times are those of the exchange's Context. Totals are of the whole run: an
// incarnation that resumes it goes on from those in the journal.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/batch_figures.h"
#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/state/evaluation_kind.h"
#include "actors/exchange/state/run_totals.h"
#include "actors/messages/evaluation_figures.h"
#include "actors/messages/exchange.h"
#include "actors/messages/learner.h"
#include "runtime/base/clock.h"

namespace tandem::exchange {

// One evaluation that has ended.
struct EvaluationRecord {
  EvaluationKind kind = EvaluationKind::kPeriodic;
  PolicyVersion version;
  messages::EvaluationFigures figures;
};

// The version that is the best one by a key of its evaluation, of those that have a checkpoint.
struct BestCheckpoint {
  PolicyVersion version;
  double value = 0;
};

// The warnings of the run. The first texts are kept, each once and in order. All warnings with
// another text are counted, also those that repeat one.
struct WarningsSaid {
  void take(const std::string& text);
  std::vector<std::string> first;
  std::int64_t left_out = 0;  // that were counted alone
};
inline constexpr std::size_t kWarningsKept = 32;

// All figures of this incarnation, with the totals of the earlier ones.
struct RunStatistics {
  std::optional<Time> started, running_since;  // when this incarnation did so
  TrainedTotals trained;
  WorkTotals work;
  // Figures of the newest step: the next step replaces them.
  BatchFigures batch;                  // figures of the batch in training
  std::deque<double> publish_seconds;  // the last kPublishSecondsKept
  std::optional<messages::StepFigures> last_step;
  Time step_sent;
  // Evaluations of this run, those of earlier incarnations included.
  std::map<std::string, messages::EvaluationFigures> evaluations;  // by kind; the newest as "last"
  std::deque<EvaluationRecord> evaluation_records;  // the newest kEvaluationsKept, in order
  std::optional<BestCheckpoint> best;               // by learner.keep_best
  std::int64_t evaluations_failed = 0;              // completions, of all evaluations
  std::string evaluation_failure;  // the failure of the last evaluation in which everything failed
  // The digest of the newest checkpoint's weights.
  std::string weights_sha256;
  std::vector<StepId> lineages;  // the steps with which new lineages began (LineageBegan)
  std::optional<std::uint64_t> recorded_bytes;  // as StepReport's, of the newest step
  WarningsSaid warnings;                        // by this incarnation
  // Summed over this incarnation.
  std::int64_t groups_kept = 0;  // trained ones of the kind that the filter discards
  // Points of the last seconds, from which the rates of tokens are computed.
  struct RatePoint {
    Time time;
    std::uint64_t generated = 0, trained = 0;
  };
  // Oldest first.
  std::deque<RatePoint> rate_points;

  // Counts a publication of this incarnation; add_publish_seconds() takes only a duration, also one
  // from the journal.
  void add_publication(const messages::Publication& publication);
  void add_publish_seconds(double seconds);
  // Adds a point to the window and drops those that are too old.
  void add_rate_point(Time now);
  // The median of the kept durations in seconds; 0 without any.
  double publish_seconds_p50() const;
  // Adds an evaluation, which replaces the last one of its kind, also if it has no mean. True: it
  // is the best one. Among equal evaluations the earliest is the best.
  bool add_evaluation(EvaluationRecord record, const BestBy& by);
};
inline constexpr std::size_t kPublishSecondsKept = 4096;
inline constexpr std::size_t kEvaluationsKept = 1000;

}  // namespace tandem::exchange
