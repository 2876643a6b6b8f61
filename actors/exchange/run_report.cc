// A wait is dated from the end of what it waits for, or from the run's start. Rates are over the
// last seconds, fractions over the whole run.
#include "actors/exchange/run_report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "actors/exchange/awaited_group.h"
#include "actors/exchange/evaluation_parts.h"
#include "actors/exchange/fleet_view.h"
#include "actors/exchange/publications.h"
#include "actors/exchange/quarantine.h"
#include "actors/exchange/run_cost.h"
#include "actors/exchange/work_totals.h"
#include "runtime/base/file.h"
#include "scheduler/fleet/wait_end.h"

namespace tandem::exchange {

using scheduler::EndedBy;
using scheduler::GroupState;

namespace {

// "evaluation final (312 of 1000 completions)"
std::string evaluation_text(const Evaluation& evaluation) {
  return std::string("evaluation ") + name(evaluation.kind()) + " (" +
         std::to_string(evaluation.completions_done()) + " of " +
         std::to_string(evaluation.completions_in_all()) + " completions)";
}

std::string admission_text(scheduler::AdmitVerdict verdict) {
  using enum scheduler::AdmitVerdict;
  std::string text = std::string("admission: ") + scheduler::name(verdict);
  if (verdict == kAhead) text += ": the next groups come with the next version of the weights";
  if (verdict == kAllAdmitted) text += ": every group of the run is given out";
  if (verdict == kReplacementWaits) text += ": discards are replaced with the next version";
  return text;
}

class WaitList {
 public:
  WaitList(const RunView& view, const std::optional<scheduler::FleetGap>& gap)
      : view_(view), gap_(gap) {}
  std::vector<messages::Wait> all();

 private:
  void add(std::string who, std::string what, double since_s, std::string detail, EndedBy ended_by,
           std::optional<double> deadline_s = {}) {
    waits_.push_back({.who = std::move(who),
                      .waits_for = std::move(what),
                      .since_s = since_s,
                      .deadline_s = deadline_s,
                      .detail = std::move(detail),
                      .ended_by = words(ended_by)});
  }
  double since(const std::optional<Time>& time) const {
    return time ? seconds(view_.now - *time) : 0;
  }
  void add_actors();
  void add_room();
  void add_disk(const std::string& actor, Time since, const std::string& why);
  void add_stages();
  void add_publication();
  void add_checkpoint();
  void add_evaluation(const Evaluation& evaluation);
  std::string form_text() const;
  void add_learner();
  void add_version(const std::string& who, PolicyVersion version, double since_s);
  void add_rollouts();

