// Decides what should run where, for all jobs of the cluster: the controller as a state machine,
// step(event) -> effects. It has no clock, socket, process or file: the time comes with the event,
// and effects are values that the Controller actor carries out. The policies (lifecycle, placement,
// restarts) are those of scheduler/fleet.
//
// Events may be late or repeated: one that names an incarnation that is over changes nothing.
//
//   CC-1  At most one incarnation of an actor has living processes; the next one starts only when
//         every process of the last is gone.
//   CC-2  The resources of running processes are never given away twice (PL-1 over all jobs).
//   CC-3  Every actor and job that is not final says what it waits for (LC-2).
//   CC-4  A job that ends leaves no process: it is final only when its last process is gone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/controller_events.h"
#include "actors/controller/controller_state.h"
#include "runtime/base/rng.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/lifecycle.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

// Plain state, used by one thread. `seed` is that of the jitter in restart pauses.
class ControllerCore {
 public:
  explicit ControllerCore(std::uint64_t seed) : rng_(seed) {}

  // Takes one event; returns the effects, to be carried out in order. Only submit, scale, cancel
  // and forget can fail (kInfeasible, kInvalid, kNotFound, kFailed); an event that fails changes
  // nothing.
  Result<std::vector<ControllerEffect>> step(const ControllerEvent& event, Time now);

  // Keeps what ranks use, for views. No decision depends on it, so it is not an event.
  void note_usage(const node::UsageReport& report);

  // Whether the nodes that are up could hold the job if nothing else ran.
  Result<void> can_ever_run(const JobShape& shape) const;  // kInfeasible, with the nearest fit
  // The shape of a job that can run: settled, and without the options that only a refusal needs.
  // Fails as can_ever_run() does.
  Result<JobShape> accepted(const JobShape& shape) const;
  // Decides how much of a node's memory the ranks reserve, by the nodes that are up. A shape that
  // was made by as_placed() keeps what was decided.
  JobShape settled(JobShape shape) const;

  // The process to which a question for this actor goes. kNotFound: there is no such actor;
  // kInvalid: it is none of a user's program; kUnreachable: it is not ready.
  Result<node::RankId> program_to_ask(const std::string& actor) const;

  const std::map<std::string, JobRecord>& jobs() const { return jobs_; }
  const std::map<std::string, NodeRecord>& nodes() const { return nodes_; }
  bool idle() const;  // nothing runs and every job is final

 private:
  using Effects = std::vector<ControllerEffect>;
  static constexpr std::int64_t kStopGraceMs = 3000;  // from SIGTERM to SIGKILL

  Result<void> on(const SubmitJob& submit);
  Result<void> on(const ScaleRole& scale);
  Result<void> on(const CancelJob& cancel);
  Result<void> on(const ForgetJob& forget);
  Result<void> on(const node::NodeUp& up);
  Result<void> on(const NodeDown& down);
  Result<void> on(const node::RankSpawned& spawned);
  Result<void> on(const node::RankSpawnFailed& failed);
  Result<void> on(const node::RankExited& exited);
  Result<void> on(const RankConnected& connected);
  Result<void> on(const messages::RankListening& listening);
  Result<void> on(const messages::RankReady& ready);
  Result<void> on(const messages::RankFailed& failed);
  Result<void> on(const RankHung& hung);
  Result<void> on(const messages::JobProgress& progress);
  Result<void> on(const messages::ActorDrained& drained);
  Result<void> on(const messages::JobEnded& ended);
  Result<void> on(const Tick&);

