#include "runtime/node/agent.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "runtime/base/log.h"

namespace tandem::runtime {

Agent::Agent(AgentConfig config, ProcessHost& host, Ref<AgentEvents> controller)
    : config_(std::move(config)), host_(host), controller_(std::move(controller)) {
  if (controller_.tell(config_.node) != Delivery::kAccepted)
    log::warn("event=node_up_not_sent node={}", config_.node.node);
}

void Agent::handle(Context& cx, SpawnRank spawn) {
  SpawnSpec spec{.name = spawn.id.actor, .log_path = spawn.log_path};
  spec.argv.push_back(config_.program);
  for (std::string& argument : spawn.arguments) spec.argv.push_back(std::move(argument));
  spec.argv.push_back(std::to_string(getpid()));
  std::string visible;
  for (const std::string& uuid : spawn.gpus) visible += (visible.empty() ? "" : ",") + uuid;
  if (!visible.empty()) spec.environment.emplace_back("CUDA_VISIBLE_DEVICES", visible);
  auto started = host_.spawn(std::move(spec), [this, post = cx.turn_poster(), id = spawn.id](
                                                  ProcessId, ExitStatus status) {
    post([this, id, status](Context&) { exited(id, status); });
  });
  AgentEvents event = RankSpawnFailed{spawn.id, started ? "" : started.error().message};
  if (started) {
    processes_[spawn.id] = started->id;
    event = RankSpawned{spawn.id, started->pid};
  }
  if (controller_.tell(std::move(event)) != Delivery::kAccepted)
    log::warn("event=spawn_report_lost actor={}", spawn.id.actor);
}

void Agent::handle(Context&, StopRankProcess stop) {
  const auto it = processes_.find(stop.id);
  if (it != processes_.end()) host_.stop(it->second, std::chrono::milliseconds(stop.grace_ms));
}

void Agent::exited(const RankId& id, const ExitStatus& status) {
  processes_.erase(id);
  RankExited event{.id = id, .description = describe(status)};
  if (status.code) event.code = *status.code;
  if (status.signal) event.signal = *status.signal;
  log::info("event=rank_exited actor={} incarnation={} rank={} how=\"{}\"", id.actor,
            id.incarnation.value, id.rank, event.description);
  if (controller_.tell(std::move(event)) != Delivery::kAccepted)
    log::warn("event=exit_report_lost actor={}", id.actor);
}

}  // namespace tandem::runtime
