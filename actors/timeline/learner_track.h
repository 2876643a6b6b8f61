// The learner in a trace: its steps, what it waits for between them, the times in which it is down,
// and on rows of their own its publications and checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "actors/timeline/trace_rows.h"
#include "actors/timeline/trace_window.h"
#include "runtime/base/ids.h"

namespace tandem::timeline {

// The group that a learner without a batch waited for: the one that was scored last.
struct AwaitedGroup {
  GroupId group;
  std::string rollout;  // that generated it
  TraceTime scored = 0;
};

class LearnerTrack {
 public:
  LearnerTrack(TraceWindow& window, TraceRows& rows) : window_(window), rows_(rows) {}

  void came_up(const ActorId& who, TraceTime now);
  void died(TraceTime now);
  void restarted(std::int64_t batches, TraceTime now);
  // A task begins. Of a batch that has just been formed `last` is the group that was scored last.
  void begins(std::string task, TraceTime now, const std::optional<AwaitedGroup>& last = {});
  // The task is done. Returns false where none was begun within the journal.
  bool done(TraceTime now, TraceArguments facts = {});
  // The step that ends now has published for so long.
  void published(std::int64_t version, double seconds, TraceTime now);
  void evaluated(TraceTime now) { evaluated_ = now; }
  void checkpoint_asked(StepId step, TraceTime now);
  void checkpoint_kept(StepId step, TraceTime now);
  // The attempt is over, or the trace: what is open ends here.
  void finish(TraceTime now, const char* how);

 private:
  enum class State { kUnknown, kDown, kIdle, kBusy };
  void turn_to(State state, TraceTime now);
  void put_out_wait(TraceTime now, const std::optional<AwaitedGroup>& last);
  void checkpoint_ends(StepId step, TraceTime from, TraceTime now, const char* how);
  TraceRow row();

  TraceWindow& window_;
  TraceRows& rows_;
  std::string name_ = "learner/0";
  State state_ = State::kUnknown;
  TraceTime since_ = 0;  // when state_ began
  std::string task_;
  std::optional<TraceTime> evaluated_;       // when the last evaluation ended
  TraceTime published_ = 0, kept_ = 0;       // when the last spans of these rows ended
  std::map<StepId, TraceTime> checkpoints_;  // that were asked for, with the time
};

}  // namespace tandem::timeline
