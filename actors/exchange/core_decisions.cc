// The decisions of an exchange: one pass over "admit, lease, score, evaluate, form" after any
// number of messages. Each step asks scheduler/ and applies the answer until it is no; so the order
// of the messages that led here does not matter, and nothing is remembered that could go stale.
#include <algorithm>
#include <utility>

#include "actors/exchange/exchange_core.h"
#include "runtime/base/rng.h"

namespace tandem::actors {

using scheduler::AdmitVerdict;
using scheduler::FormVerdict;
using scheduler::GroupState;
using scheduler::LeaseVerdict;

namespace {

std::string holder_name(const runtime::Address& address) {
  return address.name + "#" + std::to_string(address.incarnation.value);
}

}  // namespace

void ExchangeCore::wake() { effects_.push_back(DecideSoon{}); }

void ExchangeCore::notify(ExchangeNotices notice) { effects_.push_back(Notify{std::move(notice)}); }

void ExchangeCore::take(Decide) {
  if (stage_ == Stage::kEnded) return;
  if (!statistics_.started) statistics_.started = now_;
  if (std::exchange(save_due_, false)) ask_checkpoint();
  order_broadcasts(now_);
  if (ending_ && saves_first()) {
    expire_leases();
    form();  // a learner that repeats steps comes back to the last one first
  } else if (ending_) {
    end(ending_->outcome, ending_->reason);
  } else {
    expire_leases();
    run_evaluations();
    form();
    if (stage_ == Stage::kRunning) {
      admit();
      lease_rollouts();
      lease_rewards();
      form();
    }
    if (stage_ == Stage::kFinishing && !checkpoint_awaited_ && evaluations_.empty())
      end(JobOutcome::kSucceeded, "all steps are trained");
  }
  finish_drains();
  if (events_.empty()) return;
  effects_.push_back(Journal{.events = std::exchange(events_, {}),
                             .durability = std::exchange(durability_, Durability::kKill)});
}

void ExchangeCore::take(JournalFailed failed) {
  if (stage_ == Stage::kEnded) return;
  const bool cancelled = ending_ && ending_->outcome == JobOutcome::kCancelled;
  end(JobOutcome::kFailed, (cancelled ? kWhileCancelled : "") + failed.message);
  events_.clear();
}

// A step whose figures are lost is not saved: a resumed run trains it again, and writes them.
void ExchangeCore::take(RecordFailed failed) {
  save_due_ = false;
  restoring_.reset();
  fail(std::move(failed.message));
}

void ExchangeCore::take(SendFailed failed) { fail(std::move(failed.message)); }

// Asks to be woken at the next deadline of a lease or of a broadcast.
void ExchangeCore::take(MessagesSent) {
  std::optional<Time> deadline = ledger_.next_deadline();
  if (const auto other = broadcasts_ ? broadcasts_->next_deadline() : std::nullopt)
    deadline = std::min(*other, deadline.value_or(*other));
  if (!deadline || stage_ == Stage::kEnded || (deadline_wake_ && *deadline_wake_ <= *deadline))
    return;
  deadline_wake_ = deadline;
  effects_.push_back(WakeAtDeadline{*deadline});
}

void ExchangeCore::take(DeadlineCame) {
  deadline_wake_.reset();
  wake();
}

void ExchangeCore::admit() {
  for (;;) {
    std::optional<scheduler::Slot> slot;
    if (fixed_) {
      slot = fixed_->next(ledger_.budget_state().published);
      if (!slot) return;
    } else if (scheduler::admit_verdict(config_.budget, ledger_.budget_state()) !=
               AdmitVerdict::kAdmit) {
      return;
    }
    const GroupId group = ledger_.admit();
    if (slot) fixed_->issued(*slot, group);
    open_entry(group, {.position = slot ? scheduler::prompt_position(config_.budget, *slot)
                                        : position_next_++,
                       .slot = slot,
                       .admitted = now_});
  }
}

void ExchangeCore::open_entry(GroupId group, Entry entry) {
  const auto& slot = entry.slot;
  entry.seed = slot ? derive_seed(config_.seed, {static_cast<std::uint64_t>(slot->step.value),
                                                 static_cast<std::uint64_t>(slot->index),
                                                 static_cast<std::uint64_t>(slot->attempt)})
                    : derive_seed(config_.seed, {group.value});
  note({.kind = "admitted",
        .group = static_cast<std::int64_t>(group.value),
        .step = slot ? slot->step.value : -1,
        .position = entry.position,
        .detail = slot ? std::to_string(slot->index) + "/" + std::to_string(slot->attempt) : ""});
  entries_.emplace(group, std::move(entry));
}

void ExchangeCore::lease_rollouts() {
  std::map<std::string, Assign> assignments;
  while (!ledger_.queue(GroupState::kAdmitted).empty()) {
    const GroupId group = ledger_.queue(GroupState::kAdmitted).begin()->second;
    const Entry& entry = entries_.at(group);
    const auto kept_due = ledger_.find(group)->due;
    Worker* best = nullptr;  // the one with most room
    PolicyVersion version;
    std::int64_t room_best = 0;
    for (auto& [name, worker] : rollouts_) {
      // A rollout that has only the untrained weights, for an evaluation of them, generates nothing
      // to train.
      if (worker.draining || (!fixed_ && worker.installed < PolicyVersion{0})) continue;
      const PolicyVersion r = entry.slot ? scheduler::slot_version(config_.budget, entry.slot->step)
                                         : *worker.installed;
      if (scheduler::lease_verdict(config_.budget, ledger_.budget_state(), r, kept_due) !=
          LeaseVerdict::kLease)
        continue;
      const std::int64_t room =
          worker.capacity - static_cast<std::int64_t>(worker.holding.size()) * config_.n;
      if (room < config_.n || room <= room_best) continue;
      best = &worker;
      version = r;
      room_best = room;
    }
    if (!best) break;
    const auto lease = ledger_.lease_rollout(group,
                                             {.holder = best->address.incarnation,
                                              .epoch = config_.epoch,
                                              .deadline = now_ + config_.rollout_lease},
                                             version);
    best->holding.insert(group);
    GroupWork work{.group = group,
                   .attempt = static_cast<std::uint32_t>(lease.id.value),
                   .due = *ledger_.find(group)->due,
                   .seed = entry.seed,
                   .n = config_.n,
                   .prompt = config_.train[config_.prompt_at(entry.position)].prompt};
    if (fixed_) work.version = version;
    note({.kind = "rolling",
          .group = static_cast<std::int64_t>(group.value),
          .lease = static_cast<std::int64_t>(lease.id.value),
          .holder = holder_name(best->address),
          .version = version.value});
    assignments[best->address.name].groups.push_back(std::move(work));
  }
  for (auto& [name, assign] : assignments)
    tell_rollout(rollouts_.at(name).address, std::move(assign));
}

void ExchangeCore::lease_rewards() {
  for (auto& [name, worker] : rewards_) {
    if (worker.draining) continue;
    ScoreGroups batch;
    while (!ledger_.queue(GroupState::kGenerated).empty() &&
           std::ssize(worker.holding) < worker.capacity) {
      const GroupId group = ledger_.queue(GroupState::kGenerated).begin()->second;
      const auto lease = ledger_.lease_reward(group, {.holder = worker.address.incarnation,
                                                      .epoch = config_.epoch,
                                                      .deadline = now_ + config_.reward_lease});
      worker.holding.insert(group);
      const Entry& entry = entries_.at(group);
      note({.kind = "scoring",
            .group = static_cast<std::int64_t>(group.value),
            .lease = static_cast<std::int64_t>(lease.id.value),
            .holder = holder_name(worker.address)});
      batch.groups.push_back({.group = group,
                              .attempt = static_cast<std::uint32_t>(lease.id.value),
                              .data = config_.train[config_.prompt_at(entry.position)].data,
                              .payload = entry.header->payload});
    }
    if (!batch.groups.empty()) tell_reward(worker.address, std::move(batch));
  }
}

void ExchangeCore::form() {
  if (!learner_ || learner_busy_) return;
  if (!replay_.empty()) {
    if (evaluation_in_the_way(replay_.front().step)) return;
    const scheduler::Ledger::Resend resend = replay_.front();
    replay_.pop_front();
    send_step(resend.step, resend.groups);
    statistics_.step_sent = now_;
    return;
  }
  if (ledger_.replaying() || stage_ != Stage::kRunning || ending_) return;
  const StepId step = ledger_.budget_state().next_step;
  if (evaluation_in_the_way(step)) return;
  std::vector<GroupId> batch;
  if (fixed_) {
    auto slots = fixed_->batch(step);
    if (!slots) return;
    batch = std::move(*slots);
  } else {
    if (scheduler::form_verdict(config_.budget, ledger_.budget_state()) != FormVerdict::kForm)
      return;
    batch = ledger_.earliest_due_batch();
  }
  ledger_.start_training(step, batch);
  statistics_.staleness_of_step = {};
  double reward = 0, tokens = 0, truncated = 0;
  statistics_.completion_tokens_max = 0;
  for (const GroupId group : batch) {
    const Entry& entry = entries_.at(group);
    note({.kind = "training", .group = static_cast<std::int64_t>(group.value), .step = step.value});
    for (const float r : entry.rewards) reward += r;
    for (const TrajectoryHeader& trajectory : entry.header->trajectories) {
      statistics_.staleness_of_step.add(step.value - trajectory.oldest.value);
      const double length = trajectory.completion_tokens;
      tokens += length;
      statistics_.completion_tokens_max = std::max(statistics_.completion_tokens_max, length);
      truncated += trajectory.finish == FinishReason::kLength ? 1 : 0;
    }
  }
  const double trajectories = static_cast<double>(std::ssize(batch) * config_.n);
  statistics_.reward_mean_of_step = reward / trajectories;
  statistics_.completion_tokens_mean = tokens / trajectories;
  statistics_.truncated_fraction = truncated / trajectories;
  generated_for_step_ = 0;
  statistics_.step_sent = now_;
  send_step(step, batch);
}

void ExchangeCore::send_step(StepId step, const std::vector<GroupId>& batch) {
  TrainStep train{.step = step, .publish = publishes(step), .retain = oldest_needed()};
  for (const GroupId group : batch) {
    const Entry& entry = entries_.at(group);
    train.groups.push_back(
        {.group = group, .attempt = 0, .payload = entry.header->payload, .rewards = entry.rewards});
  }
  learner_busy_ = true;
  step_in_flight_ = step;
  batch_in_flight_ = batch;
  tell_learner(std::move(train));
}

bool ExchangeCore::publishes(StepId step) const {
  const std::int64_t version = step.value + 1;
  return version > published_.value &&
         (version % config_.budget.sync_steps == 0 || version == config_.budget.steps_total);
}

// The retained versions and the one that comes next fill the publisher's K + 2 places at most.
bool ExchangeCore::evaluation_in_the_way(StepId step) const {
  return publishes(step) && oldest_needed().value < published_.value - config_.budget.max_staleness;
}

// Versions that someone may still have to install.
PolicyVersion ExchangeCore::oldest_needed() const {
  PolicyVersion oldest = published_;
  if (fixed_)
    oldest =
        std::min(oldest, scheduler::slot_version(config_.budget, ledger_.budget_state().next_step));
  for (const Evaluation& evaluation : evaluations_)
    if (!evaluation.generated()) oldest = std::min(oldest, evaluation.version());
  return oldest;
}

void ExchangeCore::expire_leases() {
  for (const GroupId group : ledger_.release_expired(now_)) {
    note({.kind = "expired", .group = static_cast<std::int64_t>(group.value)});
    for (auto& [name, worker] : rollouts_)
      if (worker.holding.erase(group) > 0) tell_rollout(worker.address, HandBack{{group}});
    for (auto& [name, worker] : rewards_) worker.holding.erase(group);
  }
}

void ExchangeCore::finish_drains() {
  for (auto* role : {&rollouts_, &rewards_})
    for (auto it = role->begin(); it != role->end();) {
      Worker& worker = it->second;
      const auto deadline = drain_deadlines_.find(worker.address.name);
      const bool busy =
          !worker.holding.empty() ||
          std::any_of(evaluations_.begin(), evaluations_.end(), [&](const Evaluation& evaluation) {
            return evaluation.held_by(worker.address.name);
          });
      if (!worker.draining || (busy && now_ < deadline->second)) {
        ++it;
        continue;
      }
      if (busy && role == &rollouts_) tell_rollout(worker.address, HandBack{});
      bury(worker.address.name, worker.address.incarnation);
      notify(ActorDrained{config_.job, worker.address.name, worker.address.incarnation});
      forget_worker(worker, now_);
      troubles_.forget(worker.address.name);
      it = role->erase(it);
    }
}

void ExchangeCore::enter(Stage stage, std::string message) {
  stage_ = stage;
  JobPhase phase = JobPhase::kStarting;
  if (stage == Stage::kWarmStart) phase = JobPhase::kWarmStart;
  if (stage == Stage::kRunning || stage == Stage::kFinishing) phase = JobPhase::kRunning;
  note({.kind = "phase", .detail = message});
  notify(JobProgress{config_.job, phase, std::move(message)});
}

// A cancelled job loses no step: the one under way is finished and saved (EX-S). A learner that is
// down, or dies meanwhile, is not waited for.
bool ExchangeCore::saves_first() {
  const bool trains = stage_ == Stage::kRunning || stage_ == Stage::kFinishing;
  if (ending_->outcome != JobOutcome::kCancelled || config_.save_on_cancel <= Duration{} ||
      !learner_ || !trains)
    return false;
  if (!save_deadline_) {
    const bool trains_new = step_in_flight_ == ledger_.next_commit();
    last_save_ = {ledger_.next_commit().value + (trains_new ? 1 : 0)};
    if (last_save_ <= durable_) return false;
    save_deadline_ = now_ + config_.save_on_cancel;
    effects_.push_back(DecideAt{*save_deadline_});
    std::string message =
        "cancelled; saving a checkpoint of step " + std::to_string(last_save_.value);
    note({.kind = "phase", .detail = message});
    notify(JobProgress{config_.job, JobPhase::kStopping, std::move(message)});
    const bool asked = checkpoint_awaited_ == last_save_.value;
    checkpoint_awaited_ = last_save_.value;  // EX-C
    if (!asked && !learner_busy_ && !ledger_.replaying()) ask_checkpoint();
  }
  return durable_ < last_save_ && now_ < *save_deadline_;
}

void ExchangeCore::end(JobOutcome outcome, std::string reason) {
  stage_ = Stage::kEnded;
  learner_.reset();  // what it still says must not begin anything
  const auto left = outcome == JobOutcome::kSucceeded ? scheduler::DiscardReason::kJobFinished
                                                      : scheduler::DiscardReason::kCancelled;
  for (const auto& [group, entry] : entries_)
    if (const auto* record = ledger_.find(group); record && scheduler::is_live(record->state))
      note({.kind = "discarded",
            .group = static_cast<std::int64_t>(group.value),
            .detail = scheduler::name(left)});
  ledger_.discard_live(left);
  for (const auto& [name, worker] : rollouts_) tell_rollout(worker.address, HandBack{});
  if (statistics_.running_since) note_totals(now_, std::nullopt);
  note({.kind = "ended", .detail = reason});
  // An incarnation that never took the run up leaves the result that an earlier one wrote.
  const bool knows_its_run = !config_.resume || restored_;
  EndRun run{.result = std::nullopt, .ended = {config_.job, outcome, std::move(reason)}};
  if (knows_its_run) run.result = result_json(now_, outcome);
  effects_.push_back(std::move(run));
}

}  // namespace tandem::actors
