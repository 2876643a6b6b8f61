// The events that change what a later controller needs of this one's state (durable.h), as they are
// journalled. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/messages/exchange.h"
#include "actors/messages/roles.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"
#include "scheduler/fleet/autoscale.h"
#include "scheduler/fleet/resources.h"

namespace tandem::scheduler {

TANDEM_WIRE(Resources, cpu_milli, gpu_milli, memory_bytes)
TANDEM_WIRE(AutoscaleRaised, rollouts, trainer_idle, instance_per_s, step_tokens, consumed_per_s)
TANDEM_WIRE(AutoscaleDelivered, share, step_tokens)

}  // namespace tandem::scheduler

namespace tandem::controller {

// The fields of the events below are a schema, and so is the order of DurableState::events(), by
// which a state is hashed; a change of them takes another number.
inline constexpr std::int64_t kDurableSchema = 6;

// Where the attempt at a run begins that its job may go on with: what is older belongs to attempts
// that are over.
struct Earlier {
  std::int64_t rows = 0;           // of the run's journal, by their numbers up to this one
  std::uint64_t incarnations = 0;  // of actors that train, up to this one
  auto operator<=>(const Earlier&) const = default;
};
TANDEM_WIRE(Earlier, rows, incarnations)
// A user has submitted the job, or an earlier controller had it.
struct JobTaken {
  std::string job;
  std::string run_dir;
  std::string yaml;  // JobShape::yaml, since job.yaml is that of the last time the run went on
  std::int64_t submitted_ms = 0;               // since 1970; of the first submission
  std::map<std::string, std::int32_t> wanted;  // actors, by the name of their role
  Earlier earlier = {};
  auto operator<=>(const JobTaken&) const = default;
};
TANDEM_WIRE(JobTaken, job, run_dir, yaml, submitted_ms, wanted, earlier)
struct RoleScaled {
  std::string job;
  messages::Role role;
  std::int32_t replicas = 0;
};
TANDEM_WIRE(RoleScaled, job, role, replicas)
// Who decides how many rollouts the job has from now on, and what a user can go back to.
struct AllocationKept {
  std::string job;
  bool automatic = false;  // the job itself (autoscaling.h), not its user
  // As JobTaken::wanted, before the newest change; empty: there was none.
  std::map<std::string, std::int32_t> before;
  // The newest change by the job itself; of the clock that counts since the machine was booted.
  std::optional<Time> changed;
  bool raised = false;  // by that change
  // What the policy knows by then (scheduler::AutoscaleState).
  std::optional<scheduler::AutoscaleRaised> too_few;
  scheduler::AutoscaleDelivered delivered;
  bool operator==(const AllocationKept&) const = default;
};
TANDEM_WIRE(AllocationKept, job, automatic, before, changed, raised, too_few, delivered)
// The job has an outcome. It stays remembered until its last process has ended and its result is
// written: JobLeft.
struct JobOver {
  std::string job;
  messages::JobOutcome outcome = messages::JobOutcome::kSucceeded;
  std::string reason;
  bool has_result = false;  // as messages::JobEnded's
  auto operator<=>(const JobOver&) const = default;
};
TANDEM_WIRE(JobOver, job, outcome, reason, has_result)
// The job has ended, or its user wants it to: no later controller takes it up.
struct JobLeft {
  std::string job;
};
TANDEM_WIRE(JobLeft, job)
// No incarnation up to `last` may be given to an actor by a later controller. They are reserved
// many at a time, so that a start of an actor is seldom a write.
struct IncarnationsReserved {
  std::uint64_t last = 0;
};
TANDEM_WIRE(IncarnationsReserved, last)
// Where a rank runs, what it holds there, and the uuids of its GPUs.
struct RankPlaced {
  std::string node;
  std::vector<std::string> gpus;
  scheduler::Resources need;
  bool operator==(const RankPlaced&) const = default;
};
TANDEM_WIRE(RankPlaced, node, gpus, need)
// The exchange of a job that trains serves payloads there.
struct JobServes {
  std::string job;
  std::vector<std::string> endpoints;
};
TANDEM_WIRE(JobServes, job, endpoints)
// An incarnation of an actor is started, or was found to live after all.
struct ActorStarted {
  std::string actor;  // "JOB/counter/0"
  messages::Role role;
  std::int32_t index = 0;
  Incarnation incarnation;
  std::vector<RankPlaced> ranks;  // in their order
  bool operator==(const ActorStarted&) const = default;
};
TANDEM_WIRE(ActorStarted, actor, role, index, incarnation, ranks)
// Why an incarnation was told to end while its job goes on.
enum class Leaving : std::uint8_t {
  kDropped,    // the actor is not wanted any more
  kMoved,      // its node is drained: the next one starts elsewhere
  kRestarted,  // another one is to take its place
  kPreempted,  // the same, since it was told to end from outside
};
TANDEM_WIRE_ENUM(Leaving, kDropped, kMoved, kRestarted, kPreempted)
// The incarnation was told to end, so that an end with code 0 does not mean that it has finished.
struct ActorLeaves {
  std::string actor;
  Incarnation incarnation;
  Leaving why = Leaving::kDropped;
  std::string node;  // that is drained
  auto operator<=>(const ActorLeaves&) const = default;
};
TANDEM_WIRE(ActorLeaves, actor, incarnation, why, node)
// What the end of an incarnation means for its actor.
enum class ActorEnd : std::uint8_t {
  kDied,      // it counts against the restart budget
  kReplaced,  // it does not, and another incarnation follows
  kFinished,  // its program has ended with code 0: it is not started again
  kDropped,   // the actor is not wanted any more
};
TANDEM_WIRE_ENUM(ActorEnd, kDied, kReplaced, kFinished, kDropped)
// All processes of the incarnation have ended. The fields behind `how` are those of
// scheduler::RestartLadder::Death, and set where it died.
struct ActorEnded {
  std::string actor;
  Incarnation incarnation;
  ActorEnd how = ActorEnd::kDied;
  std::string cause;
  Time started{}, died{};  // of the clock that counts since the machine was booted
  bool memory_kill = false;
  auto operator<=>(const ActorEnded&) const = default;
};
TANDEM_WIRE(ActorEnded, actor, incarnation, how, cause, started, died, memory_kill)
struct NodeJoined {
  std::string node;
};
TANDEM_WIRE(NodeJoined, node)
struct NodeLeft {
  std::string node;
};
TANDEM_WIRE(NodeLeft, node)
// The node takes no new actor until NodeUncordoned, also if it goes and comes back.
struct NodeCordoned {
  std::string node;
  std::string why;  // a clause for people
};
TANDEM_WIRE(NodeCordoned, node, why)
// Its GPUs take new actors again as well.
struct NodeUncordoned {
  std::string node;
};
TANDEM_WIRE(NodeUncordoned, node)
// One GPU takes no new actor until GpuUncordoned or NodeUncordoned.
struct GpuCordoned {
  std::string node;
  std::string gpu;  // its uuid
  std::string why;  // a clause for people
};
TANDEM_WIRE(GpuCordoned, node, gpu, why)
struct GpuUncordoned {
  std::string node;
  std::string gpu;
};
TANDEM_WIRE(GpuUncordoned, node, gpu)

// DurableState::hash() after all events before this one. It stands behind the fewest events that
// give a state, where rows of the journal are replaced by these.
struct StateHashed {
  std::uint64_t hash = 0;
};
TANDEM_WIRE(StateHashed, hash)

using DurableEvent =
    std::variant<JobTaken, RoleScaled, JobLeft, IncarnationsReserved, NodeJoined, NodeLeft,
                 NodeCordoned, NodeUncordoned, JobOver, ActorStarted, ActorLeaves, ActorEnded,
                 JobServes, GpuCordoned, GpuUncordoned, StateHashed, AllocationKept>;

// The name of the event's kind, and the job, actor or node that it is about, for people who read
// the journal.
std::string_view kind_of(const DurableEvent& event);  // "job_taken"
std::string subject_of(const DurableEvent& event);    // empty where it is about none

}  // namespace tandem::controller
