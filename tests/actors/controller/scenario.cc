#include "tests/actors/controller/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/json.h"

namespace tandem::controller {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr int kKillsOfActorMax = 4;       // the restart budget grants five
constexpr std::size_t kEventsShown = 40;  // shown of a run that does not end

bool one_in(Rng& rng, std::uint64_t n) { return rng.below(n) == 0; }

}  // namespace

SimulatedJob plain_job(std::uint64_t seed) {
  SimulatedJob job;
  job.seed = seed;
  job.exchange.budget = {
      .max_staleness = 2, .lookahead = 2, .sync_steps = 1, .groups_per_step = 4, .steps_total = 20};
  job.exchange.n = 2;
  job.exchange.save.steps = 6;
  job.engine.engine.args.max_num_seqs = 8;
  job.engine.engine.max_response_length = 24;
  job.engine.step_time = 4ms;
  job.engine.sequence_time = 500us;
  job.engine.install_time = 5ms;
  job.engine.tokens_min = 2;
  job.engine.tokens_max = 12;
  job.engine.long_every = 8;
  job.trainer = {.seed = seed, .warm_start_step_time = 30ms, .train_time = 40ms};
  return job;
}

SimulatedJob random_job(std::uint64_t seed) {
  Rng rng(derive_seed(seed, "job"));
  SimulatedJob job = plain_job(seed);
  auto& budget = job.exchange.budget;
  budget.max_staleness = static_cast<std::int64_t>(rng.below(5));
  budget.lookahead =
      static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(budget.max_staleness) + 1));
  if (one_in(rng, 2)) budget.lookahead = scheduler::default_lookahead(budget.max_staleness);
  job.exchange.fixed_lag = one_in(rng, 4);
  budget.sync_steps = 1;
  if (!job.exchange.fixed_lag && one_in(rng, 2))
    budget.sync_steps +=
        static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(budget.lookahead) + 1));
  budget.groups_per_step = 2 + static_cast<std::int64_t>(rng.below(5));
  budget.steps_total = 20 + static_cast<std::int64_t>(rng.below(6));
  job.exchange.n = one_in(rng, 2) ? 4 : 2;
  job.exchange.filter_groups.enable = one_in(rng, 3);
  job.exchange.gen_batches_max = 3;
  job.exchange.warm_start = one_in(rng, 2);
  if (job.exchange.warm_start) job.trainer.warm_start_steps = 6;
  job.exchange.save.steps = static_cast<std::int64_t>(rng.below(3)) * 3;
  job.exchange.test_freq = static_cast<std::int64_t>(rng.below(3)) * 4;
  if (one_in(rng, 2)) job.validation_prompts = 20;
  Rng of_evaluations(derive_seed(seed, "evaluations"));  // the other draws are without its own
  if (one_in(of_evaluations, 2))
    job.exchange.evaluation.sampling = {
        .n = 3, .temperature = 1, .greedy = one_in(of_evaluations, 2)};
  if (one_in(of_evaluations, 2)) job.data_sources = {"math", "code", "math"};
  if (one_in(rng, 3)) job.prompts_unservable = 0.1;
  if (one_in(rng, 3)) job.scorer.fails = 0.05;
  if (one_in(rng, 3)) job.payload_fails = 0.05;
  if (job.exchange.filter_groups.enable) job.scorer.values = 3;
  job.engine.engine.partial_rollout = !job.exchange.fixed_lag && one_in(rng, 2);
  job.learner_ranks = one_in(rng, 3) ? 2 : 1;
  job.trainer.ids_count = !job.exchange.fixed_lag;
  Rng of_broadcasts(
      derive_seed(seed, "broadcasts"));  // the other seeds' runs are without its draws
  if (one_in(of_broadcasts, 4)) {
    add_broadcasts(job);
    job.broadcasts->dies = 0;  // the test decides which rank dies
  }
  return job;
}

