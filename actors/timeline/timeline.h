// A run's journal as a trace: event after event goes in, trace events come out. Pure.
//
// Rows: the run (its phases, evaluations, restarts, counters), the learner's pool, the rollouts',
// the reward actors', and the groups. The journal's times are milliseconds, so that shorter spans
// have no length.
//
//   TL-4  Memory is bounded by what is open, that is by live groups and actors, not by the run.
//   TL-5  Each commit's training is shown with the length that the journal gives it: from the
//         batch's forming, or the learner's being asked again, to the commit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "actors/timeline/group_trips.h"
#include "actors/timeline/learner_track.h"
#include "actors/timeline/run_survey.h"
#include "actors/timeline/trace_rows.h"
#include "actors/timeline/trace_window.h"

namespace tandem::timeline {

// Without bounds a trace ends here: viewers hold a trace in memory.
inline constexpr std::uint64_t kTraceEventsMax = 2'000'000;
// Samples of a counter in one trace, about.
inline constexpr std::int64_t kCounterSamples = 20'000;

// The figures of a step that the journal does not have (docs/metrics.md).
struct StepFigures {
  std::optional<double> publish_s;        // timing_s/update_weights
  std::optional<double> install_pause_s;  // tandem/install_pause_s
};

class Timeline {
 public:
  // The figures in the line of metrics.jsonl of this step (the first is 1). Asked for ascending
  // steps between two resumptions, at the commits that no resumption has undone.
  using FiguresOf = std::function<StepFigures(std::int64_t step)>;

  // The survey is of the same journal, and outlives the timeline.
  Timeline(const RunSurvey& survey, TraceRange range, std::uint64_t events_max, FiguresOf figures,
           TraceWindow::Emit emit);

  void take(const exchange::JournalEntry& entry);
  // Ends what is open. After the last entry.
  void end();

  // events_max is reached: further entries are not shown.
  bool is_full() const { return window_.events() >= events_max_; }
  std::uint64_t events() const { return window_.events(); }
  // The last step whose commit is shown, as metrics.jsonl counts; 0: none.
  std::int64_t last_step() const { return last_step_; }
  std::int64_t leases_not_shown() const { return trips_.leases_not_shown(); }

 private:
  struct Install {
    ActorId who;
    PolicyVersion version;
    TraceTime at = 0;
  };
  struct OpenEvaluation {
    std::string name;
    TraceTime since = 0;
    std::optional<TraceLane> lane;
  };

  template <class Event>
  void on(const Event&) {}  // the others show nothing
  void on(const exchange::RunBegan& event);
  void on(const exchange::ExchangeFollowed& event);
  void on(const exchange::RunResumed& event);
  void on(const exchange::StageEntered& event);
  void on(const exchange::EndAsked& event);
  void on(const exchange::RunEnded& event);
  void on(const exchange::WorkerCameUp& event);
  void on(const exchange::WorkerDrains& event);
  void on(const exchange::InstallPaused& event) { paused_ = event; }
  void on(const exchange::VersionInstalled& event);
  void on(const exchange::IncarnationEnded& event);
  void on(const exchange::EngineCrashed& event);
  void on(const exchange::GroupAdmitted& event);
  void on(const exchange::RolloutLeased& event);
  void on(const exchange::GroupGenerated& event);
  void on(const exchange::RewardLeased& event);
  void on(const exchange::GroupScored& event);
  void on(const exchange::BatchFormed& event);
  void on(const exchange::StepTrained& event);
  void on(const exchange::LeaseReleased& event);
  void on(const exchange::LeaseExpired& event);
  void on(const exchange::LeaseAdopted& event);
  void on(const exchange::GroupHandedBack& event);
  void on(const exchange::GroupDiscarded& event);
  void on(const exchange::LiveDiscarded& event);
  void on(const exchange::AnswerRefused& event);
  void on(const exchange::LearnerCameUp& event);
  void on(const exchange::LearnerRestarted& event);
  void on(const exchange::LearnerAsked& event);
  void on(const exchange::VersionPublished& event);
  void on(const exchange::VersionsRestored& event);
  void on(const exchange::CheckpointAsked& event);
  void on(const exchange::CheckpointKept& event);
  void on(const exchange::EvaluationBegan& event);
  void on(const exchange::EvaluationEnded& event);

  void say(const TracePool& pool, const std::string& row, std::string what, const char* category,
           TraceArguments facts = {});
  void count();
  void count_staleness(const exchange::BatchFormed& event);
  void put_out_install(const Install& install, TraceArguments facts, std::optional<double> pause_s);
  void put_out_installs(std::optional<double> pause_s);
  void end_evaluation(std::uint64_t id, const char* how);
  void end_phase();
  void finish(const char* how);  // all that is open

  const RunSurvey& survey_;
  TraceWindow window_;
  const std::uint64_t events_max_;
  const FiguresOf figures_of_;
  TraceRows rows_{window_};
  GroupTrips trips_{window_, rows_};
  LearnerTrack learner_{window_, rows_};
  TraceRow run_;                    // of the counters
  TraceTime now_ = 0, before_ = 0;  // of the entry, and of the one before it
  TraceTime counted_ = 0;           // when the counts were shown
  std::array<std::int64_t, scheduler::kGroupStates> counts_shown_{};
  std::optional<exchange::InstallPaused> paused_;  // of the install that comes next
  std::vector<Install> installs_;  // since the last commit, without a pause of their own
  std::map<std::string, TraceTime> installed_;  // by actor: when its last span ended
  std::map<std::uint64_t, OpenEvaluation> evaluations_;
  std::optional<std::pair<std::string, TraceTime>> phase_;
  std::size_t resumptions_ = 0;
  std::int64_t last_step_ = 0;
};

}  // namespace tandem::timeline
