// How the controller actor acts on the world (controller.h): functions that the wiring of the
// process fills with links and files, and a simulation with simulated ones.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/controller_core.h"
#include "actors/messages/exchange.h"
#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "actors/runs/cluster_event.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/ref.h"
#include "runtime/node/agent_messages.h"

namespace tandem::controller {

// The part of an exchange's inbox that the controller and the API may use.
using ExchangeControl =
    std::variant<messages::ActorDown, messages::ActorSilent, messages::DrainActor, messages::EndJob,
                 actor::Ask<messages::GetExchangeReport>, actor::Ask<messages::GetGroups>>;

// The id of a run and its directory.
struct RunDirectory {
  std::string id;
  std::string path;
  std::int64_t last_event = 0;    // the newest that any controller has announced about the run
  std::int64_t journal_rows = 0;  // Earlier::rows of a run that is resumed
};

// The controller's ways to act, all called in its turns.
struct ControllerActions {
  std::function<actor::Ref<node::AgentInbox>(const std::string& node, Incarnation)> agent;
  std::function<actor::Ref<messages::RankInbox>(const node::RankId&)> rank;
  std::function<actor::Ref<messages::ProgramInbox>(const node::RankId&)> program;
  // Called before the node is told to spawn the rank: from then on this incarnation may dial, and
  // others of its name may not.
  std::function<void(const std::string& node, const node::RankId&)> expect;
  std::function<void(const node::RankId&)> cut_link;  // does nothing where it has none
  std::function<std::vector<std::string>(const node::RankId&)> rank_arguments;
  std::function<std::vector<std::string>(const std::string& job)> bulk_endpoints;
  // Makes a directory with a free id and with job.yaml in it; for shape.resume_dir returns that
  // run's own directory.
  std::function<Result<RunDirectory>(const JobShape&)> make_run_directory;
  // Locks the run directory of a job that is taken up, if it has a run to go on with.
  std::function<Result<void>(const std::string& job, const JobShape&)> own_run_directory;
  // The run of a job of actors alone goes on: its former job file and result get a number (an
  // exchange does that for the others). An Error ends the job as failed.
  std::function<Result<void>(const JobRecord&)> take_up_run = [](const JobRecord&) {
    return Result<void>();
  };
  // Spawns the exchange of a job. An Error ends the job as failed.
  std::function<Result<actor::Ref<ExchangeControl>>(const JobRecord&)> open_exchange;
  // Ends the exchange of a job, if it has one, and frees its run directory.
  std::function<void(const std::string& job)> close_exchange;
  // Writes the outcome of a job without an exchange into outcome_file() (result_json.h); an Error
  // is logged, and nothing else follows.
  std::function<Result<void>(const JobRecord&, const std::string& json)> write_result;
  // Appends an event to the controller's journal; after an Error it is lost (lost_events.h).
  std::function<Result<void>(const runs::ClusterEvent&)> journal;
  // Appends changes of what survives this process, all or none; after an Error, again with them.
  std::function<Result<void>(std::span<const DurableEvent>)> remember;
  // The highest event number of earlier controllers of this state folder.
  std::int64_t events_before = 0;
  ClusterRules rules = {};
};

}  // namespace tandem::controller