void add_broadcasts(SimulatedJob& job) {
  job.exchange.broadcasts = scheduler::BroadcastLimits{
      .forming_max = 2s, .settle = 200ms, .backoff = 50ms, .backoff_max = 1s};
  job.broadcasts = SimulatedBroadcasts{.late = 0.05, .hangs = 0.02, .fails = 0.1, .dies = 0.02};
}

SimulatedJob fixed_lag_job(std::uint64_t seed, std::int64_t max_staleness) {
  SimulatedJob job = plain_job(seed);
  job.exchange.fixed_lag = true;
  job.exchange.budget.max_staleness = max_staleness;
  job.exchange.budget.lookahead = scheduler::default_lookahead(max_staleness);
  job.engine.engine.partial_rollout = false;
  job.trainer.ids_count = false;
  return job;
}

ClusterConditions random_conditions(std::uint64_t seed) {
  Rng rng(derive_seed(seed, "conditions"));
  ClusterConditions conditions;
  if (one_in(rng, 3)) conditions.network.delay_max = 30ms;
  if (one_in(rng, 3)) {
    conditions.network.lost = 0.02;
    conditions.network.repeated = 0.02;
    conditions.network.overtaken = true;
  }
  if (one_in(rng, 4)) conditions.processes.spawns_fail = 0.1;
  return conditions;
}

std::unique_ptr<SimulatedCluster> cluster_of(std::uint64_t seed,
                                             const ClusterConditions& conditions) {
  auto cluster = std::make_unique<SimulatedCluster>(seed, conditions);
  cluster->add_node("a", kNodeCpus);
  cluster->add_node("b", kNodeCpus);
  cluster->run_for(1s);
  const auto both_are_up = [&] {
    return std::ranges::count_if(cluster->trace(), [](const std::string& line) {
             return line.ends_with("node a: up") || line.ends_with("node b: up");
           }) == 2;
  };
  EXPECT_TRUE(cluster->run_until(both_are_up, 1min));
  return cluster;
}

