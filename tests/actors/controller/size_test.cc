// What an event costs the controller on ten nodes and on a thousand, with eight ranks on each: the
// same. Work is counted by what it allocates, since a look at all nodes, actors or jobs that keeps
// what it finds, or copies, does so for each.
//
// Tests actors/controller/controller_core.h, actors/controller/upkeep.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/controller/views.h"
#include "tests/actors/controller/sized_cluster.h"
#include "tests/allocations.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

struct Cost {
  std::size_t times = 0, bytes = 0;
};
constexpr int kTurns = 5;

// The most that an event allocates in some turns of it; what follows is not measured.
class Measured {
 public:
  explicit Measured(std::int64_t nodes) : cluster(nodes) {}
  void measure(const std::string& what, const std::function<void(int)>& event) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::size_t times = test::allocations(), bytes = test::bytes_ever();
      event(turn);
      Cost& cost = costs[what];
      cost.times = std::max(cost.times, test::allocations() - times);
      cost.bytes = std::max(cost.bytes, test::bytes_ever() - bytes);
      cluster.settle();
    }
  }
  SizedCluster cluster;
  std::map<std::string, Cost> costs;
};

std::map<std::string, Cost> costs_on(std::int64_t nodes) {
  Measured on(nodes);
  SizedCluster& cluster = on.cluster;
  // By then nobody waits for the reports of those that have started together.
  cluster.pass(10min);
  cluster.take(Tick{});
  on.measure("nothing is due", [&](int) {
    cluster.pass(1ms);
    cluster.take(Tick{});
  });
  on.measure("a user's program dies", [&](int turn) { cluster.end(cluster.program(1, turn)); });
  on.measure("they start again", [&](int) {
    cluster.pass(10min);
    cluster.take(Tick{});
  });
  on.measure("a rollout dies", [&](int turn) { cluster.end(cluster.rollout(1, turn)); });
  on.measure("rollouts start again", [&](int) {
    cluster.pass(10min);
    cluster.take(Tick{});
  });
  on.measure("a link falls silent and is heard again", [&](int turn) {
    const node::RankId rank = cluster.rollout(2, turn);
    cluster.take(RankSilent{rank, true});
    cluster.take(RankSilent{rank, false});
  });
  on.measure("a job's exchange tells of its progress", [&](int) {
    cluster.take(messages::JobProgress{"job-3", messages::JobPhase::kRunning, "it trains"});
  });
  on.measure("a node is cut off and comes back", [&](int turn) {
    const std::string node = cluster.node_name(turn);
    cluster.take(NodeSilent{node, Incarnation{1}});
    cluster.take(cluster.node_up(node));
  });
  cluster.add_waiting();
  on.measure("an actor ends, and one that waits gets its room",
             [&](int turn) { cluster.end(cluster.program(2, turn), std::nullopt); });
  on.measure("one node more", [&](int) { cluster.add_node(); });
  on.measure("a node is lost with all of its processes",
             [&](int turn) { cluster.lose_node(turn); });
  return on.costs;
}

TEST(ControllerSize, AnEventCostsTheSameOnAThousandNodes) {
  const auto few = costs_on(10), many = costs_on(1000);
  for (const auto& [what, cost] : few) {
    std::printf("%-50s %6zu allocations of %8zu bytes on 10 nodes, %6zu of %8zu on 1000\n",
                what.c_str(), cost.times, cost.bytes, many.at(what).times, many.at(what).bytes);
    EXPECT_LE(many.at(what).times, cost.times * 3 / 2 + 50) << what;
    EXPECT_LE(many.at(what).bytes, cost.bytes * 3 / 2 + 8192) << what;
  }
}

// How many allocations the view takes.
std::size_t cost_of(const SizedCluster& cluster, const ViewPage& page, std::size_t shown) {
  const std::size_t before = test::allocations();
  const ClusterView view = view_of(cluster.core(), {}, page, Time{});
  const std::size_t cost = test::allocations() - before;
  EXPECT_EQ(view.nodes.size() + view.actors.size(), shown);
  return cost;
}

TEST(ControllerSize, APageCostsWhatItShows) {
  const SizedCluster few(10), many(1000);
  const auto page = [](ViewOf of, const std::string& after) {
    return ViewPage{.of = of, .after = after, .limit = 4};
  };
  for (const ViewPage& asked : {page(ViewOf::kNodes, ""), page(ViewOf::kNodes, "node-2"),
                                page(ViewOf::kActors, ""), page(ViewOf::kActors, "job-5/counter/0"),
                                ViewPage{.of = ViewOf::kActors, .job = "job-3", .limit = 4}})
    EXPECT_LE(cost_of(many, asked, 4), cost_of(few, asked, 4) + 8) << asked.after << asked.job;
  const ViewPage one{.of = ViewOf::kNodes, .name = "node-3"};  // with its eight actors
  EXPECT_LE(cost_of(many, one, 9), cost_of(few, one, 9) + 8);
}

}  // namespace
}  // namespace tandem::controller
