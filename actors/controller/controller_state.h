// The state of the controller's core. The records of jobs, their actors and ranks, and nodes are
// plain values that the core's parts alone change, and that views, journals and the HTTP API read.
// They decide nothing.
//
// A job has actors, an actor has ranks, a rank is one process. The record of an actor describes its
// current incarnation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/controller/durable.h"
#include "actors/controller/lookups.h"
#include "actors/controller/node_record.h"
#include "actors/messages/exchange.h"
#include "actors/messages/rank.h"
#include "actors/messages/roles.h"
#include "runtime/base/clock.h"
#include "runtime/base/rng.h"
#include "runtime/link/link.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/autoscale.h"
#include "scheduler/fleet/lifecycle.h"
#include "scheduler/fleet/node_deaths.h"
#include "scheduler/fleet/placement.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::job {
struct JobSpec;
}

namespace tandem::controller {

// The program of a role that the job brings, from the section `actors:` of its file.
struct RoleProgram {
  std::vector<std::string> command;                // argv
  std::map<std::string, std::string> environment;  // beside the agent's own
  std::string args_json = "{}";                    // StartActor::args_json
  // Arguments of the node's own binary that starts the command; empty: it starts by itself.
  std::vector<std::string> launcher = {};
};

// The part of a job file that the controller needs.
struct JobShape {
  std::string name;
  std::string yaml;  // the effective job file, with all defaults
  // The job that `yaml` is printed from, as it was parsed when it was submitted. The controller
  // does not look into it: open_exchange (controller.h) does. Null once the exchange is closed or
  // cannot be needed any more, and in simulations, whose open_exchange does not use it.
  std::shared_ptr<const job::JobSpec> spec;
  // The roles in the order in which their actors are placed: those of training, then those of
  // `programs`. A job of actors alone has only the latter, and no exchange.
  std::vector<messages::Role> roles{std::begin(messages::kTrainingRoles),
                                    std::end(messages::kTrainingRoles)};
  std::map<messages::Role, RoleProgram> programs;
  std::map<messages::Role, std::int32_t> replicas;
  std::map<messages::Role, scheduler::Resources>
      per_rank;                                            // with the memory that settled() decides
  std::map<messages::Role, scheduler::Strategy> strategy;  // PACK for a role that is missing
  // A learner is one actor with so many ranks; rollouts and rewards have one rank per actor.
  std::int32_t learner_ranks = 1;
  // The setting by which all actors that take a share of a GPU must take it of the same one, as
  // "weight_broadcast.type: cuda_ipc"; empty: there is none.
  std::string one_gpu;
  std::set<messages::Role> nccl_roles;   // roles whose ranks meet in communicators of NCCL
  std::set<messages::Role> preemptible;  // roles whose actors may be ended from outside
  std::optional<scheduler::AutoscaleConfig> autoscale;  // of rollouts; absent: it has none
  // The memory of each rank; absent: not planned.
  std::map<messages::Role, scheduler::MemoryDemand> memory;
  std::vector<scheduler::MemoryOption> memory_options;  // changes that a refusal can propose
  // The next three fields are shown to users and decide nothing here: the exchange has its own
  // values.
  std::int64_t total_steps = 0;
  std::int64_t staleness_bound = 0;
  std::int64_t resumed_step = 0;          // the step of the newest checkpoint in `resume_dir`
  std::optional<std::string> resume_dir;  // the run directory to resume
  std::vector<std::string> warnings;      // for the user who submits the job, a sentence each
};

// One process of an actor. The order of the flags is that of a start: alive, connected, started,
// ready.
struct RankRecord {
  std::string node;
  std::int64_t pid = 0;
  bool alive = false;  // spawned, not yet exited
  bool connected = false, ready = false;
  bool silent = false;       // its link is up, and nothing is heard of it
  bool started = false;      // StartRank was sent
  bool end_unheard = false;  // told to end by the cut of its link alone: its node had no agent
  // Indices into NodeRecord::gpus while the rank is alive, and the uuids of those GPUs.
  std::vector<std::int32_t> gpus;
  std::vector<std::string> gpu_uuids;
  scheduler::Resources need;             // that it holds there while it is alive
  std::optional<node::RankUsage> usage;  // last reported
};

// One actor, over all of its incarnations.
struct ActorRecord {
  std::string name, job;
  messages::Role role;
  std::int32_t index = 0;
  // State, reason and since when: changed by enter() (transitions.h) alone.
  scheduler::ActorStatus status;
  Time created;
  Incarnation incarnation;
  // The ranks of the current incarnation, by their number; empty before the first placement. After
  // the end they stay until the next placement, so that views can show where the actor ran.
  std::vector<RankRecord> ranks;
  std::string gang_endpoint;  // where ranks above 0 meet rank 0; empty before it listens
  std::string gang_secret;
  std::string sandbox;  // RankReady::sandbox, of the last incarnation that was ready
  std::optional<Time> ready_since;
  std::optional<Time> restart_at;  // the end of a backoff
  Time report_deadline{};          // when all ranks of this incarnation must have reported
  Time kill_deadline{};            // in the state Stopping: when its processes are killed
  // How often the actor has died in a row, for views.
  scheduler::CrashLoop crash_loop;
  bool ever_ready = false;                  // in any incarnation
  std::optional<scheduler::Reason> ending;  // set while this incarnation is being ended
  bool preempted = false;  // this incarnation ends since it was told to from outside
  std::string moved_off;   // the node that this incarnation is drained off; empty: it is not
};

// How the number of a job's rollouts follows its trainer (autoscaling.h), and what it was.
struct Autoscaling {
  bool on = false;
  scheduler::AutoscaleState state;
  std::optional<scheduler::AutoscaleDecision> newest;  // by the last window
  std::optional<scheduler::AutoscaleHold> said;        // of the last event about it
  std::map<messages::Role, std::int32_t> before;  // JobRecord::desired before the newest change
  // JobRecord::desired before the newest ScaleRole that begins a request.
  std::map<messages::Role, std::int32_t> before_request;
  struct Change {
    Time at;
    std::int64_t from = 0, to = 0;
    std::string reason;
  };
  std::optional<Change> last;  // by the policy, under this controller
};

// One submitted job; it stays after its end until it is forgotten (lookups.h).
struct JobRecord {
  std::string id;
  JobShape shape;
  std::string run_dir;
  scheduler::JobStatus status;
  Time created;         // when it was submitted; anew if a user resumes it
  std::string message;  // the message of the last JobProgress
  // All actors that the job has, by name ("JOB/rollout/0"). An actor that was scaled away is
  // removed when its processes are gone.
  std::map<std::string, ActorRecord> actors;
  // Subsets of `actors`, kept by transitions.h so that an event need not look at all of them.
  std::set<std::string> waiting;  // actors that wait for room or for the end of a backoff
  WaitingActors line;
  std::map<messages::Role, std::int32_t> living;  // ranks that are alive
  // How many actors are Ready, and how many Stopped. While a job runs, a Stopped actor is one whose
  // program has ended with code 0.
  std::int32_t ready = 0, stopped = 0;
  // How many actors of each role the user wants: those with a lower index than this.
  std::map<messages::Role, std::int32_t> desired;
  Autoscaling autoscaling;
  std::optional<messages::JobEnded> outcome;  // set when the exchange has ended the job
  // The restart budget of the job's actors and roles.
  scheduler::RestartLadder ladder;
  std::int64_t submitted = 0;  // order in the queue
  // Set for a job that was taken up, and whose exchange meets its actors that live (TakeUpJobs).
  bool follows = false;
  std::vector<std::string> bulk;  // where the former exchange served payloads, as ranks know
  // Actors of the controller before this one that were not adopted, and the nodes of their ranks.
  // Their ends are remembered once the job starts anew, so that the next controller waits as well.
  std::vector<ActorEnded> former;
  std::set<std::string> former_nodes;
  bool unsettled = false;    // its memory is settled once a node is back
  std::string nccl_version;  // the version of the living ranks of nccl_roles; empty: there is none
};

// Whether the job trains, and so has an exchange.
bool trains(const JobShape& shape);
bool has_role(const JobShape& shape, const messages::Role& role);
// The program of a role that the job brings; null for a role of training.
const RoleProgram* program_of(const JobShape& shape, const messages::Role& role);
// Processes of each of the role's actors.
std::int32_t ranks_of(const JobShape& shape, const messages::Role& role);
// Whether the job ended before the run that it was to resume went on, whose result.json is older.
bool ended_unresumed(const JobRecord& job);
bool alive(const ActorRecord& actor);                             // whether the actor has a process
bool has_worked(const JobRecord& job, const ActorRecord& actor);  // in any incarnation
// Whether the user wants the actor: its index is below the number of actors that the user wants of
// that role.
bool wanted(const JobRecord& job, const ActorRecord& actor);

// The rules of a cluster. The controller gets them as options when it starts.
struct ClusterRules {
  // For so long a host that hears of no controller keeps its ranks.
  Duration node_grace = node::kNodeGraceDefault;
  // Nodes are still on their way: a job starts with the rollouts that fit, one at least, and gets
  // the others as room comes.
  bool grows = false;
  bool plaintext_gang = false;  // gangs may talk unencrypted between hosts, as NCCL does
};

// All that the core keeps from one event to the next.
struct ControllerState {
  ControllerState(std::uint64_t seed, const DurableState& restored, ClusterRules given)
      : rules(given), durable(restored), incarnation_last(restored.incarnation_last()), rng(seed) {}
  // How long a host is waited for that has no link to this controller: longer than it keeps its
  // ranks, so that none of them can be left when others take their place (CC-1).
  Duration away_max() const { return rules.node_grace + link::kGraceMargin; }

