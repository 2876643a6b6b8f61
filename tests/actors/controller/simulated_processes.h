// Processes of a simulated host: objects that live between a spawn and an end, in virtual time. The
// machine has them, so that they outlive the agent that started them; the host of each agent keeps
// the promises that the real one keeps with fork, signals and pidfds (PH-1, PH-2), and ends alone
// as after a `kill -9` of the agent.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/actor/simulated_executor.h"
#include "runtime/base/rng.h"
#include "runtime/node/kept_ranks.h"
#include "runtime/node/process_host.h"

namespace tandem::controller {

struct ProcessTimes {
  Duration start_max = std::chrono::milliseconds(20);   // from spawn until it runs
  Duration obey_max = std::chrono::milliseconds(100);   // from SIGTERM until it ends
  Duration notice_max = std::chrono::milliseconds(50);  // from its end until the host says so
  double spawns_fail = 0;                               // fraction
};

// Destroyed when the process ends, by an executor's timer: no actor's turn is under way then.
class SimulatedProcess {
 public:
  virtual ~SimulatedProcess() = default;
  // SIGSTOP and SIGCONT. A process that only hangs keeps its links: its actors handle nothing.
  enum class Stop { kAll, kActors };
  virtual void stop(Stop what) = 0;
  virtual void go_on(Stop what) = 0;
  virtual void jump_clock(Duration forward) = 0;
};

// Ends the process that was given it, from within and at any time.
using ExitSelf = std::function<void(int code)>;
using SimulatedProgram = std::function<std::unique_ptr<SimulatedProcess>(
    const std::vector<std::string>& argv, ExitSelf exit)>;

class SimulatedMachine {
 public:
  // Heard when a process has begun to run.
  using Began = std::function<void(const node::RankId&)>;
  SimulatedMachine(actor::SimulatedExecutor& executor, const ProcessTimes& times,
                   SimulatedProgram program, Began began);

  struct Running {
    node::ProcessId id;
    node::RankId rank;
    SimulatedProcess* body = nullptr;  // null: it has not begun to run
  };
  std::vector<Running> running() const;
  // The ranks of earlier incarnations of the actor that run.
  std::vector<node::RankId> earlier_than(const node::RankId& rank) const;
  void signal(node::ProcessId process, int signal_number);  // SIGKILL, or another that ends it
  void fail_spawns(int count) { spawns_to_fail_ += count; }
  node::KeptRanks& kept() { return kept_; }

 private:
  friend class SimulatedProcessHost;
  struct Process {
    node::RankId rank;
    std::weak_ptr<int> watcher;  // the host that hears of its end
    node::ExitHandler on_exit;
    std::unique_ptr<SimulatedProcess> body;  // once it runs
  };
  using Table = std::map<node::ProcessId, Process>;
  // Which ranks an agent has started, for the next one (KR-1).
  class Kept final : public node::KeptRanks {
   public:
    std::vector<node::KeptRank> found() override;
    void add(const node::RankId& id, pid_t pid) override { pids_[id] = pid; }
    void remove(const node::RankId& id) override { pids_.erase(id); }

   private:
    std::map<node::RankId, pid_t> pids_;
  };

  Result<node::SpawnedProcess> start(const node::SpawnSpec& spec, const std::weak_ptr<int>& watcher,
                                     node::ExitHandler on_exit);
  void stop(node::ProcessId process, Duration grace);
  void end_at(Time when, node::ProcessId process, const node::ExitStatus& status);
  Duration draw(Duration max);

  actor::SimulatedExecutor& executor_;
  const ProcessTimes times_;
  const SimulatedProgram program_;
  const Began began_;
  Rng rng_;
  std::uint64_t id_last_ = 0;
  int spawns_to_fail_ = 0;
  Kept kept_;
  std::shared_ptr<Table> table_;  // timers hold it weakly: they outlive the machine
};

// The host of one agent. Its end tells nobody, and ends no process: what the machine has is left
// for the next agent.
class SimulatedProcessHost final : public node::ProcessHost {
 public:
  explicit SimulatedProcessHost(SimulatedMachine& machine) : machine_(machine) {}

  Result<node::SpawnedProcess> spawn(node::SpawnSpec spec, node::ExitHandler on_exit) override;
  Result<node::SpawnedProcess> adopt(pid_t pid, const node::ProcessBirth& born,
                                     node::ExitHandler on_exit) override;
  void signal(node::ProcessId process, int signal_number) override;
  void stop(node::ProcessId process, Duration grace) override;
  void stop_all(Duration grace);  // as an agent ends its ranks

 private:
  SimulatedMachine& machine_;
  const std::shared_ptr<int> self_ = std::make_shared<int>(0);
};

}  // namespace tandem::controller
