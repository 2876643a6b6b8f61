// The events that the controller's state machine takes, and the effects that it asks for: plain
// values between ControllerCore, which decides, and the Controller actor, which carries out.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/controller_state.h"
#include "actors/controller/durable.h"
#include "actors/messages/exchange.h"
#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "runtime/base/clock.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::controller {

// Events of the controller's own, besides the messages of other actors.
struct SubmitJob {
  JobShape shape;
  std::string id;                 // free, chosen by the caller
  std::string run_dir;            // exists
  std::int64_t submitted_ms = 0;  // since 1970
  // Of a run that is resumed, its rows; of a job that is taken up, what it remembers.
  Earlier earlier = {};
};
// The jobs of the controller before this one, in their order. None of them is refused, since no
// node may be back yet; they wait for the nodes of that time.
struct TakeUpJobs {
  struct Job {
    SubmitJob job;   // its shape has as many actors as its user wanted last
    Duration age{};  // since it was submitted
    // Its actors that live are not ended: an exchange that follows the former one meets them, or
    // the job's first exchange, where nobody was told anything yet. Else another attempt at the run
    // begins, and all its actors that train are of an earlier one.
    bool follows = false;
  };
  std::vector<Job> jobs;
  // Those that cannot be taken up now, since their file, data or run is not as it was, and why.
  // They stay remembered.
  std::map<std::string, std::string> left;
};
struct ScaleRole {
  std::string job;
  messages::Role role;
  std::int32_t replicas = 0;
  // The job chooses the number itself from now on (autoscaling.h), and `replicas` means nothing.
  bool automatic = false;
  bool continues = false;  // part of the request before it: RollBack undoes both
};
// The job gets the allocation back that it had before the newest change, and keeps it.
struct RollBack {
  std::string job;
};
struct CancelJob {
  std::string job;
};
struct ForgetJob {  // its run was deleted
  std::string job;
};
// A user wants no new actor on the node; with `drain`, none at all: those that are there move to
// other nodes, as far as there is room.
struct CordonNode {
  std::string node;
  std::string why;  // a clause for people
  bool drain = false;
};
struct UncordonNode {
  std::string node;
};
struct NodeDown {
  std::string node;
  Incarnation incarnation;
  bool died = false;  // the agent's process has ended alone: ranks that are silent may live
};
// The link of a node's agent, or of a rank, has been silent for a while and lasts (link.h), or it
// is heard again: the network may be cut, or the process or its host has stopped.
struct NodeSilent {
  std::string node;
  Incarnation incarnation;
  bool silent = true;
};
struct RankSilent {
  node::RankId id;
  bool silent = true;
};
struct RankConnected {  // its link is up
  node::RankId id;
};
struct RankHung {
  node::RankId id;
  double silent_s = 0;
  std::string phase = {};  // as scheduler::Hung's
  double longest_s = 0;
};
struct ExchangeOpened {  // the exchange serves payloads there
  std::string job;
  std::vector<std::string> endpoints;
};
// A write of the controller's journal has failed; or after that it could be written, with all that
// waited for it.
struct JournalNews {
  bool fails = false;
};
struct Tick {};  // a WakeAt has come: a deadline may have passed

// How long jobs that were taken up wait for the nodes of the controller before to come back, whose
// room they may need.
inline constexpr Duration kNodesReturn = std::chrono::seconds(15);
// How long a silent rank is waited for whose agent is heard: its link heals later than the agent's,
// or the process has stopped.
inline constexpr Duration kRankSilenceMax = std::chrono::seconds(5);

// How long an actor's processes may take from their start until each of them has reported: its link
// is up, which is before it loads a model. The end of a process is reported at once, so this limit
// ends only the wait for a process that lives and says nothing.
inline constexpr Duration kReportWait = scheduler::kHungAfterInConnect;

