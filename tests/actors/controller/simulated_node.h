// A host of a simulated cluster: its machine with the processes of ranks, and its agent, which may
// die alone and be followed by another one that adopts the ranks (AG-3). The agent's end of its
// link follows node_command.cc: what a lost link means for the ranks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/actor/system.h"
#include "runtime/link/remote.h"
#include "runtime/node/agent.h"
#include "tests/actors/controller/process_executor.h"
#include "tests/actors/controller/simulated_network.h"
#include "tests/actors/controller/simulated_processes.h"

namespace tandem::controller {

class SimulatedNode {
 public:
  struct World {
    actor::SimulatedExecutor& executor;
    SimulatedNetwork& network;
    // Another agent's incarnation, of all nodes.
    std::function<Incarnation()> next_incarnation;
  };
  SimulatedNode(World world, const std::string& name, double cpus,
                std::unique_ptr<SimulatedMachine> machine);
  ~SimulatedNode();  // the agent and all ranks end at once
  SimulatedNode(const SimulatedNode&) = delete;
  SimulatedNode& operator=(const SimulatedNode&) = delete;

  SimulatedMachine& machine() { return *machine_; }
  const SimulatedMachine& machine() const { return *machine_; }
  bool has_agent() const { return agent_ != nullptr; }
  void start_agent();  // nothing where there is one
  // Its host is to end: it ends once it has no rank. False: it has had no link yet.
  bool leave();
  // Returns the agent's incarnation; nothing where there was none.
  std::optional<Incarnation> kill_agent();
  // SIGSTOP; the call of the result is SIGCONT, and does nothing where that agent has ended.
  std::function<void()> stop_agent();

 private:
  struct Agent;
  void link_lost(const std::shared_ptr<Agent>& agent, link::Down::Reason reason);
  void end_ranks_and_begin_anew(const std::shared_ptr<Agent>& agent);

  const World world_;
  const std::string name_;
  const double cpus_;
  const std::unique_ptr<SimulatedMachine> machine_;
  std::shared_ptr<Agent> agent_;
};

}  // namespace tandem::controller
