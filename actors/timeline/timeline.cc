// One function for each event that shows; the order is that of the journal's headers. What is open
// is closed by the event that ends it, by the end of the attempt, or by the end of the trace.
#include "actors/timeline/timeline.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "actors/messages/group_tokens.h"

namespace tandem::timeline {

using scheduler::GroupState;

namespace {

constexpr const char* kEvents = "events";  // rows of the run
constexpr const char* kPhases = "phases";
constexpr std::size_t kInstallsOpenMax = 4096;  // a run that trains nothing installs few

std::optional<PolicyVersion> oldest_of(const messages::GroupHeader& header) {
  if (header.trajectories.empty()) return std::nullopt;
  return std::ranges::min(header.trajectories, {}, &messages::TrajectoryHeader::oldest).oldest;
}

std::string task_name(const exchange::LearnerAsked& asked) {
  if (asked.task == exchange::LearnerTask::kWarmStart) return "warm start";
  if (asked.task == exchange::LearnerTask::kPublish) return "publishes the first version";
  return asked.step ? "step " + std::to_string(asked.step->value + 1) : "step";
}

}  // namespace

Timeline::Timeline(const RunSurvey& survey, TraceRange range, std::uint64_t events_max,
                   FiguresOf figures, TraceWindow::Emit emit)
    : survey_(survey),
      window_(range, survey.begun(), std::move(emit)),
      events_max_(events_max),
      figures_of_(std::move(figures)) {
  run_ = {rows_.process(kRunPool), 0};
  rows_.process(kGroupsPool);
}

void Timeline::take(const exchange::JournalEntry& entry) {
  const TraceTime at = std::max(now_, from_ms(entry.time_ms));  // a clock may be set back
  if (is_full() || at > window_.range().last) return;
  if (at > now_) count();
  before_ = std::exchange(now_, at);
  std::visit([this](const auto& event) { on(event); }, entry.event);
}

void Timeline::end() {
  const bool cut = is_full() || window_.range().last < survey_.ended();
  count();
  if (!is_full()) now_ = std::max(now_, window_.range().last);
  finish(cut ? "cut at the bound" : "open");
}

void Timeline::finish(const char* how) {
  put_out_installs(std::nullopt);
  trips_.finish_all(now_, how);
  learner_.finish(now_, how);
  while (!evaluations_.empty()) end_evaluation(evaluations_.begin()->first, how);
  end_phase();
}

void Timeline::say(const TracePool& pool, const std::string& row, std::string what,
                   const char* category, TraceArguments facts) {
  window_.instant({.name = std::move(what),
                   .category = category,
                   .row = rows_.row(pool, row),
                   .arguments = std::move(facts)},
                  now_);
}

// The counts as they were up to now_, at most kCounterSamples of them within the bounds.
void Timeline::count() {
  const TraceRange& range = window_.range();
  const TraceTime every = (std::min(range.last, survey_.ended()) - range.first) / kCounterSamples;
  const auto& counts = trips_.counts();
  if (now_ < range.first || counts == counts_shown_ || (counted_ > 0 && now_ < counted_ + every))
    return;
  counts_shown_ = counts;
  counted_ = now_;
  const auto of = [&](GroupState state) { return counts[static_cast<std::size_t>(state)]; };
  TraceArguments live;
  for (const GroupState state :
       {GroupState::kAdmitted, GroupState::kRolling, GroupState::kGenerated, GroupState::kScoring,
        GroupState::kScored, GroupState::kTraining})
    live.push_back({name(state), of(state)});
  window_.counter({.name = "live groups", .row = run_, .arguments = std::move(live)}, now_);
  const std::int64_t queue =
      of(GroupState::kGenerated) + of(GroupState::kScoring) + of(GroupState::kScored);
  window_.counter({.name = "queue depth", .row = run_, .arguments = {{"groups", queue}}}, now_);
}

void Timeline::on(const exchange::RunBegan& event) {
  // An attempt that died could not say so: what it had open ends at its last event.
  const TraceTime begun = std::exchange(now_, before_);
  finish("the attempt ended");
  now_ = begun;
  say(kRunPool, kEvents, "the run begins", "run",
      {{"epoch", static_cast<std::int64_t>(event.epoch.value)}});
}

void Timeline::on(const exchange::ExchangeFollowed& event) {
  say(kRunPool, kEvents, "the controller restarted", "run",
      {{"epoch", static_cast<std::int64_t>(event.epoch.value)}});
}

void Timeline::on(const exchange::RunResumed& event) {
  ++resumptions_;
  say(kRunPool, kEvents, "resumed from step " + std::to_string(event.checkpoint.value), "run",
      {{"step", event.checkpoint.value}});
  for (const exchange::ResumedGroup& group : event.groups)
    if (!group.discarded) trips_.enter(group.group, GroupState::kAdmitted, now_);
}

void Timeline::end_phase() {
  if (!phase_) return;
  window_.span({.name = phase_->first, .category = "phase", .row = rows_.row(kRunPool, kPhases)},
               phase_->second, now_);
  phase_.reset();
}

void Timeline::on(const exchange::StageEntered& event) {
  end_phase();
  if (event.stage != exchange::RunStage::kEnded)
    phase_ = {event.message.empty() ? "starting" : event.message, now_};
}

void Timeline::on(const exchange::EndAsked& event) {
  say(kRunPool, kEvents, "the run is to end", "run", {{"reason", event.reason}});
}

void Timeline::on(const exchange::RunEnded& event) {
  end_phase();
  say(kRunPool, kEvents, "the run ended", "run", {{"reason", event.reason}});
}

void Timeline::on(const exchange::WorkerCameUp& event) {
  const std::string actor = short_name(event.who.name);
  say(pool_of(actor), actor, "up", "actor",
      {{"incarnation", static_cast<std::int64_t>(event.who.incarnation.value)},
       {"capacity", event.capacity}});
}

void Timeline::on(const exchange::WorkerDrains& event) {
  const std::string actor = short_name(event.who.name);
  say(pool_of(actor), actor, "drains", "actor");
}

// A pause ends when the exchange hears of the install.
void Timeline::on(const exchange::VersionInstalled& event) {
  const auto paused = std::exchange(paused_, std::nullopt);
  const Install install{event.who, event.version, now_};
  if (paused && paused->who == event.who && paused->version == event.version) {
    put_out_installs(std::nullopt);  // a row's spans come in their order
    return put_out_install(install, {{"pause_s", paused->seconds}}, paused->seconds);
  }
  if (installs_.size() == kInstallsOpenMax) put_out_installs(std::nullopt);
  installs_.push_back(install);
}

void Timeline::put_out_install(const Install& install, TraceArguments facts,
                               std::optional<double> pause_s) {
  const std::string actor = short_name(install.who.name);
  TraceEvent event{.name = "installs v" + std::to_string(install.version.value),
                   .category = "install",
                   .row = rows_.row(pool_of(actor), actor),
                   .arguments = {{"version", install.version.value}}};
  event.arguments.insert(event.arguments.end(), facts.begin(), facts.end());
  TraceTime& last = installed_[actor];
  if (pause_s && *pause_s > 0) {
    const auto lasted = static_cast<TraceTime>(std::min(*pause_s, 1e6) * 1e6);
    window_.span(std::move(event), std::max(install.at - lasted, last), install.at);
  } else {
    window_.instant(std::move(event), install.at);
  }
  last = install.at;
}

// An install whose pause the journal lacks is drawn by the mean that the next step's figures tell.
void Timeline::put_out_installs(std::optional<double> pause_s) {
  for (const Install& install : std::exchange(installs_, {}))
    put_out_install(
        install,
        pause_s && *pause_s > 0 ? TraceArguments{{"mean_pause_s", *pause_s}} : TraceArguments{},
        pause_s);
}

void Timeline::on(const exchange::IncarnationEnded& event) {
  const std::string actor = short_name(event.who.name);
  if (pool_of(actor) == messages::name(messages::Role::kLearner)) return learner_.died(now_);
  say(pool_of(actor), actor, "ended", "actor",
      {{"incarnation", static_cast<std::int64_t>(event.who.incarnation.value)}});
}

void Timeline::on(const exchange::EngineCrashed& event) {
  const std::string actor = short_name(event.who.name);
  say(pool_of(actor), actor, "the engine crashed", "actor", {{"cause", event.cause}});
}

void Timeline::on(const exchange::GroupAdmitted& event) {
  trips_.enter(event.group, GroupState::kAdmitted, now_);
}

void Timeline::on(const exchange::RolloutLeased& event) {
  trips_.lease(event.group,
               {GroupState::kRolling, short_name(event.holder.name), event.lease, event.version},
               now_);
}

void Timeline::on(const exchange::GroupGenerated& event) {
  const messages::GroupHeader& header = event.header;
  if (const auto oldest = oldest_of(header))
    trips_.generated(header.group, *oldest,
                     static_cast<std::int64_t>(messages::completion_tokens(header)));
  trips_.enter(header.group, GroupState::kGenerated, now_, "generated");
}

void Timeline::on(const exchange::RewardLeased& event) {
  trips_.lease(event.group,
               {GroupState::kScoring, short_name(event.holder.name), event.lease, std::nullopt},
               now_);
}

void Timeline::on(const exchange::GroupScored& event) {
  trips_.enter(event.group, GroupState::kScored, now_, "scored");
}

void Timeline::count_staleness(const exchange::BatchFormed& event) {
  std::int64_t most = 0, sum = 0, known = 0;
  for (const GroupId group : event.groups) {
    const auto told = trips_.told(group);
    if (!told || !told->oldest) continue;
    const std::int64_t staleness = event.step.value - told->oldest->value;
    most = std::max(most, staleness);
    sum += staleness;
    ++known;
  }
  if (known == 0) return;
  window_.counter({.name = "staleness",
                   .row = run_,
                   .arguments = {{"mean", static_cast<double>(sum) / static_cast<double>(known)},
                                 {"max", most}}},
                  now_);
}

void Timeline::on(const exchange::BatchFormed& event) {
  count_staleness(event);
  std::optional<AwaitedGroup> last;
  for (const GroupId group : event.groups) {
    const auto told = trips_.told(group);
    if (told && told->scored && (!last || *told->scored > last->scored))
      last = {group, told->rollout, *told->scored};
    trips_.enter(group, GroupState::kTraining, now_);
  }
  learner_.begins("step " + std::to_string(event.step.value + 1), now_, last);
}

void Timeline::on(const exchange::StepTrained& event) {
  const std::int64_t step = event.step.value + 1;
  const bool repeated = event.groups.empty();
  learner_.done(now_, repeated ? TraceArguments{{"repeated", std::string("yes")}}
                               : TraceArguments{{"groups", std::ssize(event.groups)}});
  for (const GroupId group : event.groups) trips_.finish(group, now_, "trained", {{"step", step}});
  if (repeated) return;
  last_step_ = step;
  StepFigures figures;
  if (!survey_.is_lost(event.step, resumptions_)) figures = figures_of_(step);
  if (figures.publish_s && event.publication)
    learner_.published(event.publication->version.value, *figures.publish_s, now_);
  put_out_installs(figures.install_pause_s);
}

void Timeline::on(const exchange::LeaseReleased& event) {
  trips_.give_back(event.group, now_, "the holder ended");
}

void Timeline::on(const exchange::LeaseExpired& event) {
  trips_.give_back(event.group, now_, "expired");
}

void Timeline::on(const exchange::LeaseAdopted& event) {
  trips_.adopt(event.group, short_name(event.holder.name), event.lease, now_);
}

void Timeline::on(const exchange::GroupHandedBack& event) {
  trips_.give_back(event.group, now_, "handed back");
}

void Timeline::on(const exchange::GroupDiscarded& event) {
  trips_.finish(event.group, now_, "discarded",
                {{"reason", std::string(scheduler::name(event.reason))}});
}

void Timeline::on(const exchange::LiveDiscarded& event) {
  for (const GroupId group : event.groups)
    trips_.finish(group, now_, "discarded",
                  {{"reason", std::string(scheduler::name(event.reason))}});
}

void Timeline::on(const exchange::AnswerRefused& event) {
  if (event.refusal == scheduler::Refusal::kOverAge)
    trips_.give_back(event.group, now_, "its tokens were too old");
}

void Timeline::on(const exchange::LearnerCameUp& event) { learner_.came_up(event.who, now_); }

void Timeline::on(const exchange::LearnerRestarted& event) {
  learner_.restarted(event.batches, now_);
}

void Timeline::on(const exchange::LearnerAsked& event) { learner_.begins(task_name(event), now_); }

void Timeline::on(const exchange::VersionPublished& event) {
  learner_.done(now_, {{"version", event.publication.version.value}});
}

void Timeline::on(const exchange::VersionsRestored& event) {
  learner_.done(now_, {{"version", event.publication.version.value}});
}

void Timeline::on(const exchange::CheckpointAsked& event) {
  learner_.checkpoint_asked(event.step, now_);
}

void Timeline::on(const exchange::CheckpointKept& event) {
  learner_.checkpoint_kept(event.step, now_);
}

void Timeline::on(const exchange::EvaluationBegan& event) {
  end_evaluation(event.evaluation.value, "asked anew");
  evaluations_[event.evaluation.value] = {
      "evaluates v" + std::to_string(event.version.value) + ", " + exchange::name(event.kind), now_,
      rows_.take(kRunPool, "evaluations")};
}

void Timeline::on(const exchange::EvaluationEnded& event) {
  end_evaluation(event.evaluation.value, "ended");
  learner_.evaluated(now_);
}

void Timeline::end_evaluation(std::uint64_t id, const char* how) {
  const auto open = evaluations_.extract(id);
  if (!open || !open.mapped().lane) return;
  window_.span({.name = open.mapped().name,
                .category = "evaluate",
                .row = open.mapped().lane->row,
                .arguments = {{"ended", std::string(how)}}},
               open.mapped().since, now_);
  rows_.give_back(*open.mapped().lane);
}

}  // namespace tandem::timeline
