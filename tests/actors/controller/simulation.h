// A whole simulated cluster on one thread, in virtual time, from one seed: the real Controller,
// Exchanges, Agents and role actors, each process a System of its own, joined by a simulated
// network that encodes and decodes every message. Tests inject faults (fault_kinds.h has them all)
// and look at what is left; the same seed gives the same events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "actors/controller/link_news.h"
#include "actors/doors/doors.h"
#include "actors/doors/exchange_door.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/link/remote.h"
#include "tests/actors/controller/hidden_processes.h"
#include "tests/actors/controller/simulated_network.h"
#include "tests/actors/controller/simulated_node.h"
#include "tests/actors/controller/simulated_processes.h"
#include "tests/actors/controller/simulated_rank.h"
#include "tests/actors/controller/simulated_run.h"
#include "tests/actors/controller/simulated_server.h"

namespace tandem::controller {

struct ClusterConditions {
  NetworkConditions network;
  ProcessTimes processes;
  std::size_t mailbox_max = actor::SpawnOptions{}.mailbox_max;  // of controller and exchanges
  std::uint64_t frame_bytes_max = link::SessionLimits{}.frame_bytes_max;  // to ranks
  // Two checks look through a whole state: the ledger is counted anew, and what a reader has is
  // compared with what the writer has. They are made once in so many effects.
  std::uint64_t check_every = 1;
};

class SimulatedCluster {
 public:
  // `restored`: what the controller of another cluster remembered.
  explicit SimulatedCluster(std::uint64_t seed, const ClusterConditions& conditions = {},
                            const DurableState& restored = {});
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  // SIGKILL to the controller's process, at once, also in the midst of a turn (on_effect), and
  // another controller after the pause, which takes up what it finds. Nothing where it is dead.
  void crash_controller(Duration pause);
  void restart_controller(Duration pause);  // the same, and runs until peers are let in again
  void stall_controller(Duration time);     // its actors wait, its links live
  void jump_controller_clock(Duration forward);
  void add_node(const std::string& name, double cpus);
  void kill_node(const std::string& name);       // agent and ranks, at once and silently
  SimulatedNode* node(const std::string& name);  // null: it is down
  std::vector<std::string> nodes_up() const;

  // Each asks the controller and runs the cluster until it answers.
  Result<std::string> submit(const SimulatedJob& job);
  Result<std::string> submit_actors(const JobShape& shape);  // without roles of training
  Result<messages::AskedJson> ask_program(const std::string& actor, const std::string& body);
  // Returns at once; `done` hears the answer, once. An error where the controller dies meanwhile.
  using Answered = std::function<void(const Result<messages::AskedJson>&)>;
  void ask_program_later(const std::string& actor, const std::string& body, Duration timeout,
                         Answered done);
  // The same for a wish about the number of actors.
  void scale_later(const ScaleRole& wish, std::function<void(const Result<Nothing>&)> done);
  // Tells the controller this of a window of steps, as the job's exchange does.
  void measure(const messages::FleetMeasured& figures);
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
  SimulatedProcess* process_of(const node::RankId& rank);  // null: it does not run
  // From now on for so long the controller may not know what lives on the host.
  void hide(const std::string& host, Duration time);
  // The agent's process is seen to have ended; nothing happens while there is no controller.
  void tell_of_ended_agent(const std::string& host, Incarnation agent) {
    if (news_) news_->tell(NodeDown{host, agent, /*died=*/true});
  }

  // Runs until `done`, or until `limit` of virtual time has passed; returns done().
  bool run_until(const std::function<bool()>& done, Duration limit);
  void run_for(Duration time);
  // Drops what this world itself keeps of jobs that are final, and the trace.
  void forget_ended();
  bool final(const std::string& job) const { return finals_.contains(job); }
  std::string final_state(const std::string& job) const;  // "Succeeded"; "" before
  bool has_result(const std::string& job) const;  // its exchange or its controller wrote one

