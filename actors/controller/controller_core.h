// Decides what should run where, for all jobs of the cluster: the controller as a state machine,
// step(event) -> effects. It has no clock, socket, process or file: the time comes with the event,
// and effects are values that the Controller actor carries out. The policies (lifecycle, placement,
// restarts) are those of scheduler/fleet.
//
// The core is made of parts, functions over a Turn (turn.h), a file each. The way of a job reads
// forward: requests, queue, ranks, job_progress, job_end. Beside it: nodes (agents come and go),
// cordon (a user wants a node empty), programs (roles that a job brings), stopping and actor_end
// (an actor is asked to end; it has ended, and starts again or not), adoption (actors that have
// outlived the controller before), autoscaling (the rollouts follow the trainer). Below them:
// allocation (how many actors a role has), room and demands (what fits), transitions (every change
// of a state).
//
// Events may be late or repeated: one that names an incarnation that is over changes nothing.
//
//   CC-1  At most one incarnation of an actor has living processes; the next one starts only when
//         every process of the last is gone.
//   CC-2  The resources of running processes are never given away twice (PL-1 over all jobs).
//   CC-3  Every actor and job that is not final says what it waits for (LC-2).
//   CC-4  A job that ends leaves no process: it is final only when its last process is gone.
//
// CC-5 is in durable.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/controller/controller_events.h"
#include "actors/controller/controller_state.h"
#include "runtime/node/agent_messages.h"

namespace tandem::controller {

// Plain state, used by one thread. `seed` is that of the jitter in restart pauses. `restored` is
// what the controller before this one remembered; its jobs come by TakeUpJobs.
class ControllerCore {
 public:
  explicit ControllerCore(std::uint64_t seed, const DurableState& restored = {},
                          ClusterRules rules = {})
      : state_(seed, restored, rules) {}

  // Takes one event; returns the effects, to be carried out in order. Only submit, scale, roll
  // back, cancel, forget, cordon and uncordon can fail (kInfeasible, kInvalid, kNotFound, kFailed);
  // an event that fails changes nothing.
  Result<std::vector<ControllerEffect>> step(const ControllerEvent& event, Time now);

  // Keeps what ranks use, for views. That is no event: it comes every second. The ranks that are
  // returned hang, since a signal has stopped them (HT-4): the caller steps with these events.
  [[nodiscard]] std::vector<RankHung> note_usage(const node::UsageReport& report);

  // Whether the nodes that are up could hold the job if nothing else ran.
  Result<void> can_ever_run(const JobShape& shape) const;  // kInfeasible, with the nearest fit
  // The shape of a job that can run: settled, and without the options that only a refusal needs.
  // Fails as can_ever_run() does.
  Result<JobShape> accepted(const JobShape& shape) const;
  // Decides how much of a node's memory the ranks reserve, by the nodes that are up. A shape that
  // was made by as_placed() (demands.h) keeps what was decided.
  JobShape settled(JobShape shape) const;

  // The process to which a question for this actor goes. kNotFound: there is no such actor;
  // kInvalid: it is none of a user's program; kUnreachable: it is not ready.
  Result<node::RankId> program_to_ask(const std::string& actor) const;

  // Whether the process counts as living: it was to be started, and no end of it is known.
  bool lives(const node::RankId& rank);

  const std::map<std::string, JobRecord>& jobs() const { return state_.jobs; }
  const std::map<std::string, NodeRecord>& nodes() const { return state_.nodes; }
  const DurableState& durable() const { return state_.durable; }
  const Lookups& lookups() const { return state_.found; }      // for checks
  bool journal_fails() const { return state_.journal_fails; }  // by the last JournalNews
  bool idle() const;                                           // every job is final

 private:
  ControllerState state_;
};

}  // namespace tandem::controller
