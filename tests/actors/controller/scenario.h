// Shared by the tests of the simulated control plane: jobs, faults, and checks that must hold in
// the end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/base/rng.h"
#include "tests/actors/controller/simulation.h"

namespace tandem::controller {

inline constexpr Duration kVirtualLimit = std::chrono::minutes(20);  // per run, kills included
inline constexpr double kNodeCpus = 6;                               // of each of two nodes

// 3 rollouts, 2 rewards, a learner; 20 steps of 4 groups of 2 trajectories; K = 2.
SimulatedJob plain_job(std::uint64_t seed);
// A plain_job in which everything is drawn: K, L, m, B, n, filters, warm start, evaluation,
// checkpoints, unservable prompts, scores and payloads that fail.
SimulatedJob random_job(std::uint64_t seed);
SimulatedJob fixed_lag_job(std::uint64_t seed, std::int64_t max_staleness);
// Makes the job broadcast weights as well, by ranks with all kinds of faults.
void add_broadcasts(SimulatedJob& job);
ClusterConditions random_conditions(std::uint64_t seed);

std::unique_ptr<SimulatedCluster> cluster_of(std::uint64_t seed,
                                             const ClusterConditions& conditions = {});

// Kills random ranks: `early` of them in the first second, `later` ones each some milliseconds
// after a journalled event. No actor is killed so often that its restarts are used up.
class Kills {
 public:
  struct Plan {
    int early = 0;
    int later = 0;
    std::uint64_t events = 700;  // the later ones follow random ones of the first so many events
  };
  Kills(SimulatedCluster& cluster, std::uint64_t seed, const Plan& plan);
  int done() const { return done_; }

 private:
  void kill_one();
  SimulatedCluster& cluster_;
  Rng rng_;
  std::multiset<std::uint64_t> at_events_;
  std::uint64_t events_ = 0;
  std::map<std::string, int> of_actor_;
  int done_ = 0;
};

// Faults that take several processes at one moment.
enum class Disaster {
  kEveryNode,         // each node's agent and its ranks
  kNodeOfTheLearner,  // and whatever else is there
  kTrainingPair,      // the learner's gang and all rollouts
  kEveryRank,
};
inline constexpr std::uint64_t kDisasters = 4;
// A disaster is over at once: nodes are up again, with nothing in their memory.
void strike(SimulatedCluster& cluster, Disaster disaster);

// Submits, and runs to the job's end; fails the test where it does not end. Returns the job's id.
std::string run_job(SimulatedCluster& cluster, const SimulatedJob& job);
std::string run_to_end(SimulatedCluster& cluster, const std::string& job);

// LG-1 … LG-5 over the journal's distinct groups and in result.json, JobEnded once, nothing left.
void expect_clean_end(SimulatedCluster& cluster, const std::string& job, const std::string& state);
// Checks that as well, and that every step is trained, the staleness bound holds, and nothing was
// discarded for a death.
void expect_trained(SimulatedCluster& cluster, const std::string& job);
// Checks that as well, and that no lease ran out.
void expect_success(SimulatedCluster& cluster, const std::string& job);

void expect_evaluated(SimulatedCluster& cluster, const std::string& job);  // every prompt, EX-3

std::string weights_of(SimulatedCluster& cluster, const std::string& job);  // weights_sha256
// Those of the job where nothing disturbs it.
std::string undisturbed_weights(std::uint64_t seed, const SimulatedJob& job);

}  // namespace tandem::controller
