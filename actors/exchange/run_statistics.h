// The figures of one run, for result.json, metrics.jsonl and `tandem get jobs`. Plain numbers that
// the exchange adds to; times are those of the exchange's Context. Totals are of the whole run: an
// incarnation that resumes it goes on from those in the journal.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "actors/messages/evaluation_figures.h"
#include "actors/messages/exchange.h"
#include "actors/messages/learner.h"
#include "runtime/base/clock.h"

namespace tandem::actors {

struct StalenessCount {  // trained trajectories by staleness in steps
  // Counts by staleness; a staleness without trajectories has no entry.
  std::map<std::int64_t, std::int64_t> trajectories;
  std::int64_t max() const;  // 0 without trajectories, as mean() and quantile()
  double mean() const;
  // The least staleness that at least the share q of the trajectories does not exceed; q in 0…1.
  std::int64_t quantile(double q) const;
  void add(std::int64_t staleness) { ++trajectories[staleness]; }
  void add(const StalenessCount& other);
};

// Totals of training, every step once: steps beyond a checkpoint that the run went back to do not
// count.
struct TrainedTotals {
  StalenessCount staleness;
  std::uint64_t tokens = 0;
  double logprob_diff_max_at_staleness_0 = 0;  // of finite ones: the journal's JSON has no others
  std::uint64_t tokens_at_staleness_0 = 0;
  std::uint64_t steps_skipped = 0;  // as StepReport's, those of the warm start included
};

// Totals of work, of all incarnations of the run, also of work that was lost and repeated.
struct WorkTotals {
  std::uint64_t tokens_generated = 0;  // completion tokens of accepted groups
  // Publications of versions by the learner.
  std::uint64_t publish_count = 0, publish_bytes = 0;
  double wall_seconds = 0;     // of earlier incarnations
  double running_seconds = 0;  // of earlier incarnations, from the first step on
  // Busy times, from which the idle fractions follow.
  double learner_busy_seconds = 0;   // of the running ones
  double rollout_busy_seconds = 0;   // of the rollout actors that are gone
  double rollout_actor_seconds = 0;  // their lifetimes while the run trained
};

// The totals that the journal keeps after each step. `publish_seconds` is the duration of this
// step's own publication.
struct RunTotals {
  TrainedTotals trained;
  WorkTotals work;
  std::optional<double> publish_seconds;
};
std::string to_text(const RunTotals& totals);                   // a JSON object
std::optional<RunTotals> totals_from(const std::string& text);  // none: it is not one

// All figures of this incarnation, with the totals of the earlier ones.
struct RunStatistics {
  std::optional<Time> started, running_since;  // of this incarnation
  TrainedTotals trained;
  WorkTotals work;
  // Figures of the newest step: the next step replaces them.
  StalenessCount staleness_of_step;    // of the batch in training
  std::deque<double> publish_seconds;  // the last kPublishSecondsKept
  double reward_mean_of_step = 0;
  double completion_tokens_mean = 0, completion_tokens_max = 0, truncated_fraction = 0;
  std::optional<StepFigures> last_step;
  Time step_sent;
  // Evaluations of this run, those of earlier incarnations included.
  std::map<std::string, EvaluationFigures> evaluations;  // by kind; the newest as "last"
  std::int64_t evaluations_failed = 0;                   // completions, of all evaluations
  std::string evaluation_failure;  // of the last one in which everything failed
  // The digest of the newest checkpoint's weights.
  std::string weights_sha256;
  // Summed over this incarnation.
  double pause_seconds = 0;  // decoding paused for installs, all actors
  // Points of the last seconds, from which the rates of tokens are computed.
  struct RatePoint {
    Time time;
    std::uint64_t generated = 0, trained = 0;
  };
  // Oldest first.
  std::deque<RatePoint> rate_points;

  // Counts a publication of this incarnation; add_publish_seconds() takes only a duration, also one
  // from the journal.
  void add_publication(const Publication& publication);
  void add_publish_seconds(double seconds);
  // Adds a point to the window and drops those that are too old.
  void add_rate_point(Time now);
  // The median of the kept durations in seconds; 0 without any.
  double publish_seconds_p50() const;
  // Adds an evaluation of a kind, which replaces the last one of that kind, also if it has no mean.
  void add_evaluation(const std::string& kind, const EvaluationFigures& figures);
};
inline constexpr std::size_t kPublishSecondsKept = 4096;

}  // namespace tandem::actors