Kills::Kills(SimulatedCluster& cluster, std::uint64_t seed, const Plan& plan)
    : cluster_(cluster), rng_(derive_seed(seed, "kills")) {
  auto& executor = cluster_.executor();
  for (int i = 0; i < plan.early; ++i)
    executor.at(executor.now() + Duration(rng_.below(1'000'000'000)), [this] { kill_one(); });
  for (int i = 0; i < plan.later; ++i) at_events_.insert(rng_.below(plan.events));
  cluster_.on_event = [this](const std::string&, const JournalledRow&) {
    auto& timers = cluster_.executor();
    for (auto due = at_events_.count(events_); due > 0; --due)
      timers.at(timers.now() + Duration(rng_.below(50'000'000)), [this] { kill_one(); });
    ++events_;
  };
}

void Kills::kill_one() {
  std::vector<node::RankId> ranks = cluster_.ranks_running();
  std::erase_if(ranks, [this](const node::RankId& rank) {
    return of_actor_[rank.actor] >= kKillsOfActorMax;
  });
  if (ranks.empty()) return;
  const node::RankId& victim = ranks[rng_.below(ranks.size())];
  ++of_actor_[victim.actor];
  ++done_;
  cluster_.kill(victim);
}

void strike(SimulatedCluster& cluster, Disaster disaster) {
  const auto kill_ranks = [&](const std::set<std::string>& roles) {
    for (const node::RankId& rank : cluster.ranks_running()) {
      const std::size_t last = rank.actor.rfind('/');
      const std::string role = rank.actor.substr(0, last);
      if (roles.contains(role.substr(role.rfind('/') + 1))) cluster.kill(rank);
    }
  };
  const auto restart = [&](const std::set<std::string>& nodes) {
    for (const std::string& node : nodes) cluster.kill_node(node);
    cluster.run_for(Duration{1});
    for (const std::string& node : nodes) cluster.add_node(node, kNodeCpus);
  };
  switch (disaster) {
    case Disaster::kEveryNode:
      return restart({"a", "b"});
    case Disaster::kNodeOfTheLearner: {
      std::set<std::string> nodes;
      const ClusterView view = cluster.view();
      for (const auto& [name, actor] : view.jobs.at(0).actors)
        if (actor.role == messages::Role::kLearner && !actor.ranks.empty())
          nodes.insert(actor.ranks.front().node);
      nodes.erase("");
      return restart(nodes);
    }
    case Disaster::kTrainingPair:
      return kill_ranks({"learner", "rollout"});
    case Disaster::kEveryRank:
      return kill_ranks({"learner", "rollout", "reward"});
  }
}

std::string run_to_end(SimulatedCluster& cluster, const std::string& job) {
  const bool ended = cluster.run_until([&] { return cluster.final(job); }, kVirtualLimit);
  if (ended) return job;
  std::string last;
  const auto& trace = cluster.trace();
  for (std::size_t i = trace.size() - std::min(kEventsShown, trace.size()); i < trace.size(); ++i)
    last += trace[i] + "\n";
  ADD_FAILURE() << job << " does not end; the last events:\n" << last;
  return job;
}

std::string run_job(SimulatedCluster& cluster, const SimulatedJob& job) {
  const auto id = cluster.submit(job);
  EXPECT_TRUE(id.has_value()) << (id ? "" : id.error().message);
  return id ? run_to_end(cluster, *id) : "";
}

namespace {

// Nothing follows the end of a run, but a controller that resumes it, because the one before died
// before it had heard of the end.
void expect_ended_once(const SimulatedRun& run) {
  const auto& events = run.record.events;
  bool ended = false;
  for (const JournalledRow& event : events) {
    if (event.kind == "state_hash") continue;
    EXPECT_TRUE(!ended || event.kind == "began" || event.kind == "resumed")
        << event.kind << " after the end";
    ended = event.kind == "ended";
  }
  EXPECT_TRUE(ended || run.record.disk_full);
}

}  // namespace

void expect_clean_end(SimulatedCluster& cluster, const std::string& job, const std::string& state) {
  EXPECT_EQ(cluster.final_state(job), state);
  for (const node::RankId& rank : cluster.ranks_running())
    EXPECT_FALSE(rank.actor.starts_with(job + "/")) << rank.actor << " is left running";
  const auto run = cluster.run_of(job);
  EXPECT_EQ(run->epochs->wrong, std::vector<std::string>{}) << "BG-3, EX-4";
  ASSERT_TRUE(run->record.result_json.has_value());
  const json result = parse_json(*run->record.result_json);
  EXPECT_EQ(result["state"], state);
  const JournalCount count = count_groups(run->record.events);
  EXPECT_EQ(result["ledger"]["issued"], count.issued) << "LG-1";
  EXPECT_EQ(result["ledger"]["trained"], count.trained) << "LG-1";
  EXPECT_EQ(result["ledger"]["live"], 0) << "LG-6";
  EXPECT_EQ(count.live, 0) << "LG-6";
  EXPECT_EQ(result["ledger"]["discarded"], json(count.discarded)) << "LG-5";
  EXPECT_EQ(count.trained_twice, 0) << "LG-2";
  EXPECT_EQ(result["ledger"]["retrained"],
            count.trainings - count.trained +
                count.steps_repeated * run->job.exchange.budget.groups_per_step);
  EXPECT_LE(count.staleness_max, run->job.exchange.budget.max_staleness) << "LG-4";
  expect_ended_once(*run);
}

namespace {

// The run has a line of metrics for each step, whoever died, and its result adds all of them up.
void expect_figures_of_all_steps(const SimulatedRun& run, const json& result) {
  const exchange::ExchangeConfig& config = run.job.exchange;
  std::int64_t steps = 0, staleness_max = 0;
  double tokens = 0;
  for (const std::string& text : run.record.metrics_lines) {
    const json line = parse_json(text);
    if (line.contains("eval")) continue;  // an evaluation's record
    EXPECT_EQ(line["step"], ++steps);
    staleness_max = std::max<std::int64_t>(staleness_max, line["tandem/staleness/max"]);
    tokens += line["response_length/mean"].get<double>() *
              static_cast<double>(config.budget.groups_per_step * config.n);
  }
  EXPECT_EQ(steps, config.budget.steps_total);
  EXPECT_EQ(result["staleness"]["max"], staleness_max);
  EXPECT_EQ(result["tokens"]["trained"], std::llround(tokens));
  EXPECT_GE(result["tokens"]["generated"], result["tokens"]["trained"]);
  EXPECT_GE(result["weight_publish"]["count"], steps / config.budget.sync_steps);
}

}  // namespace

void expect_trained(SimulatedCluster& cluster, const std::string& job) {
  expect_clean_end(cluster, job, "Succeeded");
  const auto run = cluster.run_of(job);
  if (!run->record.result_json) return;
  const auto& budget = run->job.exchange.budget;
  const json result = parse_json(*run->record.result_json);
  EXPECT_EQ(result["steps"], budget.steps_total);
  EXPECT_EQ(result["policy_version"], budget.steps_total);
  EXPECT_EQ(result["ledger"]["trained"], budget.steps_total * budget.groups_per_step);
  EXPECT_LE(result["staleness"]["max"], budget.max_staleness) << "LG-4";
  expect_figures_of_all_steps(*run, result);
  EXPECT_EQ(result["weights_sha256"].get<std::string>().size(), 64u);
  EXPECT_TRUE(run->checkpoints->checkpoints.contains(StepId{budget.steps_total}));
  std::set<std::string> allowed = {"job_finished"};
  if (run->job.prompts_unservable > 0) allowed.insert("prompt_too_long");
  if (run->job.deadly_position) allowed.insert("poison_prompt");
  if (run->job.scorer.fails > 0) allowed.insert("reward_failed");
  if (run->job.exchange.filter_groups.enable) allowed.insert("zero_variance");
  for (const auto& [reason, groups] : result["ledger"]["discarded"].items())
    EXPECT_TRUE(allowed.contains(reason)) << groups << " groups were discarded for " << reason;
}

void expect_success(SimulatedCluster& cluster, const std::string& job) {
  expect_trained(cluster, job);
  for (const JournalledRow& event : cluster.run_of(job)->record.events)
    EXPECT_NE(event.kind, "expired") << "a lease was forgotten: group " << event.group;
}

void expect_evaluated(SimulatedCluster& cluster, const std::string& job) {
  const auto run = cluster.run_of(job);
  ASSERT_TRUE(run->record.result_json.has_value());
  const json result = parse_json(*run->record.result_json);
  if (run->job.validation_prompts > 0) {
    const bool some_fail = run->job.scorer.fails > 0;
    EXPECT_TRUE(some_fail || result["eval"]["failed"] == 0) << result["eval"]["failed"] << ": EX-3";
    // The simulated engine says the same at every version, so nothing may differ, to the bit.
    const json& figures = result["eval"]["figures"];
    EXPECT_EQ(figures["final"], figures["before"]) << "EX-3, EM-2";
    EXPECT_EQ(figures["final"]["scored"].get<std::int64_t>() +
                  figures["final"]["failed"].get<std::int64_t>(),
              run->job.validation_prompts * completions_of(run->job.exchange.evaluation.sampling));
    EXPECT_EQ(figures["final"].contains("sources"), !run->job.data_sources.empty());
    EXPECT_TRUE(result["eval"]["before"].is_number());
    EXPECT_TRUE(result["eval"]["final"].is_number());
    EXPECT_EQ(result["eval"]["after_warm_start"].is_number(), run->job.exchange.warm_start);
  } else {
    EXPECT_TRUE(result["eval"].is_null());
  }
}

std::string weights_of(SimulatedCluster& cluster, const std::string& job) {
  const auto& result = cluster.run_of(job)->record.result_json;
  return result ? parse_json(*result)["weights_sha256"].get<std::string>() : "";
}

std::string undisturbed_weights(std::uint64_t seed, const SimulatedJob& job) {
  auto cluster = cluster_of(seed);
  return weights_of(*cluster, run_job(*cluster, job));
}

}  // namespace tandem::controller