  const ClusterRules rules;

  std::map<std::string, JobRecord> jobs;    // by id
  std::map<std::string, NodeRecord> nodes;  // by name
  DurableState durable;                     // changed by Turn::remember() alone
  // The nodes of the controller before this one that have not come back, each with the end of the
  // wait for it; empty where no job was taken up. All jobs wait until `nodes_return_until`, and
  // those with former ranks on a node until that node's time.
  std::map<std::string, Time> nodes_awaited;
  std::optional<Time> nodes_return_until;
  // Until then actors that have outlived the controller before this one are waited for
  // (adoption.h); set while some may be missing.
  std::optional<Time> actors_return_until;
  std::uint64_t incarnation_last;
  bool journal_fails = false;  // by the last JournalNews: no actor starts
  std::int64_t submitted_last = 0;
  scheduler::NodeDeaths node_deaths;  // by which nodes and GPUs are cordoned (automatic_cordon.h)
  std::uint64_t changes = 0;          // Turn::note_change() counts them
  std::uint64_t scheduled = 0;        // `changes` when the last schedule() (queue.h) began
  Lookups found;                      // in the records above
  Rng rng;                            // of the jitter in restart pauses
  Time now_last{};                    // the time of the last event

  // Both return null for a job that is unknown; `actor` is the name of one of its actors.
  JobRecord* job(const std::string& id);
  JobRecord* job_of(const std::string& actor);
  // Null for an actor that is unknown, and for an incarnation of it that is over.
  ActorRecord* actor_of(const ActorId& id);
  // Null for an incarnation that is over, and for a rank that the actor does not have.
  RankRecord* rank_of(const node::RankId& id);
  bool has_agent(const std::string& node) const;
};
// Whether nothing runs and every job is final.
bool idle(const ControllerState& state);

}  // namespace tandem::controller
