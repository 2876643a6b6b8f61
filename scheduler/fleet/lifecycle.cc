// Three tables: which actor states may follow each state, which job states, and the name and words
// of each reason. The order of the rows is that of the enumerations (checked at compile time), so a
// state is its row's index. Describe has one overload per reason; a reason without words does not
// compile.
#include "scheduler/fleet/lifecycle.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

using A = ActorState;
using J = JobState;

// A row: a state, its name, and the `count` states that may follow it. All rows of a constexpr
// table have one size, so the rest of `to` is unused.
template <class State>
struct Edges {
  State from;
  const char* name;
  std::array<State, 6> to;
  std::size_t count;
};

// A death leads to Backoff where the actor is still wanted, and to Stopped or Failed where it is
// not. Stopping comes before Backoff when processes have to be ended first: the other ranks of a
// gang, or a process that hangs. Draining does not lead to Backoff: an actor that dies while it
// drains is not wanted any more, or is wanted on another node, to which it goes by way of Stopping
// and Queued.
constexpr std::array<Edges<A>, kActorStates> kActors{{
    {A::kQueued, "Queued", {A::kPlacing, A::kStopped, A::kFailed}, 3},
    {A::kPlacing, "Placing", {A::kQueued, A::kStarting, A::kStopped, A::kFailed}, 4},
    {A::kStarting,
     "Starting",
     {A::kInitializing, A::kStopping, A::kStopped, A::kBackoff, A::kFailed, A::kLost},
     6},
    {A::kInitializing,
     "Initializing",
     {A::kReady, A::kStopping, A::kStopped, A::kBackoff, A::kFailed, A::kLost},
     6},
    {A::kReady,
     "Ready",
     {A::kBusy, A::kDraining, A::kStopping, A::kBackoff, A::kFailed, A::kLost},
     6},
    {A::kBusy,
     "Busy",
     {A::kReady, A::kDraining, A::kStopping, A::kBackoff, A::kFailed, A::kLost},
     6},
    {A::kDraining, "Draining", {A::kStopping, A::kStopped, A::kFailed, A::kLost}, 4},
    {A::kStopping, "Stopping", {A::kQueued, A::kStopped, A::kBackoff, A::kFailed, A::kLost}, 5},
    {A::kStopped, "Stopped", {}, 0},
    {A::kBackoff, "Backoff", {A::kQueued, A::kPlacing, A::kStopped, A::kFailed}, 4},
    {A::kFailed, "Failed", {}, 0},
    {A::kLost, "Lost", {A::kBackoff, A::kStopped, A::kFailed}, 3},
}};

// A queued job has no processes, so it may end at once; every other job ends by way of Stopping,
// which lasts until all its processes have ended.
constexpr std::array<Edges<J>, kJobStates> kJobs{{
    {J::kQueued, "Queued", {J::kStarting, J::kFailed, J::kCancelled}, 3},
    {J::kStarting, "Starting", {J::kWarmStart, J::kRunning, J::kStopping}, 3},
    {J::kWarmStart, "WarmStart", {J::kRunning, J::kStopping}, 2},
    {J::kRunning, "Running", {J::kStopping}, 1},
    {J::kStopping, "Stopping", {J::kSucceeded, J::kFailed, J::kCancelled}, 3},
    {J::kSucceeded, "Succeeded", {}, 0},
    {J::kFailed, "Failed", {}, 0},
    {J::kCancelled, "Cancelled", {}, 0},
}};

constexpr bool in_order(const auto& table) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (static_cast<std::size_t>(table[i].from) != i) return false;
  return true;
}
static_assert(in_order(kActors) && in_order(kJobs));

const Edges<A>& edges(A state) { return kActors[static_cast<std::size_t>(state)]; }
const Edges<J>& edges(J state) { return kJobs[static_cast<std::size_t>(state)]; }

std::string one_decimal(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", value);
  return buffer;
}

std::string short_seconds(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, value < 0.1 ? "%.3f s" : "%.1f s", value);
  return buffer;
}

std::string size_text(std::int64_t bytes) {
  constexpr double kMebibyte = 1 << 20;
  constexpr double kMebibytesPerGibibyte = 1024;
  const double mebibytes = static_cast<double>(bytes) / kMebibyte;
  return mebibytes < kMebibytesPerGibibyte
             ? one_decimal(mebibytes) + " MiB"
             : one_decimal(mebibytes / kMebibytesPerGibibyte) + " GiB";
}

