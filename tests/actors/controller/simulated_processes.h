// Processes of a simulated node: objects that live between a spawn and an end, in virtual time.
// They keep the promises that the real host keeps with fork, signals and pidfds (PH-1, PH-2).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor/simulated_executor.h"
#include "runtime/base/rng.h"
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
};

// Ends the process that was given it, from within and at any time.
using ExitSelf = std::function<void(int code)>;
using SimulatedProgram = std::function<std::unique_ptr<SimulatedProcess>(
    const std::vector<std::string>& argv, ExitSelf exit)>;

class SimulatedProcessHost final : public node::ProcessHost {
 public:
  SimulatedProcessHost(actor::SimulatedExecutor& executor, const ProcessTimes& times,
                       SimulatedProgram program);
  ~SimulatedProcessHost() override;  // every process ends, and nobody is told

  Result<node::SpawnedProcess> spawn(node::SpawnSpec spec, node::ExitHandler on_exit) override;
  Result<node::SpawnedProcess> adopt(pid_t, const node::ProcessBirth&, node::ExitHandler) override {
    return Error{ErrorCode::kNotFound, "no process outlives its host here"};
  }
  void signal(node::ProcessId process, int signal_number) override;
  void stop(node::ProcessId process, Duration grace) override;

  struct Running {
    node::ProcessId id;
    std::vector<std::string> argv;
  };
  std::vector<Running> running() const;

 private:
  struct Process {
    std::vector<std::string> argv;
    node::ExitHandler on_exit;
    std::unique_ptr<SimulatedProcess> body;  // once it runs
  };
  using Table = std::map<node::ProcessId, Process>;

  void end_at(Time when, node::ProcessId process, const node::ExitStatus& status);
  Duration draw(Duration max);

  actor::SimulatedExecutor& executor_;
  const ProcessTimes times_;
  const SimulatedProgram program_;
  Rng rng_;
  std::uint64_t id_last_ = 0;
  std::shared_ptr<Table> table_;  // timers hold it weakly: they outlive the host
};

}  // namespace tandem::controller
