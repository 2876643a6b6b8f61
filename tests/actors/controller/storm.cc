#include "tests/actors/controller/storm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/json.h"
#include "tests/actors/controller/fault_kinds.h"
#include "tests/actors/controller/kept_wishes.h"

namespace tandem::controller {

using namespace std::chrono_literals;

namespace {

constexpr std::int32_t kCounters = 2;
constexpr Duration kAskEvery = 150ms;
constexpr Duration kAskTimeout = 2s;
constexpr Duration kScaleEvery = 120ms;
constexpr std::int32_t kRolloutsOfStorm = 3;
// After the job's end: until what the faults left behind has ended too.
constexpr Duration kCleanWithin = 2min;

bool one_in(Rng& rng, std::uint64_t n) { return rng.below(n) == 0; }

// Asks the users' actors without a pause. A question is answered once, by a sum or an error, and
// done at most once: no sum is above the number of questions that were put.
class Questions {
 public:
  Questions(SimulatedCluster& cluster, std::string job, std::uint64_t seed)
      : cluster_(cluster), job_(std::move(job)), rng_(derive_seed(seed, "questions")) {}

  void put_one_and_go_on() {
    if (cluster_.final(job_)) return;
    const std::string actor =
        job_ + "/" + kUsersProgram + "/" + std::to_string(rng_.below(kCounters));
    std::string padding;
    if (one_in(rng_, 20)) padding = std::string(std::size_t{1} << (10 + rng_.below(8)), 'x');
    const std::string body = R"({"add": 1, "for": ")" + padding + "\"}";
    const std::size_t number = answers_.size();
    answers_.push_back(0);
    ++sent_[actor];
    cluster_.ask_program_later(actor, body, kAskTimeout,
                               [this, number, actor](const Result<messages::AskedJson>& answer) {
                                 take(number, actor, answer);
                               });
    auto& executor = cluster_.executor();
    executor.at(executor.now() + kAskEvery, [this] { put_one_and_go_on(); });
  }

  void expect_answered() {
    cluster_.run_until([this] { return !std::ranges::count(answers_, 0); }, kCleanWithin);
    for (std::size_t i = 0; i < answers_.size(); ++i)
      EXPECT_EQ(answers_[i], 1) << "question " << i << " of " << answers_.size();
  }
  std::int64_t asked() const { return std::ssize(answers_); }
  std::int64_t with_sum() const { return with_sum_; }

 private:
  void take(std::size_t number, const std::string& actor,
            const Result<messages::AskedJson>& answer) {
    ++answers_[number];
    if (!answer) return;
    ++with_sum_;
    const std::int64_t sum = std::stoll(answer->body);
    EXPECT_LE(sum, sent_[actor]) << actor << " has added more often than it was asked";
    EXPECT_GE(sum, 1);
  }

  SimulatedCluster& cluster_;
  const std::string job_;
  Rng rng_;
  std::vector<int> answers_;
  std::map<std::string, std::int64_t> sent_;
  std::int64_t with_sum_ = 0;
};

// Changes the number of a job's rollouts over and over: figures of windows by which the job's
// autoscale does, and users, who keep to its limits. The number never leaves them (AS-2), and one
// that a user was promised stays until the next wish, whichever controller lives (CC-5, CC-6).
class Scalings {
 public:
  Scalings(SimulatedCluster& cluster, std::string job, std::uint64_t seed)
      : cluster_(cluster), job_(std::move(job)), rng_(derive_seed(seed, "scalings")) {}

  void make_one_and_go_on() {
    const std::shared_ptr<SimulatedRun> run = cluster_.run_of(job_);
    if (cluster_.final(job_) || !run->job.autoscale) return;
    look(*run->job.autoscale);
    const std::int32_t number = static_cast<std::int32_t>(run->job.autoscale->min) +
                                static_cast<std::int32_t>(rng_.below(kRolloutsOfStorm));
    ScaleRole wish{.job = job_, .role = messages::Role::kRollout, .replicas = number};
    wish.automatic = one_in(rng_, 2);
    if (one_in(rng_, 4))
      ask_for(wish);
    else
      cluster_.measure(figures(*run->job.autoscale));
    auto& executor = cluster_.executor();
    executor.at(executor.now() + kScaleEvery, [this] { make_one_and_go_on(); });
  }
  std::int64_t seen() const { return std::ssize(numbers_); }

