// The controller's decisions without the world around them; the cost of an event should not depend
// on how many actors and groups there are.
//
//   controller/ledger/N   N live groups held by 10,000 actors: each group's way from admission to a
//                         durable step; an event is one call that changes the ledger
//   controller/core/A     one job with A rollout actors: placed, then each spawned, connected and
//                         ready
//   controller/scale/N    a job on N nodes is scaled to kReplicasMax actors, back to one before
//   they
//                         start, and refused as many where a tenth would fit; an event is one of
//                         these
//   controller/restart/N  N nodes with eight ranks each, all busy, and two jobs that are queued: an
//                         actor dies, starts again and is ready (five events)
//   controller/room/N     likewise: an actor ends for good, and one that waits gets its room
//   controller/node/N     likewise: a node is cut off and comes back with its ranks
//
// event_seconds is the mean cost of an event, bytes_per_group (bytes_per_actor) what one occupies.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <vector>

#include "actors/controller/controller_core.h"
#include "runtime/base/check.h"
#include "scheduler/fleet/ledger.h"
#include "tests/actors/controller/sized_cluster.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

constexpr std::uint64_t kActors = 10'000;
constexpr std::int64_t kStaleness = 2;

std::size_t heap_bytes() { return mallinfo2().uordblks; }

// Rates are of processor time: one thread does all the work.
void count_events(benchmark::State& state, std::int64_t events) {
  state.SetItemsProcessed(events);
  state.counters["event_seconds"] = benchmark::Counter(
      static_cast<double>(events), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// A job in its steady state: as many groups live as its budget admits.
class Job {
 public:
  explicit Job(std::int64_t live)
      : budget_{.max_staleness = kStaleness,
                .lookahead = kStaleness,
                .groups_per_step = live / (kStaleness + 1),
                .steps_total = 1'000'000'000},
        ledger_(budget_) {
    ledger_.learner_started(StepId{0}, Incarnation{1});
    ledger_.published(PolicyVersion{0});
    admit();
  }

  // One training step, from leasing a batch to its checkpoint; how many events that was.
  std::int64_t step() {
    events_ = 0;
    for (std::int64_t i = 0; i < budget_.groups_per_step; ++i) generate_and_score();
    const StepId step = ledger_.next_commit();
    ledger_.start_training(step, ledger_.earliest_due_batch());
    CHECK(!ledger_.commit(step, Incarnation{1}));
    ledger_.published(PolicyVersion{step.value + 1});
    ledger_.durable(StepId{step.value + 1});
    events_ += 4;
    admit();
    return events_;
  }
  std::int64_t live() const { return ledger_.counters().live; }

 private:
  void admit() {
    while (admit_verdict(budget_, ledger_.budget_state()) == scheduler::AdmitVerdict::kAdmit) {
      ledger_.admit();
      ++events_;
    }
  }
  scheduler::LeaseTerms terms() {
    holder_ = holder_ % kActors + 1;
    return {Incarnation{holder_}, Epoch{1}, Time{1'000'000'000}};
  }
  void generate_and_score() {
    const GroupId group = ledger_.queue(scheduler::GroupState::kAdmitted).begin()->second;
    const PolicyVersion installed = ledger_.budget_state().published;
    const auto rollout = ledger_.lease_rollout(group, terms(), installed);
    CHECK(!ledger_.generated({group, rollout.id, rollout.epoch}, installed));
    const auto reward = ledger_.lease_reward(group, terms());
    CHECK(!ledger_.scored({group, reward.id, reward.epoch}));
    events_ += 4;
  }

  const scheduler::Budget budget_;
  scheduler::Ledger ledger_;
  std::uint64_t holder_ = 0;
  std::int64_t events_ = 0;
};

void ledger(benchmark::State& state) {
  const std::size_t before = heap_bytes();
  Job job(state.range(0));
  const auto bytes = static_cast<double>(heap_bytes() - before);
  std::int64_t events = 0;
  for (auto _ : state) events += job.step();
  count_events(state, events);
  state.counters["bytes_per_group"] = bytes / static_cast<double>(job.live());
}
BENCHMARK(ledger)
    ->Name("controller/ledger")
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

// Submits a job with so many rollout actors and brings all of its actors up.
std::int64_t start_fleet(controller::ControllerCore& core, std::int64_t actors) {
  using messages::Role;
  constexpr double kCpusOfNode = 100;
  const auto nodes = static_cast<std::int64_t>(static_cast<double>(actors + 2) / kCpusOfNode) + 1;
  std::int64_t events = 0;
  std::vector<node::RankId> spawned;
  const auto take = [&](const controller::ControllerEvent& event) {
    ++events;
    for (const auto& effect : must(core.step(event, Time{events})))
      if (const auto* spawn = std::get_if<controller::SpawnRankOn>(&effect))
        spawned.push_back(spawn->id);
  };
  for (std::int64_t i = 0; i < nodes; ++i)
    take(node::NodeUp{.node = "n" + std::to_string(i),
                      .incarnation = {1},
                      .cpus = kCpusOfNode,
                      .memory_bytes = 1LL << 40});
  controller::JobShape shape{.name = "big", .total_steps = 1};
  shape.replicas = {
      {Role::kRollout, static_cast<std::int32_t>(actors)}, {Role::kLearner, 1}, {Role::kReward, 1}};
  for (const Role& role : messages::kTrainingRoles)
    shape.per_rank[role] = scheduler::resources({.cpus = 1});
  take(controller::SubmitJob{.shape = shape, .id = "big-1", .run_dir = "."});
  for (std::size_t i = 0; i < spawned.size(); ++i) {  // all at once; more may be spawned meanwhile
    const node::RankId id = spawned[i];
    take(node::RankSpawned{id, 1});
    take(controller::RankConnected{id});
    take(messages::RankReady{id.actor, id.incarnation, id.rank});
  }
  CHECK(spawned.size() == static_cast<std::size_t>(actors) + 2);
  return events;
}

void core(benchmark::State& state) {
  std::int64_t events = 0;
  double bytes = 0;
  for (auto _ : state) {
    const std::size_t before = heap_bytes();
    controller::ControllerCore core(1);
    events += start_fleet(core, state.range(0));
    bytes = static_cast<double>(heap_bytes() - before);
  }
  count_events(state, events);
  state.counters["bytes_per_actor"] = bytes / static_cast<double>(state.range(0));
}
BENCHMARK(core)
    ->Name("controller/core")
    ->Arg(100)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Unit(benchmark::kMillisecond);

// A core with one job that needs a CPU for each of its actors, on so many nodes.
controller::ControllerCore fleet(std::int64_t nodes, double cpus_of_node) {
  controller::ControllerCore core(1);
  for (std::int64_t i = 0; i < nodes; ++i)
    must(core.step(node::NodeUp{.node = "n" + std::to_string(i),
                                .incarnation = {1},
                                .cpus = cpus_of_node,
                                .memory_bytes = 1LL << 40},
                   Time{}));
  controller::JobShape shape{.name = "big", .total_steps = 1};
  shape.replicas = {{messages::Role::kRollout, 1}, {messages::Role::kReward, 1}};
  for (const messages::Role& role : messages::kTrainingRoles)
    shape.per_rank[role] = scheduler::resources({.cpus = 1});
  must(core.step(controller::SubmitJob{.shape = shape, .id = "big-1", .run_dir = "."}, Time{}));
  return core;
}

void scale(benchmark::State& state) {
  const std::int64_t nodes = state.range(0);
  const double cpus_of_node = (scheduler::kReplicasMax + 2) / static_cast<double>(nodes) + 1;
  const controller::ScaleRole all{"big-1", messages::Role::kRollout, scheduler::kReplicasMax};
  std::int64_t events = 0;
  for (auto _ : state) {
    controller::ControllerCore roomy = fleet(nodes, cpus_of_node);
    must(roomy.step(all, Time{1}));
    must(roomy.step(controller::ScaleRole{"big-1", messages::Role::kRollout, 1}, Time{2}));
    controller::ControllerCore full = fleet(nodes, cpus_of_node / 10 + 2);
    CHECK(!full.step(all, Time{1}));
    events += 3;
  }
  count_events(state, events);
}
BENCHMARK(scale)->Name("controller/scale")->Arg(1)->Arg(40)->Unit(benchmark::kMillisecond);

// Times `turn` alone, and lets what it began settle between two.
template <class Turn>
void sized(benchmark::State& state, Turn turn) {
  controller::SizedCluster cluster(state.range(0));
  int turns = 0;
  for (auto _ : state) {
    turn(cluster, turns++);
    state.PauseTiming();
    cluster.settle();
    state.ResumeTiming();
  }
  count_events(state, turns);
}

// The pauses of actors that die again and again grow: the clock goes on.
void restart(benchmark::State& state) {
  sized(state, [](controller::SizedCluster& cluster, int turn) {
    cluster.end(cluster.rollout(1 + turn % 4, turn / 4 % 3));
    cluster.pass(std::chrono::minutes(10));
    cluster.take(controller::Tick{});
    cluster.settle();
  });
}
BENCHMARK(restart)->Name("controller/restart")->Arg(10)->Arg(100)->Arg(1'000)->Iterations(400);

void room(benchmark::State& state) {
  controller::SizedCluster cluster(state.range(0));
  cluster.add_waiting();
  int turn = 0;
  for (auto _ : state) cluster.end(cluster.program(1 + turn % 3, turn / 3), std::nullopt), ++turn;
  count_events(state, turn);
}
// As many as end on ten nodes before their job is over.
BENCHMARK(room)->Name("controller/room")->Arg(10)->Arg(100)->Arg(1'000)->Iterations(12);

void node(benchmark::State& state) {
  sized(state, [](controller::SizedCluster& cluster, int turn) {
    const std::string name = cluster.node_name(turn % 10);
    cluster.take(controller::NodeSilent{name, Incarnation{1}});
    cluster.take(cluster.node_up(name));
  });
}
BENCHMARK(node)->Name("controller/node")->Arg(10)->Arg(100)->Arg(1'000)->Iterations(400);

}  // namespace
}  // namespace tandem::bench

BENCHMARK_MAIN();
