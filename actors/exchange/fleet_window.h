// Measures the rates of a job's two pools over its newest steps (scheduler/fleet/fleet_rates.h).
//
// Counters are summed as they come, and each commit of a step takes a point of all sums; the rates
// are the difference of two points. A rollout's counters begin at 0 with each incarnation and come
// once a second, so only their growth between two reports of one incarnation is summed, together
// with the time between these reports. Not journalled: an exchange that follows measures anew. Not
// responsible for what the rates mean (scheduler/fleet/sizing.h).
//
//   MW-1  No sum goes back, whatever restarts: a rate is never negative.
//   MW-2  At most kRatePoints points are kept, however long the run and however short its steps.
//   MW-3  No window has steps of two fleets: one begins anew where a rollout is added, drains or is
//         taken away. One that dies, or that drains to come back elsewhere, is no change: a fleet
//         on machines that are often taken back would have no window. An exchange that follows does
//         not know which of those that drain come back: it takes them for leaving.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages/rollout_stats.h"
#include "runtime/base/clock.h"
#include "scheduler/fleet/fleet_rates.h"
#include "scheduler/fleet/trainer_wait.h"

namespace tandem::exchange {

// A window that is asked for has at most so many steps, or those of kRateTime where these are more.
inline constexpr std::int64_t kRateSteps = 64;
inline constexpr std::int64_t kRateStepsShown = 16;  // in reports and metrics
inline constexpr Duration kRateTime = std::chrono::seconds(20);
// A shorter window, or one rollout's part of it, has no rates: reports of rollouts are a second
// apart.
inline constexpr Duration kRateTimeLeast = std::chrono::seconds(1);
inline constexpr std::size_t kRatePoints = kRateSteps + 2;

// Sums of one rollout's name over its incarnations.
struct RolloutSums {
  std::uint64_t tokens = 0, prefix_queries = 0, prefix_hits = 0;
  double busy_seconds = 0;      // of engine steps
  double observed_seconds = 0;  // that the reports cover
  double pause_seconds = 0;     // decoding paused for installs
  std::int64_t installs = 0;    // that paused it
  double install_bytes = 0;     // fetched for them
  FitSums steps;                // of its engine, as RolloutStats has them
  bool operator==(const RolloutSums&) const = default;
};

// Times of which the window has the mean (FleetRates).
enum class FleetDelay : std::uint8_t { kFetch, kScore, kTurnaround };
inline constexpr std::size_t kFleetDelays = 3;
struct DelaySums {
  std::int64_t count = 0;
  double seconds = 0;
};

// Sums of the job besides its rollouts.
struct FleetSums {
  std::int64_t steps = 0;       // committed
  std::int64_t trainings = 0;   // of steps, repeated ones included
  double training_seconds = 0;  // from the sending of a step to its commit
  double learner_seconds = 0;   // these, and those of learners that ended amid a step
  std::uint64_t tokens_trained = 0;
  std::uint64_t tokens_wasted = 0;  // of groups that were generated and not trained
  std::int64_t completions = 0;     // trained
  std::int64_t rollout_deaths = 0, rollout_returns = 0;
  std::array<DelaySums, kFleetDelays> delays{};  // by FleetDelay
  scheduler::WaitSeconds waits{};                // the learner's time
  double evaluation_seconds = 0;                 // in which an evaluation was generated
};

enum class RolloutEnd : std::uint8_t {
  kDied,
  kReturns,  // it has drained, and its next incarnation is to come up
  kLeft,     // it has drained and was taken away
};

class FleetWindow {
 public:
  // The rollout has told `now` after `before`, which the same incarnation told `time` earlier; an
  // incarnation that comes up has told zeros.
  void worked(const std::string& rollout, const messages::RolloutStats& before,
              const messages::RolloutStats& now, Duration time);
  void installed(const std::string& rollout, double pause_seconds, std::uint64_t bytes);
  void ended(const std::string& rollout, RolloutEnd end);
  // A rollout has come up, or it drains and will not return. One that comes up under the name of
  // one that has died or returns is no change of the fleet.
  void came(const std::string& rollout);
  // It is of the fleet that this exchange has found.
  void was_there(const std::string& rollout) { fleet_.insert(rollout); }
  void leaves(const std::string& rollout);
  void wasted(std::uint64_t tokens) { sums_.tokens_wasted += tokens; }
  void delayed(FleetDelay what, Duration time);
  // The learner was at work on a step, which it has trained, or it ended before.
  void trained(Duration time);
  void learner_ended(Duration time) { sums_.learner_seconds += seconds(time); }
  // From now on the learner waits for this.
  void waits(scheduler::TrainerWait wait, Time now);
  // From now on an evaluation is generated, or none is.
  void evaluates(bool one, Time now);
  // A step is committed, for the first time.
  void committed(std::uint64_t tokens, std::int64_t completions, Time now);

  // Of the newest `steps` steps, or of those of kRateTime where these are more. Nothing before two
  // steps are committed and kRateTimeLeast has passed between two of them.
  std::optional<scheduler::FleetRates> rates(std::int64_t steps = kRateStepsShown) const;
  // The part of the same window in which an evaluation was generated.
  double evaluation_fraction(std::int64_t steps = kRateStepsShown) const;
  // Whether `steps` steps and kRateTime have passed at the newest commit since this last said so
  // (since the first commit): windows that are asked for then have next to nothing in common.
  bool ends_window(std::int64_t steps);
  std::size_t points() const { return points_.size(); }
  std::size_t places() const { return places_.size(); }

 private:
  // The sums of a rollout have a place, the same in all points. That of a rollout which has ended
  // is given to another name once all points have the same sums there: they go on from those.
  struct Place {
    std::string rollout;  // empty: free
    bool up = false;
    RolloutSums sums;
  };
  struct Point {
    Time at;
    FleetSums sums;
    std::vector<RolloutSums> rollouts;  // by place; those that came later had zeros
    RolloutSums of(std::size_t place) const {
      return place < rollouts.size() ? rollouts[place] : RolloutSums{};
    }
  };
  Place& place_of(const std::string& rollout);
  void free_places();
  // For each step since `from`, which is not the newest point.
  scheduler::WaitSeconds waits_from(const Point& from) const;
  bool covers(std::int64_t steps_at, Time at, std::int64_t steps) const;
  const Point* start_of(std::int64_t steps) const;  // null: no window is long enough

  FleetSums sums_;
  scheduler::TrainerWait wait_ = scheduler::TrainerWait::kNone;
  Time wait_since_{};
  bool evaluates_ = false;
  Time evaluates_since_{};
  // The commit at which the window begins that ends_window() is asked about.
  struct WindowStart {
    std::int64_t steps = 0;
    Time at;
  };
  std::optional<WindowStart> window_start_;
  std::set<std::string> fleet_;    // names of rollouts that came and have not left
  bool fleet_changed_ = false;     // since the newest commit
  bool begins_at_change_ = false;  // the oldest point is of the commit behind a change
  std::vector<Place> places_;
  std::map<std::string, std::size_t> place_by_rollout_;
  std::vector<std::size_t> free_;  // places
  std::deque<Point> points_;       // oldest first
  std::vector<std::size_t> up_;    // places of the rollouts up at the newest point, by name
};

}  // namespace tandem::exchange
