#include "actors/forecast/forecast.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "actors/exchange/exchange.h"
#include "actors/forecast/learner_model.h"
#include "actors/forecast/reward_model.h"
#include "actors/messages/group_tokens.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tandem::forecast {
namespace {

using messages::Role;

constexpr const char* kJob = "forecast";
constexpr std::int64_t kNever = std::int64_t{1} << 40;
constexpr std::uint32_t kPrompts = 1000;
constexpr std::uint64_t kLookEvery = 1 << 16;  // events between two looks for a signal

// Passes on the notices of the exchange to the controller.
class Notices final : public actor::Target<messages::ExchangeNotices> {
 public:
  actor::Delivery post(messages::ExchangeNotices notice) override {
    if (const auto* end = std::get_if<messages::JobEnded>(&notice)) ended = *end;
    return actor::Delivery::kAccepted;
  }
  std::optional<messages::JobEnded> ended;
};

// The run's files are kept as figures: of each step, and of the trained completions by staleness.
class CountingRecord final : public exchange::RunRecord {
 public:
  // `work` fills in how long learner and rollouts have been at work.
  CountingRecord(const actor::SimulatedExecutor& executor, std::function<void(ForecastStep&)> work)
      : executor_(executor), work_(std::move(work)) {}

  Result<void> journal(std::span<const exchange::JournalEvent> events,
                       exchange::Durability) override {
    for (const exchange::JournalEvent& event : events)
      std::visit([this](const auto& what) { on(what); }, event);
    return {};
  }
  void keep_image(const exchange::RunImage&) override {}
  Result<bool> metrics(const std::string& line) override {
    const nlohmann::json figures = parse_json(line);
    const double at_s = seconds(executor_.now() - Time{});
    ForecastStep& step = steps.emplace_back(ForecastStep{
        .at_s = at_s,
        .queue_depth = figures.value("tandem/queue_depth", std::int64_t{0}),
        .oldest_age_steps = figures.value("tandem/oldest_sample_age_steps", std::int64_t{0}),
        .tokens_trained = tokens_trained_});
    work_(step);
    step.trainer_idle_fraction = std::clamp(1 - step.training_s / at_s, 0.0, 1.0);
    return false;
  }
  Result<void> take_up(const std::string&) override { return {}; }
  Result<void> rewind_metrics(StepId) override { return {}; }
  Result<bool> sample(const std::string&) override { return false; }
  std::vector<std::string> take_warnings() override { return {}; }
  Result<void> name_best(StepId) override { return {}; }
  Result<void> result(const std::string& json) override {
    result_json = json;
    return {};
  }
  bool has_result() const override { return !result_json.empty(); }
  Result<exchange::GroupHistory> history() override { return exchange::GroupHistory{}; }

  std::vector<ForecastStep> steps;
  std::map<std::int64_t, std::int64_t> staleness;
  std::string result_json;

 private:
  void on(const exchange::GroupGenerated& event) {
    Generated& generated = generated_[event.header.group];
    generated = {};
    for (const messages::TrajectoryHeader& trajectory : event.header.trajectories)
      generated.oldest.push_back(trajectory.oldest);
    generated.tokens = messages::completion_tokens(event.header);
  }
  void on(const exchange::StepTrained& event) {
    for (const GroupId group : event.groups) {
      const auto node = generated_.extract(group);
      if (node.empty()) continue;
      tokens_trained_ += node.mapped().tokens;
      for (const PolicyVersion version : node.mapped().oldest)
        ++staleness[event.step.value - version.value];
    }
    // The step's line of metrics may come before its events are durable.
    if (event.step.value < std::ssize(steps))
      steps[static_cast<std::size_t>(event.step.value)].tokens_trained = tokens_trained_;
  }
  void on(const exchange::GroupDiscarded& event) { generated_.erase(event.group); }
  template <class Other>
  void on(const Other&) {}

  const actor::SimulatedExecutor& executor_;
  const std::function<void(ForecastStep&)> work_;
  struct Generated {
    std::vector<PolicyVersion> oldest;  // by completion
    std::int64_t tokens = 0;
  };
  std::map<GroupId, Generated> generated_;  // groups that are not trained yet
  std::int64_t tokens_trained_ = 0;
};

class Fleet {
 public:
  explicit Fleet(const ForecastConfig& config)
      : config_(config),
        executor_(config.seed),
        record_(executor_, [this](ForecastStep& step) { add_work(step); }),
        host_(executor_, config.host_cores),
        shared_{host_, payloads_, config_.lengths},
        system_(executor_, {}),
        notices_(std::make_shared<Notices>()),
        failures_(derive_seed(config.seed, "failures")) {}

  Result<Forecast> run(const std::function<bool(std::int64_t)>& progress);

