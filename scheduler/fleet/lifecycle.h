// The states of actors and jobs, which may follow which, and why one is where it is.
//
// Tables, not code: a transition that the table lacks is a bug and a CHECK. What causes a
// transition is the controller's business.
//
// LC-1  Only allowed() transitions happen.
// LC-2  A state always has a typed reason; a pending one says what it waits for.
// LC-3  From every state that is not final a final one can be reached; none leaves a final one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "runtime/base/clock.h"
#include "scheduler/fleet/resources.h"

namespace tandem::scheduler {

enum class ActorState {
  kQueued,        // wanted, not looked at yet, or no room
  kPlacing,       // a node is being asked
  kStarting,      // its processes are being spawned
  kInitializing,  // they run; model and weights are loading
  kReady,
  kBusy,
  kDraining,  // takes no more work, finishes what it holds
  kStopping,  // its processes have been told to end
  kStopped,   // final: nothing of it runs
  kBackoff,   // died; waits to be started again
  kFailed,    // final: its restarts are used up, or it cannot work
  kLost,      // its node does not answer
};
inline constexpr std::size_t kActorStates = 12;

enum class JobState {
  kQueued,
  kStarting,
  kWarmStart,
  kRunning,
  kStopping,
  kSucceeded,
  kFailed,
  kCancelled,
};
inline constexpr std::size_t kJobStates = 8;

std::span<const ActorState> successors(ActorState from);
std::span<const JobState> successors(JobState from);
bool allowed(ActorState from, ActorState to);
bool allowed(JobState from, JobState to);
bool is_final(ActorState state);
bool is_final(JobState state);
const char* name(ActorState state);  // "Initializing"
const char* name(JobState state);    // "WarmStart"

// Why: pending reasons, then the healthy one, then ends.
struct Submitted {};
struct WaitingForCapacity {
  Resources need;  // of the whole gang
  Resources have;  // free, on the nodes that there are
};
struct WaitingForJobs {
  std::int32_t ahead;  // jobs queued before this one
};
struct InfeasibleShape {
  std::string arithmetic;  // "needs 3.0 CPUs per rank; the largest node has 2.0 CPUs"
};
struct WaitingForGang {
  std::int32_t ready;
  std::int32_t want;
};
struct WaitingForSpawn {
  std::string node;
};
struct LoadingModel {};
struct WaitingForActors {
  std::int32_t ready;
  std::int32_t want;
};
struct Backoff {
  Time until;
  std::int32_t n;    // which restart this will be, from 1
  std::int32_t max;  // restarts within the period before escalation
  std::string cause;
};
struct Working {};
struct Draining {
  std::int32_t held;  // groups still to finish or hand back
  Time deadline;
};
struct SpawnFailed {
  std::string what;
};
struct ExitSignal {
  std::int32_t signal;
  bool memory_hint = false;  // some process of the machine was killed for want of memory just then
};
struct OOMKilled {  // the kernel killed it for want of memory; bytes
  std::int64_t peak_bytes;
  std::optional<std::int64_t> last_bytes;  // a second before the end
  std::int64_t room_bytes = 0;             // of its node, cgroup limits included; 0: not known
};
struct RankError {  // it said itself why it could not go on
  std::string what;
};
struct OutOfMemory {
  std::string what;  // what was asked and what was free
};
struct ExitCode {
  std::int32_t code;
};
struct Hung {
  double silent_s;  // since the last heartbeat that showed progress; 0: its link went down
};
struct NodeLost {
  std::string node;
};
struct GangMemberDied {
  std::int32_t rank;
};
struct RestartsExhausted {
  std::int32_t restarts;
  std::string cause;  // the root cause, as message() of the last end put it
};
struct ScaleDown {};
struct Completed {};
struct CancelledByUser {
  std::string how;  // and what failed before it had ended; may be empty
};
struct JobEnded {};
struct JobFailed {
  std::string cause;
};

using Reason =
    std::variant<Submitted, WaitingForCapacity, WaitingForJobs, InfeasibleShape, WaitingForGang,
                 WaitingForSpawn, LoadingModel, WaitingForActors, Backoff, Working, Draining,
                 SpawnFailed, ExitSignal, OOMKilled, RankError, OutOfMemory, ExitCode, Hung,
                 NodeLost, GangMemberDied, RestartsExhausted, ScaleDown, Completed, CancelledByUser,
                 JobEnded, JobFailed>;

const char* reason_name(const Reason& reason);  // CamelCase: "WaitingForCapacity"
// One sentence without a final full stop; relative to `now` where the reason holds a time.
std::string message(const Reason& reason, Time now);

// A state with its since and its reason (LC-2).
template <class State>
struct Status {
  State state{};
  Time since;
  Reason reason = Submitted{};
};
using ActorStatus = Status<ActorState>;
using JobStatus = Status<JobState>;

// CHECKs LC-1. The same state again is allowed: only the reason changes, `since` stays.
void enter(ActorStatus& status, ActorState to, Reason reason, Time now);
void enter(JobStatus& status, JobState to, Reason reason, Time now);

}  // namespace tandem::scheduler
