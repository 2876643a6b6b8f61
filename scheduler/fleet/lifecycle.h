// The states of actors and jobs, which state may follow which, and the reason for which an actor or
// a job is in its state.
//
// The transitions are tables: one that a table lacks is a bug and is CHECKed. The controller
// decides when a transition happens. Pure values; no clock, no thread.
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

// The states of an actor, that is of all its ranks together.
enum class ActorState {
  kQueued,        // wanted; not looked at yet, or there is no room
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

// The states of a job, in the order in which a job passes through them; the last three are final.
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

// The tables, and their answers: which states may follow, and whether a state is final (none may).
std::span<const ActorState> successors(ActorState from);
std::span<const JobState> successors(JobState from);
bool allowed(ActorState from, ActorState to);
bool allowed(JobState from, JobState to);
bool is_final(ActorState state);
bool is_final(JobState state);
const char* name(ActorState state);  // "Initializing"
const char* name(JobState state);    // "WarmStart"

// Reasons, in three kinds: those of a state that waits, those of an actor at work, and those of an
// end. Users see their names and message() (docs/reasons.md lists them).

// The controller has not looked at the actor or the job since it was submitted.
struct Submitted {};
// The nodes together, or each of them, have less free than is needed.
struct WaitingForCapacity {
  Resources need;             // what the whole gang needs
  Resources have;             // free, on the nodes that there are
  std::string cordoned = {};  // the nodes and GPUs that count for nothing: "a, b's GPU 3"
};
struct WaitingForJobs {
  std::int32_t ahead;  // jobs queued before this one
};
// A new controller has taken up jobs, and nodes of the former one are not back yet: actors of that
// time may still be ending there. Until then no job starts.
struct WaitingForNodes {
  std::string nodes;  // their names
  Time until;         // after which the job starts without them
};
// A process of one of its former incarnations is told to end, and lives.
struct FormerEnding {
  std::string node;
};
// The controller cannot write its journal, and starts no process before it can.
struct WaitingForJournal {};
// It has outlived the controller before this one: its node is waited for, and then its links.
struct Returning {
  std::string node;
  Time until;  // after which they count as lost with their node
};
// The agent of its node has died, and its processes, whose own links are up, work on.
struct AgentLost {
  std::string node;
  Time since;
  Time until;            // after which they count as lost with their node
  bool cut_off = false;  // or the node cannot be reached, and they may work on
};
// A rank fits none of the nodes that are there, not even one that is empty.
struct InfeasibleShape {
  std::string arithmetic;  // "needs 3.0 CPUs per rank; the largest node has 2.0 CPUs"
};
// Ranks of one gang start together: `ready` of `want` are there.
struct WaitingForGang {
  std::int32_t ready;
  std::int32_t want;
};
// The agent of `node` was told to start the processes and has not answered.
struct WaitingForSpawn {
  std::string node;
};
// The processes run and have not said that they are ready: those of an actor that loads a model, of
// a user's program, and of a reward actor, which loads no model.
struct LoadingModel {};
struct WaitingForProgram {};
struct StartingVerifier {};
// A job starts: `ready` of `want` actors are there.
struct WaitingForActors {
  std::int32_t ready, want;
};
// The actor died and is started again at `until` (restart_budget.h).
struct Backoff {
  Time until;
  std::int32_t n, max;  // which restart this will be, from 1, and of how many before escalation
  std::string cause;
};
// It has worked, and cannot start for want of a disk (RB-7). It tries at `until`, up to `give_up`.
struct WaitingForDisk {
  Time until, give_up;
  std::string cause;
};
// The reason of every healthy state.
struct Working {};
// The work that a draining actor still has to finish.
enum class DrainedWork : std::uint8_t {
  kGroups,     // groups that it holds; after the deadline they go back to the exchange
  kQuestions,  // a user's program: what it has accepted; after the deadline it is ended
  kStep,       // the learner: its step, and a checkpoint; after the deadline that step is repeated
};
struct Draining {     // the actor takes no more work
  std::int32_t held;  // groups still to finish or hand back
  Time deadline;
  DrainedWork work = DrainedWork::kGroups;
};
// The actor was moved off a node that was drained, and starts on another.
struct NodeDrained {
  std::string node;
};
struct Preempted {};    // its machine was taken, or may be
struct PreemptedSoon {  // likewise, and it starts again after a pause; shown as Preempted
  Time until;
};
// The agent could not start a process.
struct SpawnFailed {
  std::string what;
  bool disk = false;  // for want of a disk that can be written, of an actor that has worked
};
// A signal ended one of the actor's processes.
struct ExitSignal {
  std::int32_t signal;
  bool memory_hint = false;  // the machine killed some process for want of memory at that time
};
// The kernel killed the process for want of memory, which is proven (runtime/node/memory_kills.h).
struct OOMKilled {
  // Bytes: the most that the process had, and its use about a second before the end.
  std::int64_t peak_bytes;
  std::optional<std::int64_t> last_bytes;
  std::int64_t room_bytes = 0;  // memory of its node, limits of the cgroup included; 0: not known
};
// A rank reported by itself why it could not go on.
struct RankError {
  std::string what;
  bool disk = false;  // for want of a disk that can be written, of an actor that has worked
};
// A rank reported that an allocation failed: `what` has the amounts asked and free.
struct OutOfMemory {
  std::string what;
};
struct ExitCode {  // a process exited with this code and reported no error
  std::int32_t code;
};
// The phase of a process that a signal has stopped.
inline constexpr std::string_view kStoppedPhase = "stopped";
// A process runs and makes no progress; the actor is ended and started again.
struct Hung {
  double silent_s;          // seconds without progress; 0: its link went down
  std::string phase = {};   // the kind of work that it hangs in, or kStoppedPhase
  double longest_s = 0;     // the longest piece of that work before; 0: there was none
  double unreturned_s = 0;  // for so long it was waited for in vain after Returning; 0: it was not
};
struct NodeLost {  // the agent of the actor's node cannot be reached
  std::string node;
};
struct GangMemberDied {  // another rank of the gang ended, so the whole gang is started again
  std::int32_t rank;
};
// The restart budget of the actor and that of its role are used up.
struct RestartsExhausted {
  std::int32_t restarts;
  std::string cause;  // message() of the end that was the root cause
};
// The ends that follow from decisions: the role got fewer actors, all steps are trained, a user
// cancelled the job, or the actor's job has ended or failed.
struct ScaleDown {};
struct Completed {};
// A user's program has ended by itself with code 0; of a job, all of its programs have.
struct Finished {
  bool job = false;
};
struct CancelledByUser {
  std::string how;  // and what failed before the job had ended; may be empty
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
                 JobEnded, JobFailed, WaitingForProgram, Finished, StartingVerifier,
                 WaitingForNodes, NodeDrained, Returning, AgentLost, FormerEnding,
                 WaitingForJournal, WaitingForDisk, Preempted, PreemptedSoon>;

const char* reason_name(const Reason& reason);  // CamelCase, stable for users: "WaitingForCapacity"
// The reason in words: one sentence without a final full stop. Times in it are relative to `now`.
std::string message(const Reason& reason, Time now);
std::optional<Time> deadline_of(const Reason& reason);  // the end of a wait that has a limit

// A state, the time at which it began, and its reason (LC-2).
template <class State>
struct Status {
  State state{};
  Time since;
  Reason reason = Submitted{};
};
using ActorStatus = Status<ActorState>;
using JobStatus = Status<JobState>;

// Enters a state (LC-1 is CHECKed). Entering the present state again changes only the reason;
// `since` stays, so that waits are measured from their beginning.
void enter(ActorStatus& status, ActorState to, Reason reason, Time now);
void enter(JobStatus& status, JobState to, Reason reason, Time now);

}  // namespace tandem::scheduler