  std::shared_ptr<SimulatedRun> run_of(const std::string& job) const { return runs_.at(job); }
  const std::map<std::string, std::shared_ptr<SimulatedRun>>& runs() const { return runs_; }
  // What a later controller would know if this one died now.
  const DurableState& remembered() const { return remembered_; }
  actor::SimulatedExecutor& executor() { return executor_; }
  SimulatedNetwork& network() { return network_; }
  DiskFaults& disk() { return disk_; }
  std::uint64_t effects() const { return effects_; }  // of all controllers
  // By the controller's process of now: the controller, the watchdog, the exchanges.
  std::uint64_t messages_handled() const { return life_ ? life_->executor.messages_handled() : 0; }
  const ControllerCore& core() const { return *core_; }  // while there is a controller
  // What was found wrong in the midst of the run (CC-1 for processes that physically live).
  const std::vector<std::string>& violations() const { return violations_; }
  // Every journalled event of every job and every announcement, in order, with virtual times.
  const std::vector<std::string>& trace() const { return trace_; }
  link::RemoteCounters counters() const { return directory_.counters(); }

  // Heard in the midst of an exchange's flush, whose ledger has just been recounted: kill() later.
  std::function<void(const std::string& job, const JournalledRow&)> on_event;
  // Heard before each effect of the controller's process, with its number: crash_controller() may
  // be called.
  std::function<void(std::uint64_t)> on_effect;
  bool fail_to_open_exchanges = false;

 private:
  void end_node(const std::string& name);
  void start_controller(std::uint64_t seed, const DurableState& restored);
  void end_controller();
  void controller_comes_back();
  TakeUp jobs_to_take_up(const std::map<std::string, std::shared_ptr<SimulatedRun>>& runs,
                         bool outlived);
  ControllerActions actions();
  link::LinkCallbacks link_callbacks();
  link::ParcelSender to_client(const ActorId& peer);
  Result<actor::Ref<ExchangeControl>> open_exchange(const JobRecord& job);
  void close_exchange(const std::string& job);
  void leave_exchanges();
  void record(const std::string& job, SimulatedRun& run, std::span<const JournalledRow> events);
  void check_one_incarnation(const node::RankId& began);
  void note_introduction(const std::string& host);
  void stall_for_disk(const SharedLife& life);
  bool checks_now() const { return effects_ % conditions_.check_every == 0; }
  template <class Q>
  Result<typename Q::Reply> ask(Q question);
  std::string now_text() const { return std::to_string(executor_.now().ns); }

  actor::SimulatedExecutor executor_;
  SimulatedNetwork network_;
  const ClusterConditions conditions_;
  // The controller's process: null while there is none.
  SharedLife life_;
  link::Directory directory_;
  std::unique_ptr<actor::System> system_;
  actor::Ref<Controller::Inbox> controller_;
  const ControllerCore* core_ = nullptr;  // of the newest controller
  std::unique_ptr<LinkNews> news_;
  std::map<std::pair<std::string, Incarnation>, actor::Ref<node::AgentInbox>> agents_;
  doors::Roster roster_;
  // A run's record and payloads as this process reaches them, by job.
  std::map<std::string, std::pair<std::unique_ptr<MortalRecord>, std::unique_ptr<MortalPayloads>>>
      open_runs_;
  bool served_ = false;  // peers are let in

  std::map<std::string, std::shared_ptr<SimulatedNode>> nodes_;
  std::uint64_t node_lives_ = 0, epoch_ = 0, effects_ = 0;
  DiskFaults disk_;
  HiddenProcesses hidden_;
  std::vector<std::string> violations_;
  std::shared_ptr<SimulatedRun> submitted_;  // the job that is on its way to the controller
  std::map<std::string, std::shared_ptr<SimulatedRun>> runs_;  // null: a job of actors alone
  std::size_t runs_known_ = 0;                                 // also those that are forgotten
  std::map<std::string, JobShape> actors_alone_;               // the shapes of those
  std::map<std::string, std::string> finals_;                  // by job: its final state
  std::set<std::string> results_;                              // jobs, by their controllers
  DurableState remembered_;
  std::vector<std::string> trace_;
};

}  // namespace tandem::controller
