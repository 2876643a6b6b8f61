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
  if (std::exchange(training_.save_due, false)) ask_checkpoint();
  order_broadcasts(now_);
  if (ending_.why && saves_first()) {
    expire_leases();
    form();  // a learner that repeats steps comes back to the last one first
  } else if (ending_.why) {
    end(ending_.why->outcome, ending_.why->reason);
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
    if (stage_ == Stage::kFinishing && !training_.checkpoint_awaited &&
        evaluations_.running.empty())
      end(JobOutcome::kSucceeded, "all steps are trained");
  }
  finish_drains();
  if (events_.empty()) return;
  effects_.push_back(Journal{.events = std::exchange(events_, {}),
                             .durability = std::exchange(durability_, Durability::kKill)});
}

void ExchangeCore::take(JournalFailed failed) {
  if (stage_ == Stage::kEnded) return;
  const bool cancelled = ending_.why && ending_.why->outcome == JobOutcome::kCancelled;
  end(JobOutcome::kFailed, (cancelled ? kWhileCancelled : "") + failed.message);
  events_.clear();
}

// A step whose figures are lost is not saved: a resumed run trains it again, and writes them.
void ExchangeCore::take(RecordFailed failed) {
  training_.save_due = false;
  training_.restoring.reset();
  fail(std::move(failed.message));
}

void ExchangeCore::take(SendFailed failed) { fail(std::move(failed.message)); }