 private:
  void ask_for(const ScaleRole& wish) {
    promised_.reset();
    const std::int64_t number = ++wishes_;
    cluster_.scale_later(wish, [this, wish, number](const Result<Nothing>& answer) {
      // The answers to several may wait for one write, and the newest counts.
      if (!answer || number != wishes_) return;
      EXPECT_TRUE(is_kept(cluster_.remembered(), Scale{wish}, *answer)) << "CC-6";
      if (!wish.automatic) promised_ = wish.replicas;
    });
  }
  messages::FleetMeasured figures(const scheduler::AutoscaleConfig& config) {
    messages::FleetMeasured measured{.job = job_};
    measured.rates = {
        .steps = config.window_steps,
        .seconds = 20,
        .rollouts = {{.actor = job_ + "/rollout/0", .tokens_per_s = 1000 * (1 + 9 * rng_.unit())}},
        .step_seconds = 1,
        .step_tokens = 1e4,
        .completions_per_step = 16,
        .trainer_idle_fraction = rng_.unit()};
    if (one_in(rng_, 8)) measured.skipped_in_row = 1;
    return measured;
  }
  // By the controller's journal, which its state equals at each check of the cluster.
  void look(const scheduler::AutoscaleConfig& config) {
    const JobTaken* const known = cluster_.remembered().job(job_);
    if (!known) return;
    const std::int32_t wanted = known->wanted.at(name(messages::Role::kRollout));
    numbers_.insert(wanted);
    EXPECT_GE(wanted, config.min) << "AS-2";
    EXPECT_LE(wanted, config.max) << "AS-2";
    if (promised_) {
      EXPECT_EQ(wanted, *promised_) << "CC-6: a user's number gives way to autoscale";
    }
  }

  SimulatedCluster& cluster_;
  const std::string job_;
  Rng rng_;
  std::int64_t wishes_ = 0;
  std::optional<std::int32_t> promised_;
  std::set<std::int32_t> numbers_;  // of rollouts
};

// Lets the faults of a plan strike in their time.
class Strikes {
 public:
  Strikes(Stricken at, const FaultPlan& plan) : at_(std::move(at)) {
    auto& executor = at_.cluster.executor();
    const std::uint64_t before = at_.cluster.effects();
    for (const Fault& fault : plan) {
      if (fault.at == Fault::At::kTime)
        executor.at(executor.now() + std::chrono::milliseconds(fault.when),
                    [this, fault] { strike(fault); });
      else
        at_effect_.emplace(before + fault.when, fault);
    }
    at_.cluster.on_effect = [this](std::uint64_t effect) {
      for (auto [it, end] = at_effect_.equal_range(effect); it != end; ++it) strike(it->second);
    };
  }
  ~Strikes() { at_.cluster.on_effect = nullptr; }

  const std::array<std::uint64_t, kFaultKinds>& struck() const { return struck_; }
  bool met(FaultKind kind) const { return struck_[static_cast<std::size_t>(kind)] > 0; }

 private:
  void strike(const Fault& fault) {
    if (at_.cluster.final(at_.job)) return;
    if (row_of(fault.kind).strike(at_, fault)) ++struck_[static_cast<std::size_t>(fault.kind)];
  }

  const Stricken at_;
  std::multimap<std::uint64_t, Fault> at_effect_;
  std::array<std::uint64_t, kFaultKinds> struck_ = {};
};

// Whether the job failed for a reason for which one of the faults that struck lets it.
bool may_have_failed(SimulatedCluster& cluster, const std::string& job, const Strikes& strikes) {
  if (cluster.final_state(job) != "Failed") return false;
  const auto outcome = cluster.view().jobs.at(0).outcome;
  const std::string reason = outcome ? outcome->reason : "";
  return std::ranges::any_of(fault_rows(), [&](const FaultRow& row) {
    return row.may_fail && strikes.met(row.kind) && reason.find(row.may_fail) != std::string::npos;
  });
}

// LG-1, LG-2, LG-4 and LG-6 of a job that failed. Its journal may have been cut short by its disk.
void expect_failed_clean(SimulatedCluster& cluster, const std::string& job) {
  const auto run = cluster.run_of(job);
  const JournalCount count = count_groups(run->record.events);
  EXPECT_EQ(count.trained_twice, 0) << "LG-2";
  EXPECT_LE(count.staleness_max, run->job.exchange.budget.max_staleness) << "LG-4";
  if (!run->record.result_json) return;
  const auto result = parse_json(*run->record.result_json);
  EXPECT_EQ(result["ledger"]["live"], 0) << "LG-6";
}

void expect_nothing_left(SimulatedCluster& cluster) {
  const bool ended =
      cluster.run_until([&] { return cluster.ranks_running().empty(); }, kCleanWithin);
  EXPECT_TRUE(ended) << "CC-4";
  for (const node::RankId& rank : cluster.ranks_running())
    ADD_FAILURE() << "CC-4: " << rank.actor << " is left running";
}

// The same training, and nothing else: one actor of each role, no evaluations, no users' actors,
// weights that are copied and are not lost, payloads that arrive.
SimulatedJob training_alone(SimulatedJob job) {
  job.replicas = {{messages::Role::kRollout, 1}, {messages::Role::kReward, 1}};
  job.learner_ranks = 1;
  job.autoscale.reset();
  job.counters = 0;
  job.validation_prompts = 0;
  job.broadcasts.reset();
  job.exchange.broadcasts.reset();
  job.weights_end_with_learner = false;
  job.payload_fails = 0;
  return job;
}

bool is_training(const JournalledRow& row) {
  return row.kind == "committed" || row.kind == "retrained";
}

// FL-2: under a fixed lag a step leaves the weights that it leaves in a run which nothing disturbs,
// each time that it is trained. This holds for a job that failed as well, as far as it came. The
// detail of a training's row is the checksum of the weights, a hash of all batches so far.
// Returns how many trainings were compared.
std::int64_t expect_undisturbed_weights(SimulatedCluster& cluster, const std::string& job,
                                        std::uint64_t seed) {
  const auto run = cluster.run_of(job);
  const auto undisturbed = cluster_of(seed);
  const std::string id = run_job(*undisturbed, training_alone(run->job));
  EXPECT_EQ(undisturbed->final_state(id), "Succeeded") << "nothing disturbs it";
  if (!undisturbed->final(id)) return 0;
  std::map<std::int64_t, std::string> weights;  // their checksums, by step
  for (const JournalledRow& row : undisturbed->run_of(id)->record.events)
    if (is_training(row)) weights[row.step] = row.detail;
  std::int64_t compared = 0;
  for (const JournalledRow& row : run->record.events) {
    if (!is_training(row)) continue;
    ++compared;
    EXPECT_EQ(row.detail, weights[row.step]) << "FL-2: step " << row.step << ", " << row.kind;
  }
  if (cluster.final_state(job) == "Succeeded") {
    EXPECT_EQ(weights_of(cluster, job), weights_of(*undisturbed, id)) << "FL-2";
  }
  return compared;
}

std::uint64_t hash_of(const std::vector<std::string>& trace) {
  std::uint64_t hash = 0;
  for (const std::string& line : trace)
    hash = derive_seed(hash, {checksum64(std::as_bytes(std::span(line)))});
  return hash;
}

}  // namespace