  const RunView& view_;
  const std::optional<scheduler::FleetGap>& gap_;
  std::vector<messages::Wait> waits_;
};

void WaitList::add_actors() {
  const WorkersSeen& workers = view_.seen.workers;
  const double start = since(view_.seen.statistics.started);
  const auto since_end = [&](const std::optional<Time>& end) { return end ? since(end) : start; };
  const std::string& job = view_.config.job;
  if (!view_.facts.learner.who)
    add(job, "the learner to start", since_end(view_.seen.learner.none_since),
        "the controller starts it", EndedBy::kBehind);
  for (const WorkerRole& role : view_.roles) {
    if (!view_.facts.workers.of(role.role).empty()) continue;
    const auto none = workers.none_since.find(role.role);
    add(job, role.one, none == workers.none_since.end() ? start : since(none->second), "none is up",
        EndedBy::kBehind);
  }
  for (const messages::TroubleView& shown : workers.troubles.shown(view_.now))
    add(shown.trouble.from.name, "a reward program that works", shown.since_s, text(shown.trouble),
        EndedBy::kMended);
}

// Adds the actors that wait for room on their disks; the exchange tells of the run's own disk
// (exchange.cc).
void WaitList::add_room() {
  if (const auto& no_room = view_.seen.learner.no_room; no_room && view_.facts.learner.who)
    add_disk(view_.facts.learner.who->name, no_room->second, no_room->first);
  for (const auto& [actor, worker] : view_.seen.workers.by_actor)
    if (worker.no_room_since) add_disk(actor, *worker.no_room_since, worker.stats.no_room);
}

// A time since the exchange has heard of it: the actor gives up then, or a little sooner.
void WaitList::add_disk(const std::string& actor, Time since, const std::string& why) {
  const Duration waited = view_.now - since;
  add(actor, "room on the disk", seconds(waited), why, EndedBy::kDisk,
      seconds(kRoomWaitMax - waited));
}

void WaitList::add_stages() {
  const std::string& job = view_.config.job;
  const messages::WarmStartProgress& warm_start = view_.seen.learner.warm_start;
  const auto& learner = view_.facts.learner.who;
  if (view_.facts.stage == RunStage::kWarmStart)
    add(job, learner ? learner->name + " to end the warm start" : "the warm start",
        since(view_.seen.statistics.started),
        "step " + std::to_string(warm_start.step) + " of at most " +
            std::to_string(warm_start.steps_max),
        EndedBy::kBehind);
  add_publication();
  add_checkpoint();
  for (const Evaluation& evaluation : view_.seen.evaluations) add_evaluation(evaluation);
  if (const auto& groups = view_.seen.broadcasts.groups)
    std::ranges::move(groups->waits(view_.now), std::back_inserter(waits_));
}

void WaitList::add_publication() {
  const LearnerFacts& learner = view_.facts.learner;
  if (!learner.who || learner.owed != LearnerTask::kPublish) return;
  add(view_.config.job, learner.who->name + " to publish the weights that it holds",
      since(view_.seen.learner.publish_asked),
      view_.facts.stage == RunStage::kStarting ? "rollouts can begin with these"
                                               : "the publisher has lost some of them",
      EndedBy::kBehind);
}

// The learner saves before it trains the next step. A checkpoint that the end of the run waits for
// may have a deadline (EX-5).
void WaitList::add_checkpoint() {
  const LearnerFacts& learner = view_.facts.learner;
  const auto& awaited = learner.checkpoint_awaited;
  const bool trains = view_.facts.stage == RunStage::kRunning;
  if (!awaited || (!trains && view_.facts.stage != RunStage::kFinishing)) return;
  const double asked = since(view_.seen.learner.save_asked);
  const std::string checkpoint = "checkpoint " + std::to_string(awaited->value);
  std::optional<double> deadline_s;
  if (const auto& until = view_.seen.save_deadline; until && view_.facts.end.last_save == awaited)
    deadline_s = seconds(*until - view_.now);
  if (!learner.who)
    return add(view_.config.job, checkpoint, asked, "the learner, which is not up, writes it",
               EndedBy::kBehind, deadline_s);
  const bool repeats = view_.facts.flow.ledger.replay_next() < *awaited;
  add(view_.config.job, learner.who->name + " to save " + checkpoint, asked,
      repeats  ? "it repeats the steps before it first"
      : trains ? "the next step waits for it"
               : "",
      EndedBy::kBehind, deadline_s);
}

// The evaluation, and the actor that it waits for: the rollout whose deadline comes first, else the
// first other actor that has some of it.
void WaitList::add_evaluation(const Evaluation& evaluation) {
  std::optional<std::pair<Time, std::string>> first;
  for (const auto& [name, rollout] : view_.facts.workers.rollouts())
    if (evaluation.held_by(name)) {
      const Time deadline = *part_deadline(view_, name);
      if (!first || deadline < first->first) first.emplace(deadline, name);
    }
  const std::string* holder = nullptr;  // the first actor that has some of it
  for (const auto& [role, workers] : view_.facts.workers.by_role)
    for (const auto& [name, worker] : workers)
      if (!holder && evaluation.held_by(name)) holder = &name;
  std::optional<double> deadline_s;
  if (first) deadline_s = seconds(first->first - view_.now);
  add(view_.config.job, evaluation_text(evaluation), since(evaluation.began()),
      "version " + std::to_string(evaluation.version().value),
      holder ? EndedBy::kBehind : EndedBy::kFree, deadline_s);
  const std::string who = std::string("evaluation ") + name(evaluation.kind());
  if (first)
    return add(who,
               first->second + " to generate " +
                   std::to_string(evaluation.prompts_of(first->second).size()) + " prompts",
               since(view_.seen.workers.by_actor.at(first->second).part_since),
               "without a token or an answer until then it is ended, and another one asked",
               EndedBy::kBehind, deadline_s);
  if (holder)
    add(who, *holder + " to score its completions",
        since(view_.seen.workers.by_actor.at(*holder).worked), "", EndedBy::kBehind);
}

// Why no batch is formed. An evaluation takes its share of the rollouts, or all of them once groups
// must not go on by its version (work_queue.h, WQ-5): then more rollouts would not help.
std::string WaitList::form_text() const {
  const auto verdict =
      scheduler::form_verdict(view_.config.budget, view_.facts.flow.ledger.budget_state());
  std::string text = scheduler::name(verdict);
  const auto evaluation = std::ranges::find_if(
      view_.seen.evaluations, [](const Evaluation& one) { return !one.generated(); });
  if (verdict == scheduler::FormVerdict::kTooFewScored &&
      evaluation != view_.seen.evaluations.end())
    text += ": the rollouts also generate " + evaluation_text(*evaluation);
  return text;
}

void WaitList::add_learner() {
  const LearnerFacts& learner = view_.facts.learner;
  const scheduler::Ledger& ledger = view_.facts.flow.ledger;
  const RunStatistics& statistics = view_.seen.statistics;
  if (!learner.who) return;
  const Time running = statistics.running_since.value_or(view_.now);
  const double idle = seconds(view_.now - std::max(statistics.step_sent, running));
  if (!learner.owed) {
    const scheduler::Budget& budget = view_.config.budget;
    add(learner.who->name,
        std::to_string(ledger.count(GroupState::kScored)) + " of " +
            std::to_string(budget.groups_per_step) + " scored groups for step " +
            std::to_string(ledger.budget_state().next_step.value),
        idle, form_text(), EndedBy::kBehind);
    if (const auto group = awaited_group(view_)) waits_.push_back(wait_of_group(view_, *group));
  } else if (learner.training) {
    // The batch in training is a repeated one too, and is not among those that follow.
    const std::int64_t follow =
        std::max<std::int64_t>(ledger.next_commit().value - ledger.replay_next().value - 1, 0);
    add(view_.config.job,
        learner.who->name + " to train step " + std::to_string(learner.training->value), idle,
        follow == 0 ? "" : std::to_string(follow) + " repeated batches follow", EndedBy::kBehind);
  }
}

// Where a version that is not offered comes from.
void WaitList::add_version(const std::string& who, PolicyVersion version, double since_s) {
  const LearnerFacts& learner = view_.facts.learner;
  const scheduler::Ledger& ledger = view_.facts.flow.ledger;
  const std::string number = std::to_string(version.value);
  if (!learner.who)
    return add(who, "the learner to publish version " + number, since_s, "it is not up",
               EndedBy::kBehind);
  std::string detail;
  switch (supply_of(version, view_.facts.supply())) {
    case scheduler::VersionSupply::kOffered:
      detail = "it offers the version, and the rollout does not find it";
      break;
    case scheduler::VersionSupply::kHeld:
      detail = "the publisher has lost it, and the learner holds it";
      break;
    case scheduler::VersionSupply::kRepeated:
      detail = "the publisher has lost it; the learner repeats step " +
               std::to_string(ledger.replay_next().value) + ", and the version comes after step " +
               std::to_string(version.value - 1);
      break;
    case scheduler::VersionSupply::kLost:
      detail = "it can be had no more";
      break;
  }
  add(who, learner.who->name + " to publish version " + number, since_s, std::move(detail),
      EndedBy::kBehind);
}

void WaitList::add_rollouts() {
  const scheduler::Ledger& ledger = view_.facts.flow.ledger;
  const VersionFacts& versions = view_.facts.versions;
  std::optional<PolicyVersion> lost;
  for (PolicyVersion v = oldest_needed(view_); v <= versions.published && !lost; ++v.value)
    if (needs(view_, v) && !versions.offered.contains(v)) lost = v;
  for (const auto& [actor, worker] : view_.facts.workers.rollouts()) {
    const messages::RolloutStats& stats = view_.seen.workers.by_actor.at(actor).stats;
    if (stats.missing) {
      add_version(actor, *stats.missing, stats.missing_seconds);
      continue;
    }
    if (ledger.held_by(worker.who.incarnation) > 0) continue;
    if (lost) {
      add_version(actor, *lost, since(view_.seen.learner.none_since));
      continue;
    }
    const auto verdict = scheduler::admit_verdict(view_.config.budget, ledger.budget_state());
    const PolicyVersion announced = view_.seen.workers.by_actor.at(actor).announced;
    add(actor, "groups to generate", since(view_.seen.workers.by_actor.at(actor).worked),
        worker.installed ? admission_text(verdict)
                         : "it installs version " + std::to_string(announced.value),
        EndedBy::kBehind);
  }
}

std::vector<messages::Wait> WaitList::all() {
  if (view_.facts.stage == RunStage::kEnded) return {};
  add_actors();
  add_room();
  add_stages();
  if (view_.facts.stage != RunStage::kRunning) return std::move(waits_);
  if (const auto& last = view_.seen.statistics.last_step; last && last->skipped_in_row > 0)
    add(view_.config.job, "a finite gradient", 0,
        "steps skipped in a row: " + std::to_string(last->skipped_in_row) +
            " (learner.max_nonfinite_steps)",
        EndedBy::kSteps);
  if (view_.seen.filter_keeps)
    add(view_.config.job, "groups that algorithm.filter_groups is not for", 0, kept_text(view_),
        EndedBy::kNotHeld);
  if (!view_.seen.statistics.lineages.empty())
    add(view_.config.job, "nothing, but its weights were not reproduced", 0, lineage_text(view_),
        EndedBy::kNotHeld);
  if (const std::string suspects = suspects_text(view_); !suspects.empty())
    add(view_.config.job, suspects + " to be generated, alone", 0,
        "engines that generated them have crashed or hung; one by which that happens again is "
        "quarantined as poison_prompt",
        EndedBy::kBehind);
  if (!view_.seen.quarantined.empty())
    add(view_.config.job, "prompts that end no engine", 0,
        "the newest one is " + view_.seen.quarantined, EndedBy::kNotHeld);
  add_learner();
  add_rollouts();
  if (const auto said = gap_ ? text(*gap_, view_.config.job) : std::nullopt)
    add(view_.config.job, "nothing, but its trainer is idle", 0, *said, EndedBy::kNotHeld);
  return std::move(waits_);
}

// Adds the rates over the window of points.
void add_rates(messages::JobStatus& status, const std::deque<RunStatistics::RatePoint>& points) {
  if (points.size() < 2) return;
  const double span = seconds(points.back().time - points.front().time);
  if (span <= 0) return;
  status.tokens_generated_per_s =
      static_cast<double>(points.back().generated - points.front().generated) / span;
  status.tokens_trained_per_s =
      static_cast<double>(points.back().trained - points.front().trained) / span;
}

messages::WarmStartStatus warm_start_of(const LearnerSeen& seen) {
  const messages::WarmStartProgress& newest = seen.warm_start;
  messages::WarmStartStatus status{
      .step = newest.step, .steps_max = newest.steps_max, .metric = newest.metric};
  if (!seen.warm_start_first) return status;
  const WarmStartPoint& first = *seen.warm_start_first;
  const double span = seconds(seen.warm_start_reported - first.at);
  if (newest.step <= first.step || span <= 0) return status;
  status.steps_per_s = (newest.step - first.step) / span;
  status.eta_s = (newest.steps_max - newest.step) / *status.steps_per_s;
  return status;
}

// An actor that waits for room on its disk holds the run up sooner or later.
std::optional<std::string> full_disk_of(const RunView& view) {
  std::optional<std::string> text;
  if (view.facts.stage == RunStage::kEnded) return text;
  if (view.seen.learner.no_room && view.facts.learner.who)
    text = view.facts.learner.who->name + ": " + view.seen.learner.no_room->first;
  for (const auto& [actor, worker] : view.seen.workers.by_actor)
    if (!text && worker.no_room_since) text = actor + ": " + worker.stats.no_room;
  if (text) *text += std::string("; ") + kNothingIsLost;
  return text;
}

// "step 41", "warm start 120/500" or "idle".
std::string work_of_learner(const RunView& view) {
  const messages::WarmStartProgress& warm_start = view.seen.learner.warm_start;
  if (const auto& step = view.facts.learner.training) return "step " + std::to_string(step->value);
  if (view.facts.stage != RunStage::kWarmStart) return "idle";
  return "warm start " + std::to_string(warm_start.step) + "/" +
         std::to_string(warm_start.steps_max);
}

}  // namespace

std::string lineage_text(const RunView& view) {
  const auto& lineages = view.seen.statistics.lineages;
  return "training step " + std::to_string(lineages.back().value) +
         " again gave other weights than before (was the binary or the machine changed?): the run "
         "goes on with these, new lineage " +
         std::to_string(lineages.size()) +
         (view.config.fixed_lag ? "; IT CAN NO LONGER BE REPEATED, although async.schedule is "
                                  "fixed_lag: its weights depend on this death"
                                : "");
}

std::string kept_text(const RunView& view) {
  return std::to_string(view.seen.statistics.batch.kept) + " of the " +
         std::to_string(view.config.budget.groups_per_step) +
         " groups of the newest batch are of the kind that algorithm.filter_groups discards: they "
         "were kept because max_num_gen_batches, " +
         std::to_string(view.config.gen_batches_max) + ", was reached";
}

messages::JobStatus status_of(const RunView& view) {
  const RunStatistics& statistics = view.seen.statistics;
  const scheduler::Ledger& ledger = view.facts.flow.ledger;
  const auto rates = view.seen.fleet.rates();
  const auto gap = gap_of(view, rates);
  messages::JobStatus status{
      .restoring = view.config.resume && view.facts.stage == RunStage::kStarting,
      .step = ledger.next_commit().value,
      .total_steps = view.config.budget.steps_total,
      .policy_version = view.facts.versions.published.value,
      .reward_mean = statistics.batch.rewards.mean,
      .staleness_bound = view.config.budget.max_staleness,
      .staleness_max = statistics.trained.staleness.max(),
      .staleness_mean = statistics.trained.staleness.mean(),
      .queue_depth = ledger.count(GroupState::kGenerated) + ledger.count(GroupState::kScoring) +
                     ledger.count(GroupState::kScored),
      .queue_limit = std::max<std::int64_t>(1, view.config.budget.lookahead) *
                     view.config.budget.groups_per_step,
      .trainer_idle_fraction = trainer_idle_fraction(view),
      .rates = rates,
      .gap = gap,
      .warm_start = warm_start_of(view.seen.learner),
      .waits = WaitList(view, gap).all(),
      .troubles = view.seen.workers.troubles.shown(view.now),
      .reward_fails = view.seen.workers.troubles.all_fail(),
      .disk_full = full_disk_of(view),
      .filter_keeps = view.seen.filter_keeps ? std::optional(kept_text(view)) : std::nullopt,
      .steps_skipped = statistics.trained.steps_skipped,
      .steps_without_gradient = statistics.trained.steps_without_gradient,
      .rewards_failed = statistics.trained.rewards_failed};
  if (const auto& groups = view.seen.broadcasts.groups) {
    status.broadcasts = view.seen.broadcasts.started;
    status.broadcast_failures = groups->failures();
  }
  if (const auto it = statistics.evaluations.find("last"); it != statistics.evaluations.end())
    status.eval = it->second;
  if (const WorkTotals total = work_of(view); total.running_seconds > 0 && status.step > 0) {
    status.step_s = total.running_seconds / static_cast<double>(status.step);
    status.eta_s = *status.step_s * static_cast<double>(status.total_steps - status.step);
  }
  if (rates) status.step_s = rates->seconds / static_cast<double>(rates->steps);
  if (statistics.running_since && view.facts.stage != RunStage::kEnded)
    status.since_progress_s =
        seconds(view.now - std::max(*statistics.running_since,
                                    view.seen.progressed.value_or(*statistics.running_since)));
  add_rates(status, statistics.rate_points);
  status.cost = cost_of(view);
  return status;
}

messages::ExchangeReport report_of(const RunView& view) {
  const scheduler::Ledger& ledger = view.facts.flow.ledger;
  messages::ExchangeReport report{.status = status_of(view),
                                  .last_step = view.seen.statistics.last_step};
  const auto counters = ledger.counters();
  report.ledger = {.issued = counters.issued, .trained = counters.trained, .live = counters.live};
  for (std::size_t i = 0; i < scheduler::kDiscardReasons; ++i)
    if (counters.discarded[i] > 0)
      report.ledger.discarded.emplace_back(
          scheduler::name(static_cast<scheduler::DiscardReason>(i)), counters.discarded[i]);
  for (const WorkerRole& role : view.roles)
    for (const auto& [actor, worker] : view.facts.workers.of(role.role))
      report.loads.push_back(role.load(view, worker));
  const LearnerFacts& learner = view.facts.learner;
  if (learner.who)
    report.loads.push_back({.actor = learner.who->name,
                            .policy_version = ledger.next_commit().value,
                            .load = work_of_learner(view)});
  std::ranges::sort(report.loads, {}, &messages::ActorLoad::actor);
  return report;
}

std::vector<messages::GroupView> groups_of(const RunView& view, const messages::GetGroups& asked) {
  std::vector<messages::GroupView> groups;
  std::vector<std::pair<Incarnation, std::size_t>> held;  // by whom, and the place in `groups`
  const auto& entries = view.facts.flow.entries;
  groups.reserve(std::min(asked.limit, entries.size()));
  held.reserve(groups.capacity());
  for (auto next = entries.upper_bound(GroupId{asked.after});
       next != entries.end() && groups.size() < asked.limit; ++next) {
    const GroupId group = next->first;
    const scheduler::GroupRecord& record = *view.facts.flow.ledger.find(group);
    messages::GroupView shown{.group = group.value,
                              .state = scheduler::name(record.state),
                              .age_s = seconds(view.now - view.seen.groups.at(group).admitted)};
    if (record.due) shown.due = record.due->value;
    if (record.lease) {
      shown.attempt = record.lease->id.value;
      held.emplace_back(record.lease->holder, groups.size());
    }
    groups.push_back(std::move(shown));
  }
  if (held.empty()) return groups;
  std::ranges::sort(held);
  for (const auto& [role, workers] : view.facts.workers.by_role)
    for (const auto& [actor, worker] : workers)
      for (auto it =
               std::ranges::lower_bound(held, std::pair(worker.who.incarnation, std::size_t{0}));
           it != held.end() && it->first == worker.who.incarnation; ++it)
        groups[it->second].holder = actor;
  return groups;
}

}  // namespace tandem::exchange
