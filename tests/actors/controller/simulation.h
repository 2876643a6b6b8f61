// A whole simulated cluster on one thread, in virtual time, from one seed: the real Controller,
// Exchanges, Agents and role actors, each process a System of its own, joined by a simulated
// network that encodes and decodes every message. Tests inject deaths and look at what is left; the
// same seed gives the same events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "actors/doors/doors.h"
#include "actors/doors/exchange_door.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/link/remote.h"
#include "tests/actors/controller/simulated_network.h"
#include "tests/actors/controller/simulated_processes.h"
#include "tests/actors/controller/simulated_rank.h"
#include "tests/actors/controller/simulated_run.h"

namespace tandem::controller {

struct ClusterConditions {
  NetworkConditions network;
  ProcessTimes processes;
};

class SimulatedCluster {
 public:
  // `restored`: what the controller of another cluster remembered.
  explicit SimulatedCluster(std::uint64_t seed, const ClusterConditions& conditions = {},
                            const DurableState& restored = {});
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  // SIGKILL to the controller's process, between two events of virtual time, and another
  // controller, which takes up what it finds after the pause.
  void restart_controller(Duration pause);
  void add_node(const std::string& name, double cpus);
  void kill_node(const std::string& name);  // agent and ranks, at once and silently

  // Each asks the controller and runs the cluster until it answers.
  Result<std::string> submit(const SimulatedJob& job);
  Result<std::string> submit_actors(const JobShape& shape);  // without roles of training
  Result<messages::AskedJson> ask_program(const std::string& actor, const std::string& body);
  // Takes up a run that another cluster began; the versions it had published are kept or lost.
  Result<std::string> resume(std::shared_ptr<SimulatedRun> run);
  // Takes up what was restored, as a controller does at its start.
  Result<Nothing> take_up(const std::map<std::string, std::shared_ptr<SimulatedRun>>& runs);
  Result<Nothing> scale(const std::string& job, const messages::Role& role, std::int32_t replicas);
  Result<Nothing> cancel(const std::string& job);
  Result<Nothing> drain(const std::string& node);
  Result<Nothing> uncordon(const std::string& node);
  Result<Nothing> await(ClusterCondition condition);
  ClusterView view();

  // SIGKILL at this moment of virtual time.
  void kill(const node::RankId& rank);
  void report_hung(const node::RankId& rank);  // as a watchdog does
  std::vector<node::RankId> ranks_running() const;

  // Runs until `done`, or until `limit` of virtual time has passed; returns done().
  bool run_until(const std::function<bool()>& done, Duration limit);
  void run_for(Duration time);
  bool final(const std::string& job) const { return finals_.contains(job); }
  std::string final_state(const std::string& job) const;  // "Succeeded"; "" before

  std::shared_ptr<SimulatedRun> run_of(const std::string& job) const;
  const std::map<std::string, std::shared_ptr<SimulatedRun>>& runs() const { return runs_; }
  // What a later controller would know if this one died now.
  const DurableState& remembered() const { return remembered_; }
  actor::SimulatedExecutor& executor() { return executor_; }
  SimulatedNetwork& network() { return network_; }
  // Every journalled event of every job and every announcement, in order, with virtual times.
  const std::vector<std::string>& trace() const { return trace_; }
  link::RemoteCounters counters() const { return directory_.counters(); }

  // Heard in the midst of an exchange's flush, whose ledger has just been recounted: kill() later.
  std::function<void(const std::string& job, const JournalledRow&)> on_event;
  bool fail_to_open_exchanges = false;

 private:
  struct Node;
  void end_node(const std::string& name);
  void start_controller(std::uint64_t seed);
  ControllerActions actions();
  link::LinkCallbacks link_callbacks();
  Result<actor::Ref<ExchangeControl>> open_exchange(const JobRecord& job);
  void close_exchange(const std::string& job);
  void record(const std::string& job, SimulatedRun& run, std::span<const JournalledRow> events);
  template <class Q>
  Result<typename Q::Reply> ask(Q question);
  std::string now_text() const;

  actor::SimulatedExecutor executor_;
  SimulatedNetwork network_;
  const ClusterConditions conditions_;
  link::Directory directory_;  // the directory of the controller's process
  std::unique_ptr<actor::System> system_;
  actor::Ref<Controller::Inbox> controller_;
  std::map<std::string, std::shared_ptr<Node>> nodes_;
  std::map<std::string, actor::Ref<node::AgentInbox>> agents_;
  doors::Roster roster_;
  std::uint64_t node_lives_ = 0, epoch_ = 0;
  std::shared_ptr<SimulatedRun> submitted_;  // the job that is on its way to the controller
  std::map<std::string, std::shared_ptr<SimulatedRun>> runs_;  // null: a job of actors alone
  std::map<std::string, JobShape> actors_alone_;               // the shapes of those
  bool outlived_ = false;                      // take_up() follows the exchanges of this cluster
  std::map<std::string, std::string> finals_;  // by job: its final state
  DurableState remembered_;
  std::vector<std::string> trace_;
};

}  // namespace tandem::controller