// Asks to be woken at the next deadline of a lease or of a broadcast.
void ExchangeCore::take(MessagesSent) {
  std::optional<Time> deadline = flow_.ledger.next_deadline();
  if (const auto other =
          versions_.broadcasts ? versions_.broadcasts->next_deadline() : std::nullopt)
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
    if (flow_.fixed) {
      slot = flow_.fixed->next(flow_.ledger.budget_state().published);
      if (!slot) return;
    } else if (scheduler::admit_verdict(config_.budget, flow_.ledger.budget_state()) !=
               AdmitVerdict::kAdmit) {
      return;
    }
    const GroupId group = flow_.ledger.admit();
    if (slot) flow_.fixed->issued(*slot, group);
    open_entry(group, {.position = slot ? scheduler::prompt_position(config_.budget, *slot)
                                        : flow_.position_next++,
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
  flow_.entries.emplace(group, std::move(entry));
}

void ExchangeCore::lease_rollouts() {
  std::map<std::string, Assign> assignments;
  while (!flow_.ledger.queue(GroupState::kAdmitted).empty()) {
    const GroupId group = flow_.ledger.queue(GroupState::kAdmitted).begin()->second;
    const Entry& entry = flow_.entries.at(group);
    const auto kept_due = flow_.ledger.find(group)->due;
    Worker* best = nullptr;  // the one with most room
    PolicyVersion version;
    std::int64_t room_best = 0;
    for (auto& [name, worker] : workers_.rollouts) {
      // A rollout that has only the untrained weights, for an evaluation of them, generates nothing
      // to train.
      if (worker.draining || (!flow_.fixed && worker.installed < PolicyVersion{0})) continue;
      const PolicyVersion r = entry.slot ? scheduler::slot_version(config_.budget, entry.slot->step)
                                         : *worker.installed;
      if (scheduler::lease_verdict(config_.budget, flow_.ledger.budget_state(), r, kept_due) !=
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
    const auto lease = flow_.ledger.lease_rollout(group,
                                                  {.holder = best->address.incarnation,
                                                   .epoch = config_.epoch,
                                                   .deadline = now_ + config_.rollout_lease},
                                                  version);
    best->holding.insert(group);
    GroupWork work{.group = group,
                   .attempt = static_cast<std::uint32_t>(lease.id.value),
                   .due = *flow_.ledger.find(group)->due,
                   .seed = entry.seed,
                   .n = config_.n,
                   .prompt = config_.train[config_.prompt_at(entry.position)].prompt};
    if (flow_.fixed) work.version = version;
    note({.kind = "rolling",
          .group = static_cast<std::int64_t>(group.value),
          .lease = static_cast<std::int64_t>(lease.id.value),
          .holder = holder_name(best->address),
          .version = version.value});
    assignments[best->address.name].groups.push_back(std::move(work));
  }
  for (auto& [name, assign] : assignments)
    tell_rollout(workers_.rollouts.at(name).address, std::move(assign));
}

void ExchangeCore::lease_rewards() {
  for (auto& [name, worker] : workers_.rewards) {
    if (worker.draining) continue;
    ScoreGroups batch;
    while (!flow_.ledger.queue(GroupState::kGenerated).empty() &&
           std::ssize(worker.holding) < worker.capacity) {
      const GroupId group = flow_.ledger.queue(GroupState::kGenerated).begin()->second;
      const auto lease =
          flow_.ledger.lease_reward(group, {.holder = worker.address.incarnation,
                                            .epoch = config_.epoch,
                                            .deadline = now_ + config_.reward_lease});
      worker.holding.insert(group);
      const Entry& entry = flow_.entries.at(group);
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
  if (!training_.learner || training_.busy) return;
  if (!training_.replay.empty()) {
    if (evaluation_in_the_way(training_.replay.front().step)) return;
    const scheduler::Ledger::Resend resend = training_.replay.front();
    training_.replay.pop_front();
    send_step(resend.step, resend.groups);
    statistics_.step_sent = now_;
    return;
  }
  if (flow_.ledger.replaying() || stage_ != Stage::kRunning || ending_.why) return;
  const StepId step = flow_.ledger.budget_state().next_step;
  if (evaluation_in_the_way(step)) return;
  std::vector<GroupId> batch;
  if (flow_.fixed) {
    auto slots = flow_.fixed->batch(step);
    if (!slots) return;
    batch = std::move(*slots);
  } else {
    if (scheduler::form_verdict(config_.budget, flow_.ledger.budget_state()) != FormVerdict::kForm)
      return;
    batch = flow_.ledger.earliest_due_batch();
  }
  flow_.ledger.start_training(step, batch);
  statistics_.staleness_of_step = {};
  double reward = 0, tokens = 0, truncated = 0;
  statistics_.completion_tokens_max = 0;
  for (const GroupId group : batch) {
    const Entry& entry = flow_.entries.at(group);
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
  flow_.generated_for_step = 0;
  statistics_.step_sent = now_;
  send_step(step, batch);
}

void ExchangeCore::send_step(StepId step, const std::vector<GroupId>& batch) {
  TrainStep train{.step = step, .publish = publishes(step), .retain = oldest_needed()};
  for (const GroupId group : batch) {
    const Entry& entry = flow_.entries.at(group);
    train.groups.push_back(
        {.group = group, .attempt = 0, .payload = entry.header->payload, .rewards = entry.rewards});
  }
  training_.busy = true;
  training_.step = step;
  training_.batch = batch;
  tell_learner(std::move(train));
}

bool ExchangeCore::publishes(StepId step) const {
  const std::int64_t version = step.value + 1;
  return version > versions_.published.value &&
         (version % config_.budget.sync_steps == 0 || version == config_.budget.steps_total);
}

// The retained versions and the one that comes next fill the publisher's K + 2 places at most.
bool ExchangeCore::evaluation_in_the_way(StepId step) const {
  return publishes(step) &&
         oldest_needed().value < versions_.published.value - config_.budget.max_staleness;
}

// Versions that someone may still have to install.
PolicyVersion ExchangeCore::oldest_needed() const {
  PolicyVersion oldest = versions_.published;
  if (flow_.fixed)
    oldest = std::min(
        oldest, scheduler::slot_version(config_.budget, flow_.ledger.budget_state().next_step));
  for (const Evaluation& evaluation : evaluations_.running)
    if (!evaluation.generated()) oldest = std::min(oldest, evaluation.version());
  return oldest;
}

void ExchangeCore::expire_leases() {
  for (const GroupId group : flow_.ledger.release_expired(now_)) {
    note({.kind = "expired", .group = static_cast<std::int64_t>(group.value)});
    for (auto& [name, worker] : workers_.rollouts)
      if (worker.holding.erase(group) > 0) tell_rollout(worker.address, HandBack{{group}});
    for (auto& [name, worker] : workers_.rewards) worker.holding.erase(group);
  }
}

void ExchangeCore::finish_drains() {
  for (auto* role : {&workers_.rollouts, &workers_.rewards})
    for (auto it = role->begin(); it != role->end();) {
      Worker& worker = it->second;
      const auto deadline = workers_.drain_deadlines.find(worker.address.name);
      const bool busy = !worker.holding.empty() ||
                        std::any_of(evaluations_.running.begin(), evaluations_.running.end(),
                                    [&](const Evaluation& evaluation) {
                                      return evaluation.held_by(worker.address.name);
                                    });
      if (!worker.draining || (busy && now_ < deadline->second)) {
        ++it;
        continue;
      }
      if (busy && role == &workers_.rollouts) tell_rollout(worker.address, HandBack{});
      end_incarnation(worker.address.name, worker.address.incarnation);
      notify(ActorDrained{config_.job, worker.address.name, worker.address.incarnation});
      forget_worker(worker, now_);
      workers_.troubles.forget(worker.address.name);
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
  if (ending_.why->outcome != JobOutcome::kCancelled || config_.save_on_cancel <= Duration{} ||
      !training_.learner || !trains)
    return false;
  if (!ending_.save_deadline) {
    const bool trains_new = training_.step == flow_.ledger.next_commit();
    ending_.last_save = {flow_.ledger.next_commit().value + (trains_new ? 1 : 0)};
    if (ending_.last_save <= training_.durable) return false;
    ending_.save_deadline = now_ + config_.save_on_cancel;
    effects_.push_back(DecideAt{*ending_.save_deadline});
    std::string message =
        "cancelled; saving a checkpoint of step " + std::to_string(ending_.last_save.value);
    note({.kind = "phase", .detail = message});
    notify(JobProgress{config_.job, JobPhase::kStopping, std::move(message)});
    const bool asked = training_.checkpoint_awaited == ending_.last_save.value;
    training_.checkpoint_awaited = ending_.last_save.value;  // EX-C
    if (!asked && !training_.busy && !flow_.ledger.replaying()) ask_checkpoint();
  }
  return training_.durable < ending_.last_save && now_ < *ending_.save_deadline;
}

void ExchangeCore::end(JobOutcome outcome, std::string reason) {
  stage_ = Stage::kEnded;
  training_.learner.reset();  // what it still says must not begin anything
  const auto left = outcome == JobOutcome::kSucceeded ? scheduler::DiscardReason::kJobFinished
                                                      : scheduler::DiscardReason::kCancelled;
  for (const auto& [group, entry] : flow_.entries)
    if (const auto* record = flow_.ledger.find(group); record && scheduler::is_live(record->state))
      note({.kind = "discarded",
            .group = static_cast<std::int64_t>(group.value),
            .detail = scheduler::name(left)});
  flow_.ledger.discard_live(left);
  for (const auto& [name, worker] : workers_.rollouts) tell_rollout(worker.address, HandBack{});
  if (statistics_.running_since) note_totals(now_, std::nullopt);
  note({.kind = "ended", .detail = reason});
  // An incarnation that never took the run up leaves the result that an earlier one wrote.
  const bool knows_its_run = !config_.resume || training_.restored;
  EndRun run{.result = std::nullopt, .ended = {config_.job, outcome, std::move(reason)}};
  if (knows_its_run) run.result = result_json(now_, outcome);
  effects_.push_back(std::move(run));
}

}  // namespace tandem::actors
