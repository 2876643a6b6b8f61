// A learner that comes up before training publishes the weights as they are; that may need a warm
// start, or the history of a run that is resumed. One that comes back while the run trains stands
// at a checkpoint: the batches since then are sent again first (training.h), and a checkpoint that
// was asked for is asked for again once it is back there (EX-2).
#include "actors/exchange/learner.h"

#include <utility>

#include "actors/exchange/checkpoints.h"
#include "actors/exchange/checks.h"
#include "actors/exchange/evaluating.h"
#include "actors/exchange/publications.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/training.h"
#include "actors/exchange/work_totals.h"
#include "actors/exchange/workers.h"

namespace tandem::exchange {

namespace {

std::string text(StepId step) { return std::to_string(step.value); }

bool is_learner(const RunFacts& facts, const ActorId& from) {
  return facts.learner.who && facts.learner.who->incarnation == from.incarnation;
}

// Asks for the publication with which the run begins, or goes on from a checkpoint.
void ask_for_first_publication(Turn& turn, StepId checkpoint) {
  const RunFacts& facts = turn.facts;
  if (facts.end.asked || !facts.learner.who) return;
  const StepId done = facts.flow.ledger.next_commit();
  if (checkpoint != done)
    return fail(turn, "the newest checkpoint is of step " + text(checkpoint) +
                          " but this run is at step " + text(done));
  turn.record(LearnerAsked{LearnerTask::kPublish, {}});
  ask_to_publish(turn);
}

void meet_before_training(Turn& turn, const messages::LearnerUp& up) {
  const StepId checkpoint = up.checkpoint.value_or(StepId{0});
  if (checkpoint.value > turn.config.budget.steps_total)
    return fail(turn, "the newest checkpoint is of step " + text(checkpoint) +
                          " and the job ends at step " +
                          std::to_string(turn.config.budget.steps_total));
  if (turn.config.resume && !turn.facts.resumed) {
    turn.seen.learner.restoring = RestoringRun{.checkpoint = checkpoint, .history = {}};
    return turn.send(ReadHistory{});
  }
  ask_for_first_publication(turn, checkpoint);
}

void meet_again(Turn& turn, const messages::LearnerUp& up) {
  const LearnerFacts& learner = turn.facts.learner;
  const StepId done = turn.facts.flow.ledger.next_commit();
  if (!up.checkpoint)
    return fail(turn,
                "the learner came back without any checkpoint: " + text(done) + " steps are lost");
  if (*up.checkpoint > done || *up.checkpoint < learner.batches_from())
    return fail(turn, "the learner came back with a checkpoint of step " + text(*up.checkpoint) +
                          ", but the batches of steps " + text(learner.batches_from()) + " to " +
                          text(done) +
                          " are those that are kept; a resume of the run goes on from "
                          "the newest checkpoint that can be read");
  if (*up.checkpoint < learner.durable)
    turn.say("the checkpoint of step " + text(learner.durable) +
                 " cannot be read any more: the learner goes back to the one before, of step " +
                 text(*up.checkpoint) + ", and trains the batches since then again",
             messages::EventLevel::kWarning);
  turn.record(LearnerRestarted{up.from, *up.checkpoint, done.value - up.checkpoint->value});
  if (learner.checkpoint_awaited == up.checkpoint) ask_checkpoint(turn);
}

// Training begins: version 0, or that of the checkpoint, is published.
template <class Message>
void begin_training(Turn& turn, const Message& message,
                    std::optional<std::int32_t> warm_start_steps) {
  turn.record(VersionPublished{message.from, message.publication, warm_start_steps});
  note_publication(turn, message.publication, message.probe);
  turn.seen.statistics.running_since = turn.now;
}

EvaluationKind kind_at_version_0(const RunView& view) {
  return view.config.warm_start ? EvaluationKind::kAfterWarmStart : EvaluationKind::kBefore;
}

// The untrained weights are published: the warm start follows, which without one in the job makes
// them version 0.
void begin_warm_start(Turn& turn, const messages::Published& published) {
  turn.record(VersionPublished{published.from, published.publication, {}});
  note_publication(turn, published.publication, published.probe);
  if (turn.config.warm_start) {
    start_evaluation(turn, EvaluationKind::kBefore, kInitialWeights);
    enter(turn, RunStage::kWarmStart, "warm start");
  }
  turn.record(LearnerAsked{LearnerTask::kWarmStart, {}});
  turn.tell_learner(messages::WarmStart{});
  turn.wake();
}

// The learner has published again what it holds.
void restore_versions(Turn& turn, const messages::Published& published) {
  turn.record(VersionsRestored{published.from, published.publication});
  note_publication(turn, published.publication, published.probe);
  const VersionFacts& versions = turn.facts.versions;
  const PolicyVersion newest = published.publication.version;
  for (PolicyVersion version = oldest_needed(turn.view()); version <= newest; ++version.value)
    if (needs(turn.view(), version) && !versions.offered.contains(version) &&
        supply_of(version, turn.facts.supply()) == scheduler::VersionSupply::kHeld)
      return fail(turn, published.from.name + " was asked to publish version " +
                            std::to_string(version.value) + " again, and did not");
  turn.wake();
}

}  // namespace

void take(Turn& turn, const messages::LearnerUp& up) {
  if (has_ended(turn.facts, up.from)) return;
  // An incarnation comes up once; it says so again where it meets an exchange that follows.
  if (turn.facts.learner.who == up.from && !turn.seen.learner.away) return;
  turn.record(LearnerCameUp{up.from, up.checkpoint, up.offered});
  end_broadcasts_of_learner(turn);
  LearnerSeen& seen = turn.seen.learner;
  seen.save_due = seen.away = false;
  bool moved = std::exchange(seen.source, up.source) != up.source;
  if (turn.facts.stage == RunStage::kStarting) {
    meet_before_training(turn, up);
  } else {
    const PolicyVersion oldest = turn.facts.versions.oldest_retained;
    meet_again(turn, up);
    moved = moved || turn.facts.versions.oldest_retained > oldest;  // some are lost for good
  }
  if (moved) announce_again(turn);
  turn.wake();
}

void learner_gone(Turn& turn, const ActorId& who) {
  const LearnerFacts& learner = turn.facts.learner;
  if (learner.who != who) return;
  RunStatistics& statistics = turn.seen.statistics;
  if (learner.owed && statistics.running_since)
    statistics.work.learner_busy_seconds += seconds(turn.now - statistics.step_sent);
  if (learner.training) turn.seen.fleet.learner_ended(turn.now - statistics.step_sent);
  turn.seen.learner.none_since = turn.now;
  turn.seen.learner.save_due = turn.seen.learner.away = false;
  turn.seen.learner.no_room.reset();
  turn.seen.learner.drain_deadline.reset();
  turn.seen.learner.let_go = false;
  end_broadcasts_of_learner(turn);
}

// A learner that is away is asked to publish once more when it is back (LearnerBack).
void take(Turn& turn, const messages::Published& published) {
  if (!is_learner(turn.facts, published.from) || turn.seen.learner.away) return;
  if (const auto why = misfit(turn.view(), published)) return refuse(turn, published.from, *why);
  const messages::Publication& publication = published.publication;
  if (turn.facts.stage != RunStage::kStarting) return restore_versions(turn, published);
  if (std::max(turn.facts.versions.published, publication.version) == kInitialWeights)
    return begin_warm_start(turn, published);
  begin_training(turn, published, {});
  const PolicyVersion version = turn.facts.versions.published;
  if (version == PolicyVersion{0}) start_evaluation(turn, kind_at_version_0(turn.view()), version);
  const StepId done = turn.facts.flow.ledger.next_commit();
  enter(turn, RunStage::kRunning, "resumed at step " + text(done));
  if (done.value == turn.config.budget.steps_total) {
    turn.record(CheckpointAsked{done});
    ask_checkpoint(turn);
    finish_training(turn);
  }
  turn.wake();
}

// A learner that died begins the warm start again, which its rate does not count.
void note_progress(LearnerSeen& seen, const messages::WarmStartProgress& progress, Time now) {
  if (!seen.warm_start_first || progress.step < seen.warm_start.step)
    seen.warm_start_first = {progress.step, now};
  seen.warm_start_reported = now;
}

void take(Turn& turn, messages::WarmStartProgress progress) {
  if (!is_learner(turn.facts, progress.from)) return;
  const std::uint64_t known =
      std::exchange(turn.seen.statistics.trained.steps_skipped, progress.steps_skipped);
  note_progress(turn.seen.learner, progress, turn.now);
  const messages::WarmStartProgress& warm_start = turn.seen.learner.warm_start =
      std::move(progress);
  if (warm_start.steps_skipped <= known) return;
  turn.say("the warm start has skipped steps whose gradient is not finite: " +
               std::to_string(warm_start.steps_skipped) + " by step " +
               std::to_string(warm_start.step),
           messages::EventLevel::kWarning);
  turn.wake();
}

// The answer that the exchange before has journalled comes once more (LearnerBack).
bool is_known(const RunFacts& facts, const messages::WarmStarted& started) {
  const auto known = facts.versions.checksums.find(started.publication.version);
  return facts.versions.published > kInitialWeights && known != facts.versions.checksums.end() &&
         known->second == started.publication.checksum;
}

void take(Turn& turn, const messages::WarmStarted& started) {
  if (!is_learner(turn.facts, started.from)) return;
  if (is_known(turn.facts, started))
    return note_probe(turn, started.publication.version, started.probe);
  if (const auto why = misfit(turn.view(), started)) return refuse(turn, started.from, *why);
  begin_training(turn, started, started.steps);
  note_totals(turn, started.publication);
  start_evaluation(turn, kind_at_version_0(turn.view()), turn.facts.versions.published);
  enter(
      turn, RunStage::kRunning,
      started.reached ? "training" : "training; the warm start ended by max_steps, not by `until`");
  turn.wake();
}

void take(Turn& turn, const messages::LearnerFailed& failed) {
  if (has_ended(turn.facts, failed.from)) return;
  if (turn.facts.learner.who && !is_learner(turn.facts, failed.from)) return;
  fail(turn, failed.from.name + ": " + failed.message);
}

void take(Turn& turn, messages::LearnerWaits waits) {
  if (!is_learner(turn.facts, waits.from)) return;
  auto& no_room = turn.seen.learner.no_room;
  if (waits.message.empty())
    no_room.reset();
  else
    no_room = {std::move(waits.message), turn.now};
}

// A run that is refused here stays as it was.
void take(Turn& turn, HistoryRead read) {
  auto& restoring = turn.seen.learner.restoring;
  if (!restoring) return;
  const StepId checkpoint = restoring->checkpoint;
  if (const auto why = misfit(turn.view(), read.history, checkpoint)) {
    restoring.reset();
    return fail(turn, *why);
  }
  restoring->history = std::move(read.history);
  turn.send(TakeUpRun{.job_yaml = turn.config.job_yaml, .checkpoint = checkpoint});
}

void take(Turn& turn, const RunTakenUp&) {
  auto& restoring = turn.seen.learner.restoring;
  if (!restoring) return;
  const RestoringRun from = *std::exchange(restoring, std::nullopt);
  const scheduler::Budget& budget = turn.config.budget;
  RunStatistics& statistics = turn.seen.statistics;
  const auto started = statistics.started;
  statistics =
      from.history.figures().statistics(from.checkpoint, budget.steps_total, turn.config.best);
  statistics.started = started;
  turn.seen.history = from.history.figures();
  turn.record(from.history.resumed(from.checkpoint, budget, turn.config.fixed_lag));
  for (const auto& [group, facts] : turn.facts.flow.entries)
    turn.seen.groups[group] = {turn.now, turn.now};
  if (statistics.best) turn.send(NameBest{StepId{statistics.best->version.value}});
  ask_for_first_publication(turn, from.checkpoint);
}

}  // namespace tandem::exchange