std::string of(std::int32_t part, std::int32_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

std::string seconds_until(Time then, Time now) {
  return one_decimal(std::max(0.0, seconds(then - now))) + " s";
}

struct Words {  // the words of one reason
  const char* name;
  std::string message;
};

struct Describe {
  Time now;

  Words operator()(const Submitted&) const { return {"Submitted", "not looked at yet"}; }
  Words operator()(const WaitingForCapacity& r) const {
    return {"WaitingForCapacity", "needs " + text_of_lacking(r.need, r.have) +
                                      "; free: " + text(r.have) +
                                      (r.cordoned.empty() ? "" : "; cordoned: " + r.cordoned)};
  }
  Words operator()(const WaitingForJobs& r) const {
    return {"WaitingForJobs", std::to_string(r.ahead) + " jobs are queued before it"};
  }
  Words operator()(const WaitingForNodes& r) const {
    return {"WaitingForNodes", "waits for nodes of the controller before this one to come back: " +
                                   r.nodes + "; at most " + seconds_until(r.until, now)};
  }
  Words operator()(const FormerEnding& r) const {
    return {"FormerEnding", "a process of a former incarnation is still ending on node " + r.node};
  }
  Words operator()(const WaitingForJournal&) const {
    return {"WaitingForJournal",
            "the controller cannot write its journal, and starts no process before it can"};
  }
  Words operator()(const Returning& r) const {
    return {"Returning", "has outlived its controller on node " + r.node +
                             ", and is waited for at most " + seconds_until(r.until, now)};
  }
  Words operator()(const AgentLost& r) const {
    if (r.cut_off)
      return {"AgentLost", "node " + r.node +
                               " cannot be reached; its processes may work on, and " +
                               "are waited for at most " + seconds_until(r.until, now)};
    return {"AgentLost", "the agent of node " + r.node + " has died; its processes work on, and " +
                             "the next agent is waited for at most " + seconds_until(r.until, now)};
  }
  Words operator()(const InfeasibleShape& r) const { return {"InfeasibleShape", r.arithmetic}; }
  Words operator()(const WaitingForGang& r) const {
    return {"WaitingForGang", of(r.ready, r.want) + " ranks are ready"};
  }
  Words operator()(const WaitingForSpawn& r) const {
    return {"WaitingForSpawn", "node " + r.node + " is starting its processes"};
  }
  Words operator()(const LoadingModel&) const {
    return {"LoadingModel", "loading the model and its weights"};
  }
  Words operator()(const WaitingForProgram&) const {
    return {"WaitingForProgram", "its program runs and has not said that it is ready"};
  }
  Words operator()(const StartingVerifier&) const {
    return {"StartingVerifier", "its process runs and starts its verifier"};
  }
  Words operator()(const WaitingForActors& r) const {
    return {"WaitingForActors", of(r.ready, r.want) + " actors are ready"};
  }
  Words operator()(const Backoff& r) const {
    return {"Backoff", "restart " + of(r.n, r.max) + " in " + seconds_until(r.until, now) +
                           " after: " + r.cause};
  }
  Words operator()(const WaitingForDisk& r) const {
    return {"WaitingForDisk", "waits for a disk, and starts again in " +
                                  seconds_until(r.until, now) + ", for at most " +
                                  seconds_until(r.give_up, now) + ": " + r.cause};
  }
  Words operator()(const Working&) const { return {"Working", "all is well"}; }
  Words operator()(const Draining& r) const {
    switch (r.work) {
      case DrainedWork::kGroups:
        break;
      case DrainedWork::kQuestions:
        return {"Draining",
                "handles what it has accepted, for at most " + seconds_until(r.deadline, now)};
      case DrainedWork::kStep:
        return {"Draining", "ends its step and saves a checkpoint, within at most " +
                                seconds_until(r.deadline, now)};
    }
    return {"Draining", std::to_string(r.held) + " groups to finish or hand back within " +
                            seconds_until(r.deadline, now)};
  }
  Words operator()(const NodeDrained& r) const {
    return {"NodeDrained", "moved off node " + r.node + ", which is drained"};
  }
  Words operator()(const Preempted&) const {
    return {"Preempted", "preempted: it was ended from outside, and starts again"};
  }
  Words operator()(const PreemptedSoon& r) const {
    return {"Preempted",
            "preempted soon after it was ready: starts again in " + seconds_until(r.until, now)};
  }
  Words operator()(const SpawnFailed& r) const {
    return {"SpawnFailed", "its process could not be started: " + r.what};
  }
  Words operator()(const ExitSignal& r) const {
    // Null for a number that no signal has.
    const char* const abbreviation = sigabbrev_np(r.signal);
    const std::string which =
        abbreviation ? std::string("SIG") + abbreviation : "an unknown signal";
    return {"ExitSignal",
            "killed by " + which + " (" + std::to_string(r.signal) + ")" +
                (r.memory_hint ? ", perhaps for want of memory: the kernel killed some process of "
                                 "this machine for that"
                               : "")};
  }
  Words operator()(const OOMKilled& r) const {
    std::string sizes = size_text(r.last_bytes.value_or(r.peak_bytes));
    if (r.last_bytes) sizes += ", peak " + size_text(r.peak_bytes);
    if (r.room_bytes > 0) sizes += ", of " + size_text(r.room_bytes) + " on its node";
    return {"OOMKilled", "killed for want of memory at " + sizes};
  }
  Words operator()(const RankError& r) const { return {"RankError", "failed: " + r.what}; }
  Words operator()(const OutOfMemory& r) const {
    return {"OutOfMemory", "too little memory to start: " + r.what};
  }
  Words operator()(const ExitCode& r) const {
    return {"ExitCode", "exited with code " + std::to_string(r.code)};
  }
  Words operator()(const Hung& r) const {
    if (r.unreturned_s > 0)
      return {"Hung",
              "it lived on while its controller or its node was away, and its link did not come "
              "back within " +
                  short_seconds(r.unreturned_s)};
    if (r.silent_s <= 0) return {"Hung", "it does not answer: its link to the controller is down"};
    if (r.phase == kStoppedPhase)
      return {"Hung",
              "hung: a signal (SIGSTOP) has stopped it for " + one_decimal(r.silent_s) + " s"};
    std::string text = "hung";
    if (!r.phase.empty()) text += " in " + r.phase;
    text += ": no progress for " + one_decimal(r.silent_s) + " s";
    if (r.longest_s > 0) text += "; the longest before took " + short_seconds(r.longest_s);
    return {"Hung", std::move(text)};
  }
  Words operator()(const NodeLost& r) const {
    return {"NodeLost", "node " + r.node + " does not answer"};
  }
  Words operator()(const GangMemberDied& r) const {
    return {"GangMemberDied", "rank " + std::to_string(r.rank) + " of its gang died"};
  }
  Words operator()(const RestartsExhausted& r) const {
    return {"RestartsExhausted",
            "died again after " + std::to_string(r.restarts) + " restarts; root cause: " + r.cause};
  }
  Words operator()(const ScaleDown&) const { return {"ScaleDown", "the role was scaled down"}; }
  Words operator()(const Completed&) const { return {"Completed", "all steps are trained"}; }
  Words operator()(const Finished& r) const {
    return {"Finished", r.job ? "all of its actors have ended with code 0" : "ended with code 0"};
  }
  Words operator()(const CancelledByUser& r) const {
    return {"CancelledByUser", r.how.empty() ? "cancelled" : r.how};
  }
  Words operator()(const JobEnded&) const { return {"JobEnded", "its job has ended"}; }
  Words operator()(const JobFailed& r) const { return {"JobFailed", r.cause}; }
};

template <class State>
void enter_checked(Status<State>& status, State to, Reason reason, Time now) {
  if (status.state != to) {
    CHECK(allowed(status.state, to) && "LC-1");
    status.state = to;
    status.since = now;
  }
  status.reason = std::move(reason);
}

}  // namespace