 private:
  void begin();
  void start_rollout(std::size_t index);
  void plan_death(std::size_t index);
  void kill(std::size_t index);
  exchange::ExchangeConfig exchange_config() const;
  void add_work(ForecastStep& step) const;
  Forecast figures() const;
  template <class Inbox>
  void tell(const actor::Ref<Inbox>& whom, Inbox message) {
    CHECK(whom.tell(std::move(message)) == actor::Delivery::kAccepted);
  }
  ActorId next(const Role& role, std::size_t index) {
    return {messages::actor_name(kJob, role, static_cast<int>(index)),
            Incarnation{++incarnations_}};
  }

  const ForecastConfig& config_;
  actor::SimulatedExecutor executor_;
  const std::shared_ptr<StateClock> training_ = std::make_shared<StateClock>();
  CountingRecord record_;
  VirtualPayloads payloads_;
  HostLoad host_;
  const SharedFleet shared_;
  actor::System system_;
  const std::shared_ptr<Notices> notices_;
  Rng failures_;
  std::uint64_t incarnations_ = 0;
  actor::Ref<exchange::Exchange::Inbox> exchange_;
  struct Rollout {
    ActorId who;
    actor::Ref<RolloutModel::Inbox> ref;
    std::shared_ptr<RolloutTally> tally = std::make_shared<RolloutTally>();
  };
  std::vector<Rollout> rollouts_;
  std::map<std::string, std::size_t> rollout_index_;  // by name
  actor::Ref<LearnerModel::Inbox> learner_;
  RewardPlace reward_;
  std::string refused_;
};

exchange::ExchangeConfig Fleet::exchange_config() const {
  exchange::ExchangeConfig config = config_.exchange;
  config.job = kJob;
  config.train = {};
  for (std::uint32_t i = 0; i < kPrompts; ++i) config.train.add(std::to_string(i), "{}");
  config.validation = {};
  config.evaluation = {};
  config.prompt_at = [](std::int64_t position) {
    return static_cast<std::uint32_t>(position % kPrompts);
  };
  config.warm_start = false;
  config.test_freq = 0;
  config.val_before_train = false;
  config.best = {};
  config.samples = {.per_step = 0, .evaluation = 0};
  config.events_per_image = kNever;
  config.resume = false;
  config.broadcasts = {};
  return config;
}

void Fleet::begin() {
  const auto dial = [this]<class Peer>(const ActorId& who) -> actor::Ref<typename Peer::Inbox> {
    if constexpr (std::is_same_v<Peer, messages::RolloutPeer>) {
      const Rollout& rollout = rollouts_.at(rollout_index_.at(who.name));
      if (rollout.who.incarnation != who.incarnation) return {};
      return actor::narrow<messages::RolloutInbox>(rollout.ref);
    } else if constexpr (std::is_same_v<Peer, messages::LearnerPeer>) {
      return actor::narrow<messages::LearnerInbox>(learner_);
    } else {
      return {};
    }
  };
  exchange::Dials dials = exchange::dials(dial);
  reward_.join(dials);
  const exchange::ExchangeLinks links{
      .dials = std::move(dials),
      .controller = actor::Ref<messages::ExchangeNotices>({"controller", {}}, notices_),
      .refuse = [this](const ActorId& who, const std::string& why) {
        if (refused_.empty()) refused_ = who.name + ": " + why;
      }};
  exchange_ = system_.spawn<exchange::Exchange>(
      messages::exchange_name(kJob), [this, links, config = exchange_config()] {
        return std::make_unique<exchange::Exchange>(config, links, record_, payloads_);
      });
  tell(exchange_, exchange::Exchange::Inbox(exchange::Begin{}));
  const ActorId learner = next(Role::kLearner, 0);
  learner_ = system_.spawn<LearnerModel>(learner.name, [this, learner] {
    return std::make_unique<LearnerModel>(learner, config_.learner, config_.learner_threads,
                                          shared_, training_,
                                          actor::narrow<messages::LearnerEvents>(exchange_));
  });
  tell(learner_, LearnerModel::Inbox(LearnerModel::Begin{}));
  reward_.start(system_, kJob, Incarnation{++incarnations_}, config_.reward, config_.exchange.n,
                host_, exchange_);
  rollouts_.resize(config_.rollouts.size());
  for (std::size_t i = 0; i < rollouts_.size(); ++i) start_rollout(i);
}

void Fleet::start_rollout(std::size_t index) {
  Rollout& rollout = rollouts_[index];
  rollout.who = next(Role::kRollout, index);
  rollout.tally->up.begin(executor_.now());
  rollout_index_[rollout.who.name] = index;
  RolloutModelConfig config = config_.rollout;
  config.self = rollout.who;
  config.costs = config_.rollouts[index];
  // An incarnation that has ended may still be handling its stop.
  const std::string name = rollout.who.name + "#" + std::to_string(rollout.who.incarnation.value);
  rollout.ref = system_.spawn<RolloutModel>(name, [this, config, tally = rollout.tally] {
    return std::make_unique<RolloutModel>(config, shared_, tally,
                                          actor::narrow<messages::RolloutEvents>(exchange_));
  });
  tell(rollout.ref, RolloutModel::Inbox(RolloutModel::Begin{}));
  plan_death(index);
}

void Fleet::plan_death(std::size_t index) {
  if (config_.failures.rollout_mtbf_s <= 0) return;
  const double in_s = -config_.failures.rollout_mtbf_s * std::log(1 - failures_.unit());
  executor_.at(executor_.now() + Duration(std::llround(std::min(in_s, 1e9) * 1e9)),
               [this, index] { kill(index); });
}

void Fleet::kill(std::size_t index) {
  Rollout& rollout = rollouts_[index];
  ++rollout.tally->deaths;
  for (StateClock* const clock :
       {&rollout.tally->busy, &rollout.tally->installing, &rollout.tally->up})
    clock->end(executor_.now());
  system_.stop(rollout.who.name + "#" + std::to_string(rollout.who.incarnation.value));
  (void)exchange_.tell(
      messages::ActorDown{.who = rollout.who, .reason = "a failure of its device"});
  executor_.at(executor_.now() + Duration(std::llround(config_.failures.restart_s * 1e9)),
               [this, index] { start_rollout(index); });
}

void Fleet::add_work(ForecastStep& step) const {
  const Time now = executor_.now();
  step.training_s = training_->seconds_at(now);
  for (const Rollout& rollout : rollouts_) {
    const RolloutTally& tally = *rollout.tally;
    step.rollouts_busy_s += tally.busy.seconds_at(now) + tally.installing.seconds_at(now);
    step.rollouts_up_s += tally.up.seconds_at(now);
  }
}

Forecast Fleet::figures() const {
  Forecast result{.steps = record_.steps, .steady = steady_part(record_.steps)};
  if (!result.steps.empty()) {
    result.seconds = result.steps.back().at_s;
    result.step_seconds = result.steps.back().training_s / static_cast<double>(result.steps.size());
    result.trainer_idle_fraction = result.steps.back().trainer_idle_fraction;
  }
  double busy = 0, installing = 0, up = 0;
  for (const Rollout& rollout : rollouts_) {
    const RolloutTally& tally = *rollout.tally;
    busy += tally.busy.seconds_at(executor_.now());
    installing += tally.installing.seconds_at(executor_.now());
    up += tally.up.seconds_at(executor_.now());
    result.tokens_generated += tally.tokens;
    result.rollout_deaths += tally.deaths;
  }
  if (up > 0) {
    result.rollout_idle_fraction = std::clamp(1 - (busy + installing) / up, 0.0, 1.0);
    result.install_fraction = installing / up;
  }
  std::int64_t completions = 0;
  for (const auto& [steps, count] : record_.staleness) {
    result.staleness.emplace_back(steps, count);
    result.staleness_mean += static_cast<double>(steps * count);
    completions += count;
  }
  if (completions > 0) result.staleness_mean /= static_cast<double>(completions);
  result.result = parse_json(record_.result_json);
  const nlohmann::json none = nlohmann::json::object();
  const nlohmann::json ledger = result.result.value("ledger", none);
  result.groups_trained = ledger.value("trained", std::int64_t{0});
  const nlohmann::json discarded = ledger.value("discarded", none);
  for (const auto& [reason, count] : discarded.items())
    if (reason != name(scheduler::DiscardReason::kJobFinished) && count.get<std::int64_t>() > 0)
      result.groups_discarded.emplace_back(reason, count.get<std::int64_t>());
  result.tokens_trained = result.result.value("tokens", none).value("trained", std::int64_t{0});
  return result;
}

Result<Forecast> Fleet::run(const std::function<bool(std::int64_t)>& progress) {
  begin();
  std::size_t told = 0;
  bool stopped = false, still = false;
  Time moved;  // when the last step was committed
  std::uint64_t looked = 0;
  const auto done = [&] {
    const bool committed = record_.steps.size() > told;
    if (committed) moved = executor_.now();
    told = record_.steps.size();
    still = executor_.now() - moved > config_.still_most;
    if (progress && (committed || ++looked % kLookEvery == 0))
      stopped = !progress(static_cast<std::int64_t>(told));
    return stopped || still || notices_->ended || !refused_.empty();
  };
  const bool ended = executor_.run_until(done, Duration::max() / 2) && !still;
  if (!refused_.empty())
    return Error{ErrorCode::kFailed, "the exchange refused a message of the simulated fleet",
                 refused_, "this is a fault of this program: please report it"};
  if (stopped) return Error{ErrorCode::kFailed, "the simulation was ended before its last step"};
  if (!ended)
    return Error{ErrorCode::kTimedOut, "the simulated run does not end", "",
                 "after step " + std::to_string(record_.steps.size()) +
                     " none was trained in a week: is there room for a group "
                     "(async.max_concurrent_rollouts), and does a step take less?"};
  if (notices_->ended->outcome != messages::JobOutcome::kSucceeded)
    return Error{ErrorCode::kFailed, "the simulated run fails: " + notices_->ended->reason};
  return figures();
}

}  // namespace

Result<Forecast> forecast(const ForecastConfig& config,
                          const std::function<bool(std::int64_t step)>& progress) {
  CHECK(!config.rollouts.empty());
  return Fleet(config).run(progress);
}

}  // namespace tandem::forecast