using ControllerEvent =
    std::variant<SubmitJob, TakeUpJobs, ScaleRole, RollBack, CancelJob, ForgetJob, CordonNode,
                 UncordonNode, node::NodeUp, NodeDown, NodeSilent, RankSilent, node::RankSpawned,
                 node::RankSpawnFailed, node::RankExited, RankConnected, messages::RankListening,
                 messages::RankReady, messages::RankFailed, messages::RankPreempted, RankHung,
                 messages::JobProgress, messages::ActorDrained, messages::FleetMeasured,
                 messages::JobEnded, ExchangeOpened, JournalNews, Tick>;

// Effects: each says one thing that the Controller actor is to do.
//
// Starts a process, once the journal has all changes of the step. Reported back by RankSpawned or
// RankSpawnFailed, and later by RankExited.
struct SpawnRankOn {
  std::string node;
  node::RankId id;
  std::string log_path;
  std::vector<std::string> gpus;  // uuids
  // The program of a role that the job brings; it runs in the job's run directory. Empty: the
  // process is one of ours.
  RoleProgram program{};
  std::string working_directory{};
};
// A process that has outlived the controller before this one: it may dial.
struct ExpectRank {
  std::string node;
  node::RankId id;
};
// Ends a process: SIGTERM, and SIGKILL after the grace. Reported back by RankExited.
struct KillRankOn {
  std::string node;
  node::RankId id;
  std::int64_t grace_ms = 0;
};
// Ends the link of a process, which ends by that: its agent cannot be told to end it.
struct CutLink {
  node::RankId id;
};
struct AskNode {  // to introduce itself again
  std::string node;
  Incarnation incarnation;
};
struct RefuseNode {  // another living agent has this name
  std::string node;
  Incarnation incarnation;
  std::int64_t pid_up = 0;
};
// Tells a process that is connected what to be.
struct SendStart {
  node::RankId id;
  messages::StartRank start;  // without the endpoints that only the process knows
};
// Tells a user's program that is connected which actor it holds.
struct SendProgramStart {
  node::RankId id;
  messages::StartActor start;
};
// Asks a user's program to handle what it has accepted and to end.
struct DrainRank {
  node::RankId id;
  std::int64_t deadline_ms = 0;
};
// The process has ended: questions that it has not answered get this Error.
struct FailAsks {
  node::RankId id;
  std::string cause;  // the cause of the end, for people
};
// Writes the outcome of a job that has ended and had no exchange, which writes its own:
// result.json, or resume.json where ended_unresumed(). It is written before the changes of the step
// are journalled, since these forget the job.
struct WriteResult {
  std::string job;
};
// Spawns the exchange of a job that starts; CloseExchange ends it with the job. A job without an
// exchange is only closed, which frees its run directory.
struct OpenExchange {
  std::string job;
};
// The run that a job of actors alone resumes goes on now.
struct TakeUpRun {
  std::string job;
};
struct TellExchange {
  std::string job;
  std::variant<messages::ActorDown, messages::ActorSilent, messages::DrainActor, messages::EndJob>
      message;
};
struct CloseExchange {
  std::string job;
};
// A Tick is wanted at this time. It may come late, and more than one may be pending.
struct WakeAt {
  Time when;
};
// Journals a change of what survives the controller's process (CC-5). All changes of a step are
// journalled before its other effects are carried out. A disk that does not take them lets them
// come later than those, but for starts of processes.
struct Remember {
  DurableEvent event;
};
struct Announce {    // an event for people and the journal
  std::string kind;  // "job", "actor", "node", "controller"
  std::string subject;
  std::string message;
  messages::EventLevel level = messages::EventLevel::kInfo;
};

using ControllerEffect =
    std::variant<SpawnRankOn, ExpectRank, KillRankOn, CutLink, AskNode, RefuseNode, SendStart,
                 SendProgramStart, DrainRank, FailAsks, WriteResult, OpenExchange, TakeUpRun,
                 TellExchange, CloseExchange, WakeAt, Remember, Announce>;

}  // namespace tandem::controller