std::span<const ActorState> successors(ActorState from) {
  return {edges(from).to.data(), edges(from).count};
}
std::span<const JobState> successors(JobState from) {
  return {edges(from).to.data(), edges(from).count};
}

bool allowed(ActorState from, ActorState to) {
  return std::ranges::count(successors(from), to) == 1;
}
bool allowed(JobState from, JobState to) { return std::ranges::count(successors(from), to) == 1; }

bool is_final(ActorState state) { return successors(state).empty(); }
bool is_final(JobState state) { return successors(state).empty(); }

const char* name(ActorState state) { return edges(state).name; }
const char* name(JobState state) { return edges(state).name; }

const char* reason_name(const Reason& reason) { return std::visit(Describe{{}}, reason).name; }

std::string message(const Reason& reason, Time now) {
  return std::visit(Describe{now}, reason).message;
}

// Some reasons have two times: `until` is the next try then, and the other one is the end.
std::optional<Time> deadline_of(const Reason& reason) {
  return std::visit(
      []<class R>(const R& r) -> std::optional<Time> {
        if constexpr (requires { r.give_up; })
          return r.give_up;
        else if constexpr (requires { r.deadline; })
          return r.deadline;
        else if constexpr (requires { r.until; })
          return r.until;
        else
          return std::nullopt;
      },
      reason);
}

void enter(ActorStatus& status, ActorState to, Reason reason, Time now) {
  enter_checked(status, to, std::move(reason), now);
}

void enter(JobStatus& status, JobState to, Reason reason, Time now) {
  enter_checked(status, to, std::move(reason), now);
}

}  // namespace tandem::scheduler
