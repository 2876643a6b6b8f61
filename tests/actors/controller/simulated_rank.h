// A rank process of a simulated fleet: dials the controller, builds the role that StartRank names
// (the real RolloutActor, LearnerActor or RewardActor, over an engine, a trainer and a scorer that
// compute nothing), says RankReady and begins. A user's program does the same without a role of
// ours. Other ranks of a learner's gang only exist.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages/peers.h"
#include "actors/messages/rank.h"
#include "actors/rank/rank_session.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/node/agent_messages.h"
#include "tests/actors/controller/simulated_network.h"
#include "tests/actors/controller/simulated_processes.h"
#include "tests/actors/controller/simulated_run.h"

namespace tandem::controller {

struct RankDependencies {
  std::string node;
  actor::SimulatedExecutor& executor;
  SimulatedNetwork& network;
  std::function<std::shared_ptr<SimulatedRun>(const std::string& job)> run_of;
};

std::vector<std::string> rank_arguments(const node::RankId& id);
node::RankId rank_of_arguments(const std::vector<std::string>& argv);  // argv[0]: the program

std::unique_ptr<SimulatedProcess> start_rank(const RankDependencies& dependencies,
                                             const std::vector<std::string>& argv, ExitSelf exit);

}  // namespace tandem::controller