SimulatedJob storm_job(std::uint64_t seed) {
  SimulatedJob job = random_job(seed);
  Rng rng(derive_seed(seed, "storm"));
  job.exchange.budget.steps_total = 5 + static_cast<std::int64_t>(rng.below(6));
  job.replicas = {
      {messages::Role::kRollout, 1 + static_cast<std::int32_t>(rng.below(kRolloutsOfStorm))},
      {messages::Role::kReward, 1 + static_cast<std::int32_t>(rng.below(2))}};
  job.validation_prompts = std::min(job.validation_prompts, 6);
  job.counters = kCounters;
  if (one_in(rng, 4)) job.weights_end_with_learner = true;
  Rng of_autoscale(derive_seed(seed, "fleet"));  // the other seeds' runs are without its draws
  if (one_in(of_autoscale, 4))
    job.autoscale = {.min = 1,
                     .max = kRolloutsOfStorm,
                     .window_steps = 2,
                     .cooldown = std::chrono::milliseconds(of_autoscale.below(1000))};
  return job;
}

ClusterConditions storm_conditions(std::uint64_t seed) {
  ClusterConditions conditions = random_conditions(seed);
  Rng rng(derive_seed(seed, "storm conditions"));
  conditions.network.remote = one_in(rng, 2);
  if (conditions.network.remote) conditions.network.peer_timeout = link::kRemotePeerTimeout;
  if (one_in(rng, 4)) conditions.frame_bytes_max = std::uint64_t{16} << 10;
  if (one_in(rng, 8)) conditions.mailbox_max = 16;
  if (one_in(rng, 2)) conditions.network.grace = 12s;  // shorter than most cuts
  return conditions;
}

StormOutcome run_storm(std::uint64_t seed, const FaultPlan& plan, bool trace) {
  const auto cluster = cluster_of(seed, storm_conditions(seed));
  const auto job = cluster->submit(storm_job(seed));
  EXPECT_TRUE(job.has_value()) << render(job.error());
  if (!job) return {};
  Questions questions(*cluster, *job, seed);
  Strikes strikes({*cluster, *job}, plan);
  Scalings scalings(*cluster, *job, seed);
  questions.put_one_and_go_on();
  scalings.make_one_and_go_on();
  run_to_end(*cluster, *job);
  if (trace)
    for (const std::string& line : cluster->trace()) std::printf("%s\n", line.c_str());
  std::int64_t trainings_compared = 0;
  if (cluster->final(*job)) {
    expect_nothing_left(*cluster);
    if (may_have_failed(*cluster, *job, strikes))
      expect_failed_clean(*cluster, *job);
    else if (strikes.met(FaultKind::kClockJump))
      expect_trained(*cluster, *job);  // leases may have run out
    else
      expect_success(*cluster, *job);
    EXPECT_TRUE(cluster->has_result(*job)) << "a run that has ended has no result";
    questions.expect_answered();
    if (cluster->run_of(*job)->job.exchange.fixed_lag)
      trainings_compared = expect_undisturbed_weights(*cluster, *job, seed);
  }
  for (const std::string& violation : cluster->violations()) ADD_FAILURE() << violation;
  return {.trace_hash = hash_of(cluster->trace()),
          .steps = cluster->executor().steps(),
          .effects = cluster->effects(),
          .struck = strikes.struck(),
          .asked = questions.asked(),
          .answered = questions.with_sum(),
          .trainings_compared = trainings_compared,
          .rollout_numbers = scalings.seen(),
          .state = cluster->final_state(*job)};
}

}  // namespace tandem::controller
