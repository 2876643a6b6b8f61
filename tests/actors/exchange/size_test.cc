// What an event costs an exchange among a hundred live groups and among a hundred thousand: the
// same. Work is counted by what it allocates, since a look at all groups that keeps what it finds,
// or copies, does so for each. Images of the run, which have all groups, are none of it: one is
// made after four events for each group.
//
// Tests actors/exchange/exchange_core.h, actors/exchange/generation.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/exchange/begun_core.h"
#include "tests/allocations.h"

namespace tandem::exchange {
namespace {

constexpr std::int64_t kGroupsPerStep = 10;
constexpr int kTurns = 5;
constexpr std::int32_t kCapacity = 100;  // trajectories of a rollout, two for each group

ExchangeConfig config_of(std::int64_t lookahead) {
  controller::SimulatedJob job = controller::plain_job(2);
  job.exchange.budget = {.max_staleness = 20'000,
                         .lookahead = lookahead,
                         .sync_steps = 1,
                         .groups_per_step = kGroupsPerStep,
                         .steps_total = 30'000};
  job.exchange.save = {};
  ExchangeConfig config = controller::exchange_config(job, "job-1", false);
  config.events_per_image = 1 << 30;
  return config;
}

// An exchange with a learner, a rollout and a reward actor, which the test plays: nothing happens
// that it does not ask for. (lookahead + 1) * kGroupsPerStep groups live.
class SizedRun {
 public:
  explicit SizedRun(std::int64_t lookahead) : core_(config_of(lookahead)) {
    hear(core_.begin());
    // The publisher of begin() offers nothing, so that the learner is asked to publish once more.
    take(messages::Published{kFirstLearner, publication_of(version_)});
  }

  void take(ExchangeInput input) { hear(core_.take(std::move(input))); }
  // The oldest groups of those that the rollout, or the reward actor, has.
  void generate(std::size_t groups) {
    messages::Generated generated{rollout_, {}};
    std::set<wire::PayloadRef> payloads;
    for (; groups > 0; --groups) {
      messages::GroupHeader header{
          .group = rolling_.front().first, .attempt = rolling_.front().second, .payload = {}};
      rolling_.erase(rolling_.begin());
      header.payload.offset = ++payloads_;
      header.trajectories.assign(2,
                                 {.oldest = version_, .newest = version_, .completion_tokens = 3});
      payloads.insert(header.payload);
      last_ = header;
      generated.groups.push_back(std::move(header));
    }
    take(GroupsGenerated{std::move(generated), std::move(payloads)});
  }
  void generate_again() {  // under a lease that is over
    last_.payload.offset = ++payloads_;
    take(GroupsGenerated{{rollout_, {last_}}, {last_.payload}});
  }
  void score(std::size_t groups, bool fails = false) {
    messages::GroupsScored scored{reward_, {}};
    for (; groups > 0; --groups) {
      messages::GroupScore one{scoring_.front().first, scoring_.front().second, {}};
      scoring_.erase(scoring_.begin());
      one.scores = {messages::Scored{.value = 1}, messages::Scored{.value = 0}};
      if (fails) one.scores[1] = messages::ScoreFailed{"it cannot judge it"};
      scored.groups.push_back(std::move(one));
    }
    take(std::move(scored));
  }
  void make_step() {  // until the learner has one
    while (!step_) {
      generate(1);
      score(1);
    }
  }
  void train() {
    const StepId step = *std::exchange(step_, std::nullopt);
    const PolicyVersion version{step.value + 1};
    take(messages::StepCommitted{.from = kFirstLearner,
                                 .step = step,
                                 .checksum = checksum_of(version),
                                 .publication = publication_of(version),
                                 .report = {}});
    version_ = version;
  }
  void install() {
    take(messages::Installed{
        .from = rollout_, .version = version_, .checksum = checksum_of(version_)});
  }
  void tell_of_work() {
    take(messages::RolloutStats{.from = rollout_, .generation_tokens = ++tokens_});
  }
  void end_rollout() {
    rolling_.clear();
    take(messages::ActorDown{rollout_, "it has ended"});
  }
  void start_rollout() {
    rollout_.incarnation = next_incarnation();
    take(messages::RolloutUp{rollout_, kCapacity});
    install();
  }
  void end_reward() {
    scoring_.clear();
    take(messages::ActorDown{reward_, "it has ended"});
  }
  void start_reward() {
    reward_.incarnation = next_incarnation();
    take(messages::RewardUp{reward_, kCapacity});
  }
  void add_rollout(std::uint64_t i) {
    const ActorId who{"job-1/rollout/" + std::to_string(i), next_incarnation()};
    core_.take(messages::RolloutUp{who, 2});
    core_.take(
        messages::Installed{.from = who, .version = version_, .checksum = checksum_of(version_)});
  }
  std::int64_t live() const { return core_.core_.ledger().counters().live; }
  std::size_t rolling() const { return rolling_.size(); }
  bool ended() const { return core_.core_.ended(); }
  messages::ExchangeReport report() const { return core_.core_.report(core_.now_); }

 private:
  using Leased = std::pair<GroupId, std::uint32_t>;

  static std::uint64_t checksum_of(PolicyVersion version) {
    return 100 + static_cast<std::uint64_t>(version.value);
  }
  static messages::Publication publication_of(PolicyVersion version) {
    return {.version = version,
            .oldest_retained = version,
            .checksum = checksum_of(version),
            .broadcast = {},
            .offered = {version}};
  }
  Incarnation next_incarnation() { return {++incarnations_}; }
  void hear(const std::vector<ExchangeEffect>& effects) {
    for (const ExchangeEffect& effect : effects) {
      if (const auto* to = std::get_if<To<messages::RolloutPeer>>(&effect))
        if (const auto* assign = std::get_if<messages::Assign>(&to->message))
          for (const messages::GroupWork& work : assign->groups)
            if (to->to == rollout_) rolling_.emplace_back(work.group, work.attempt);
      if (const auto* to = std::get_if<To<messages::RewardPeer>>(&effect))
        if (const auto* work = std::get_if<messages::ScoreGroups>(&to->message))
          for (const auto& group : work->groups) scoring_.emplace_back(group.group, group.attempt);
      if (const auto* to = std::get_if<To<messages::LearnerPeer>>(&effect))
        if (const auto* train = std::get_if<messages::TrainStep>(&to->message)) step_ = train->step;
    }
  }

  BegunCore core_;
  ActorId rollout_ = kFirstRollout, reward_ = kFirstReward;
  std::uint64_t incarnations_ = kFirstReward.incarnation.value;
  std::vector<Leased> rolling_, scoring_;
  std::optional<StepId> step_;  // that the learner has to train
  PolicyVersion version_{0};
  messages::GroupHeader last_;
  std::uint64_t payloads_ = 0, tokens_ = 0;
};

struct Cost {
  std::size_t times = 0, bytes = 0;
};

// The most that an event takes in some turns of it; what prepares it is not measured.
class Measured {
 public:
  explicit Measured(std::int64_t lookahead) : run(lookahead) {}
  void measure(const std::string& what, const std::function<void()>& prepare,
               const std::function<void()>& event) {
    for (int turn = 0; turn < kTurns; ++turn) {
      prepare();
      const std::size_t times = test::allocations(), bytes = test::bytes_ever();
      event();
      Cost& cost = costs[what];
      cost.times = std::max(cost.times, test::allocations() - times);
      cost.bytes = std::max(cost.bytes, test::bytes_ever() - bytes);
    }
    EXPECT_FALSE(run.ended()) << what;
  }
  SizedRun run;
  std::map<std::string, Cost> costs;
};

std::map<std::string, Cost> costs_among(std::int64_t live) {
  Measured of(live / kGroupsPerStep - 1);
  SizedRun& run = of.run;
  EXPECT_EQ(run.live(), live);
  EXPECT_EQ(run.rolling(), static_cast<std::size_t>(kCapacity / 2));
  const auto nothing = [] {};
  of.measure("nothing is due", nothing, [&] { run.take(DeadlineCame{}); });
  of.measure("a group is generated, and another one leased", nothing, [&] { run.generate(1); });
  of.measure("a group is scored", nothing, [&] { run.score(1); });
  of.measure("an answer comes too late", nothing, [&] { run.generate_again(); });
  of.measure(
      "a step is trained", [&] { run.make_step(); }, [&] { run.train(); });
  of.measure("a rollout installs a version", nothing, [&] { run.install(); });
  of.measure("a rollout tells of its work", nothing, [&] { run.tell_of_work(); });
  of.measure(
      "a reward fails, and its group is discarded", [&] { run.generate(1); },
      [&] { run.score(1, true); });
  of.measure("somebody looks", nothing, [&] { (void)run.report(); });
  of.measure(
      "a reward actor dies with its groups", [&] { run.generate(3); }, [&] { run.end_reward(); });
  return of.costs;
}

std::map<std::string, Cost> costs_of_deaths_among(std::int64_t live) {
  Measured of(live / kGroupsPerStep - 1);
  SizedRun& run = of.run;
  run.generate(1);
  of.measure(
      "a reward actor starts", [&] { run.end_reward(); }, [&] { run.start_reward(); });
  of.measure(
      "a rollout starts and gets groups", [&] { run.end_rollout(); }, [&] { run.start_rollout(); });
  EXPECT_EQ(run.rolling(), static_cast<std::size_t>(kCapacity / 2));
  bool first = true;
  of.measure(
      "a rollout dies with its groups",
      [&] {
        if (!std::exchange(first, false)) run.start_rollout();
      },
      [&] { run.end_rollout(); });
  return of.costs;
}

TEST(ExchangeSize, AnEventCostsTheSameAmongAHundredThousandGroups) {
  for (const auto& costs : {costs_among, costs_of_deaths_among}) {
    const auto few = costs(100), many = costs(100'000);
    for (const auto& [what, cost] : few) {
      std::printf(
          "%-50s %5zu allocations of %7zu bytes among 100 groups, %5zu of %7zu among "
          "100,000\n",
          what.c_str(), cost.times, cost.bytes, many.at(what).times, many.at(what).bytes);
      EXPECT_LE(many.at(what).times, cost.times * 3 / 2 + 50) << what;
      EXPECT_LE(many.at(what).bytes, cost.bytes * 3 / 2 + 8192) << what;
    }
  }
}

// The others are full, as nearly all of a busy run are. An exchange looks at each, and no look
// weighs the staleness budget.
TEST(ExchangeSize, ALeaseCostsTheSameAmongAThousandRollouts) {
  const auto cost_among = [](std::uint64_t rollouts) {
    Measured of(999);
    for (std::uint64_t i = 1; i <= rollouts; ++i) of.run.add_rollout(i);
    of.measure(
        "a group is generated, and another one leased", [] {}, [&] { of.run.generate(1); });
    EXPECT_EQ(of.run.rolling(), static_cast<std::size_t>(kCapacity / 2));
    return of.costs.begin()->second;
  };
  const Cost few = cost_among(4), many = cost_among(1000);
  std::printf("%zu allocations with 4 rollouts beside, %zu with 1,000\n", few.times, many.times);
  EXPECT_LE(many.times, few.times * 3 / 2 + 50);
}

}  // namespace
}  // namespace tandem::exchange