  void schedule();  // starts queued jobs and actors that now fit, and those whose backoff is over
  void start_waiting(JobRecord& job);
  std::string nccl_version_in_use(const JobRecord& job) const;  // empty: no rank of NCCL lives
  // start_job() places all actors of a queued job at once, or leaves it queued. start_waiting()
  // places those actors of a running job that wait and fit.
  void start_job(JobRecord& job);
  // Gives the job, and every actor of it, the reason for which it waits.
  void wait_in_queue(JobRecord& job, const scheduler::Reason& why);
  // The actors in backoff of all jobs, whose room a queued job must leave free.
  std::vector<scheduler::Gang> gangs_to_restart() const;
  // All ranks on the node count as gone.
  void lose_node(const std::string& node);
  void say_node_lost(JobRecord& job);
  void start_actor(JobRecord& job, ActorRecord& actor,
                   const std::vector<scheduler::RankPlace>& places);
  // Counts the rank's resources as taken from its node; give_back() counts them as free again. Each
  // rank is leased once, when it is placed, and given back once, when its process is gone (CC-2).
  void lease(const RankRecord& rank, const scheduler::Resources& need);
  void give_back(const RankRecord& rank, const scheduler::Resources& need);
  void start_ranks(JobRecord& job, ActorRecord& actor);
  void start_program(JobRecord& job, ActorRecord& actor);
  // The reason for which an actor whose processes are connected is not ready yet.
  scheduler::Reason initialising(const JobRecord& job, const ActorRecord& actor) const;
  // Lets an actor finish its work before it ends. A training actor is drained by its exchange, a
  // program by a message.
  void drain(JobRecord& job, ActorRecord& actor);
  void link_lost(ActorRecord& actor);  // a program without its link ends soon, or is ended
  // Ends a program that takes too long to drain, or lives on without its link.
  void end_overdue_program(const JobRecord& job, ActorRecord& actor);
  // Ends an actor within a few seconds; a program may first answer what it has been asked.
  void stop_actor(JobRecord& job, ActorRecord& actor, scheduler::Reason why);
  void scale_down(JobRecord& job, const messages::Role& role);
  void finish_actor(JobRecord& job, ActorRecord& actor);  // its program has ended with code 0
  // A job of actors alone runs once all are ready, and succeeds once all have finished. For other
  // jobs count_ready() only says how many are ready.
  void count_ready(JobRecord& job);
  void count_finished(JobRecord& job);
  // Ends the processes of an actor. The first reason stays, unless a rank's end explains it better.
  void kill(ActorRecord& actor, scheduler::Reason why, std::int64_t grace_ms);
  // Called when the last process of an incarnation has ended; may erase the record of the actor.
  void actor_gone(JobRecord& job, ActorRecord& actor);
  // Follows the restart ladder: this actor, or its whole role, starts again after a pause, or the
  // job fails.
  void restart(JobRecord& job, ActorRecord& actor, const scheduler::Reason& why);
  // The process of a rank has ended. The others of its gang are ended too; after the last one
  // actor_gone() decides: stopped, restarted or failed.
  void rank_gone(JobRecord& job, ActorRecord& actor, std::int32_t rank, scheduler::Reason why);
  // Asks the exchange to end the job; its JobEnded then stops the actors. A job without an exchange
  // ends at once.
  void end_job(JobRecord& job, messages::JobOutcome outcome, const std::string& why);
  void fail_job(JobRecord& job, const std::string& why);
  void job_ended(JobRecord& job, const messages::JobEnded& ended);
  // stop_job() ends the actors of a job that has ended; finish_job_if_gone() makes its
  // state final when the last process is gone (CC-4).
  void stop_job(JobRecord& job);
  void finish_job_if_gone(JobRecord& job);
  // Changes a state by the lifecycle's table, and announces a change. All changes of state pass
  // here.
  void set(ActorRecord& actor, scheduler::ActorState to, scheduler::Reason reason);
  void set(JobRecord& job, scheduler::JobState to, scheduler::Reason reason);
  ActorRecord& add_actor(JobRecord& job, const messages::Role& role, std::int32_t index);
  void remove_actor(JobRecord& job, std::string actor);  // it was scaled away
  JobRecord* job_of(const std::string& actor);
  // The actor, if `incarnation` is its current one; else null.
  ActorRecord* actor_of(const std::string& actor, Incarnation incarnation);
  // Null for an incarnation that is over, and for a rank that the actor does not have.
  RankRecord* rank_of(const node::RankId& id);
  // The nodes that are up, with the room that no living rank holds.
  std::vector<scheduler::NodeCapacity> capacity() const;
  scheduler::Gang gang_of(const JobRecord& job, const ActorRecord& actor) const;

  std::map<std::string, JobRecord> jobs_;
  std::map<std::string, NodeRecord> nodes_;
  std::uint64_t incarnation_last_ = 0;
  std::int64_t submitted_last_ = 0;
  // Counts changes of schedule()'s inputs: nodes, leases, waiting actors.
  std::uint64_t changes_ = 0;
  std::uint64_t scheduled_ = 0;       // changes_ when the last schedule() began
  std::optional<Time> restart_next_;  // the earliest end of a backoff, by the last schedule()
  Rng rng_;
  Time now_{};       // the time of the current event
  Effects effects_;  // the effects of the current event so far
};

// The number of actors that a user asks for. kInvalid for a role that the job does not have or that
// cannot be scaled, and for a number out of its bounds.
Result<std::int32_t> replicas_asked(const JobShape& shape, const messages::Role& role,
                                    std::string_view count);

// One demand per role, in the order of the shape's roles.
std::vector<scheduler::RoleDemand> demands_of(const JobShape& shape);

// The same job with the reservations of its ranks fixed: for a question about a job that is placed,
// where no change of its file could change them.
JobShape as_placed(JobShape shape);

// The pages of keys and values of a rank of this role, as settled() decided; 0 for a role that
// takes none, or whose memory is not planned.
std::int64_t planned_pages(const JobShape& shape, const messages::Role& role);

}  // namespace tandem::controller
