#include "tests/actors/controller/simulated_node.h"

#include <utility>

#include "actors/controller/controller_events.h"
#include "actors/messages/roles.h"

namespace tandem::controller {

using actor::Delivery;

namespace {

constexpr std::int64_t kNodeMemoryBytes = std::int64_t{64} << 30;
constexpr Duration kRanksEndWithin = std::chrono::seconds(1);

}  // namespace

// The agent's process.
struct SimulatedNode::Agent {
  Agent(actor::SimulatedExecutor& simulation, SimulatedMachine& machine)
      : executor(simulation), host(machine) {}
  ProcessExecutor executor;
  ActorId peer;
  link::Directory directory;
  SimulatedProcessHost host;
  std::unique_ptr<actor::System> system;
  actor::Ref<node::Agent::Inbox> actor;  // set with the first link
  std::uint64_t losses = 0;              // of its link
  bool up = false;
};

SimulatedNode::SimulatedNode(World world, const std::string& name, double cpus,
                             std::unique_ptr<SimulatedMachine> machine)
    : world_(std::move(world)), name_(name), cpus_(cpus), machine_(std::move(machine)) {
  start_agent();
}

SimulatedNode::~SimulatedNode() { kill_agent(); }

std::optional<Incarnation> SimulatedNode::kill_agent() {
  const auto ended = std::exchange(agent_, nullptr);
  if (!ended) return std::nullopt;
  world_.network.cut(ended->peer);
  ended->system.reset();
  return ended->peer.incarnation;
}

bool SimulatedNode::leave() {
  return agent_->actor && agent_->actor.tell(node::HostEnds{}) == Delivery::kAccepted;
}

std::function<void()> SimulatedNode::stop_agent() {
  agent_->executor.stop();
  world_.network.stop(agent_->peer);
  return [&network = world_.network, weak = std::weak_ptr(agent_)] {
    const auto agent = weak.lock();
    if (!agent) return;
    agent->executor.go_on();
    network.go_on(agent->peer);
  };
}

void SimulatedNode::start_agent() {
  if (agent_) return;
  agent_ = std::make_shared<Agent>(world_.executor, *machine_);
  agent_->peer = {messages::node_peer(name_, 0), world_.next_incarnation()};
  agent_->system = std::make_unique<actor::System>(
      agent_->executor, [](const ActorId&, const Error&) { CHECK(false); });
  const node::NodeUp introduction{.node = name_,
                                  .incarnation = agent_->peer.incarnation,
                                  .cpus = cpus_,
                                  .memory_bytes = kNodeMemoryBytes};
  link::LinkCallbacks callbacks;
  const std::weak_ptr<Agent> weak = agent_;
  callbacks.on_up = [this, introduction, weak](const ActorId&, const link::Hello&) {
    const auto agent = weak.lock();
    if (!agent) return;
    agent->up = true;
    if (!agent->actor) {
      const auto controller = agent->directory.remote<node::AgentEvents>(
          {node::kAgentEventsPort, {}}, [this, peer = agent->peer](std::string frame) {
            return world_.network.to_server(peer, std::move(frame));
          });
      node::AgentConfig config{.node = introduction, .program = "tandem"};
      config.kept = &machine_->kept();
      // The name's former owner is known as lost before it has asked so often.
      config.on_refused = [](const node::NodeRefused&) { CHECK(false); };
      config.on_empty = [this, weak] {
        world_.executor.at(world_.executor.now(), [this, weak] {
          if (agent_ && weak.lock() == agent_) kill_agent();
        });
      };
      agent->actor =
          agent->system->spawn<node::Agent>("agent", [config, host = &agent->host, controller] {
            return std::make_unique<node::Agent>(config, *host, controller);
          });
      agent->directory.expose(node::kAgentPort, actor::narrow<node::AgentInbox>(agent->actor));
    }
    (void)agent->actor.tell(node::LinkCameUp{world_.network.conditions().grace});
  };
  callbacks.on_down = [this, weak](const ActorId&, const link::Down& down) {
    if (const auto agent = weak.lock(); agent && agent == agent_) link_lost(agent, down.reason);
  };
  callbacks.on_parcel = [weak](const ActorId&, std::string& frame) {
    const auto agent = weak.lock();
    return agent ? agent->directory.deliver(frame, nullptr) : link::Offer::kTaken;
  };
  world_.network.dial(
      name_, {.name = agent_->peer.name, .incarnation = agent_->peer.incarnation, .opaque = name_},
      std::move(callbacks));
}

void SimulatedNode::link_lost(const std::shared_ptr<Agent>& agent, link::Down::Reason reason) {
  agent->up = false;
  const std::uint64_t loss = ++agent->losses;
  using Reason = link::Down::Reason;
  const bool keeps = reason == Reason::kDisconnected || reason == Reason::kSuperseded ||
                     (reason == Reason::kSilent && !world_.network.conditions().remote);
  if (!keeps) return end_ranks_and_begin_anew(agent);
  const Duration grace = world_.network.conditions().grace;
  agent->executor.at(agent->executor.now() + grace, [this, loss, weak = std::weak_ptr(agent)] {
    const auto then = weak.lock();
    if (then && then == agent_ && !then->up && then->losses == loss) end_ranks_and_begin_anew(then);
  });
}

// The ranks end first: the next agent must not find them.
void SimulatedNode::end_ranks_and_begin_anew(const std::shared_ptr<Agent>& agent) {
  agent->host.stop_all(Duration{0});
  agent->executor.at(agent->executor.now() + kRanksEndWithin, [this, weak = std::weak_ptr(agent)] {
    const auto then = weak.lock();
    if (!then || then != agent_) return;
    world_.executor.at(world_.executor.now(), [this, weak] {
      if (weak.lock() != agent_ || !agent_) return;
      kill_agent();
      start_agent();
    });
  });
}

}  // namespace tandem::controller
