// A step goes through turns: handle(TrainStep) collects the parts of the list, pull() asks for the
// payloads, pulled() trains, trained() publishes and reports. Reading payloads is asynchronous, so
// other messages may come between; a MeetExchange among them drops the step. Every turn that is
// scheduled for later therefore carries the number of its meeting and does nothing in another one.
//
// A command that does not fit the trainer's step is an error of the exchange or a lost message, and
// ends the actor: to guess would train a batch twice or not at all.
#include "actors/learner/learner_actor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::learner {
namespace {

// A disk may fail for a moment, so a write is tried again. An error that stays would also meet the
// restarted learner, after it had trained every step since the last checkpoint anew; the job fails
// at once instead (kInvalid). A full disk is the caller's to wait for. Where another learner has
// taken the run over (kUnauthorised), this one ends: if it is the one that is wanted, its next
// incarnation claims the checkpoints anew.
template <class Write>
auto write_again(const Write& write, const char* event, StepId step) {
  auto written = write();
  const auto lasts = [&written] {
    return !written && !waits_for_disk(written.error()) &&
           written.error().code != ErrorCode::kUnauthorised;
  };
  for (int attempt = 1; lasts() && attempt < kSaveAttempts; ++attempt) {
    log::warn("event={} step={} error=\"{}\"", event, step.value, written.error().message);
    written = write();
  }
  if (!lasts()) return written;
  Error error = written.error();
  error.code = ErrorCode::kInvalid;
  return decltype(written)(std::move(error));
}

}  // namespace

LearnerActor::LearnerActor(LearnerActorConfig config, std::unique_ptr<Trainer> trainer,
                           std::shared_ptr<weights::WeightPublisher> publisher,
                           payload::PayloadReader read_payloads,
                           actor::Ref<messages::LearnerEvents> exchange)
    : config_(std::move(config)),
      trainer_(std::move(trainer)),
      publisher_(std::move(publisher)),
      read_payloads_(std::move(read_payloads)),
      outbox_(std::move(exchange), kOutboxRetryDelay) {}

LearnerActor::~LearnerActor() {
  log::info("event=learner_ended actor={} step={} trained={}", config_.self.name,
            trainer_->step().value, trained_);
}

void LearnerActor::handle(actor::Context& cx, MeetExchange) {
  ++meeting_;
  step_.reset();
  deferred_.clear();
  disk_waits_ = initial_due_ = false;
  waits_since_.reset();
  warm_start_ = {};
  note("restore", cx.now());
  const Result<std::optional<StepId>> restored = trainer_->restore();
  note("idle", cx.now());
  if (!restored) return fail(cx, restored.error());
  restored_ = restored->has_value();
  log::info("event=learner_up actor={} checkpoint={}", config_.self.name,
            *restored ? std::to_string((*restored)->value) : "none");
  outbox_.send(cx, messages::LearnerUp{config_.self, *restored, publisher_->source(),
                                       publisher_->offered()});
}

// The newest answers are told in their order, whether they have left before or not. A step whose
// batch has not come whole is dropped: it is sent again.
void LearnerActor::handle(actor::Context& cx, MeetAgain) {
  if (!commanded_) {
    outbox_.clear();
    return handle(cx, MeetExchange{});
  }
  if (step_ && step_->command.more) step_.reset();
  deferred_.clear();  // they are given again
  outbox_.clear();
  if (warm_start_.ended) outbox_.send(cx, *warm_start_.ended);
  const bool saved_first = saved_ && committed_ && saved_->step <= committed_->step;
  if (saved_first) outbox_.send(cx, *saved_);
  if (committed_) outbox_.send(cx, *committed_);
  if (saved_ && !saved_first) outbox_.send(cx, *saved_);
  if (failed_) return outbox_.send(cx, *failed_);
  messages::LearnerBack back{.from = config_.self,
                             .step = trainer_->step(),
                             .training = {},
                             .source = publisher_->source(),
                             .warm_started = warm_start_.begun};
  // A trainer may be ahead of the step that it is at work on.
  if (step_) {
    back.step = step_->command.step;
    back.training = back.step;
  }
  log::info("event=met_again actor={} step={} training={}", config_.self.name,
            trainer_->step().value, step_.has_value());
  outbox_.send(cx, std::move(back));
  if (waits_) outbox_.send(cx, *waits_);
}

void LearnerActor::handle(actor::Context& cx, messages::PublishInitial command) {
  commanded_ = true;
  if (initial_due_) return;  // an exchange that follows asks for what another one has asked
  if (disk_waits_) return deferred_.push_back(command);
  initial_due_ = true;
  const PolicyVersion newest = restored_ ? PolicyVersion{trainer_->step().value} : kInitialWeights;
  const PolicyVersion retain = std::min(newest, command.retain);
  publish_from(cx, retain, newest, retain);
}

// Ascending, as versions were published the first time.
void LearnerActor::publish_from(actor::Context& cx, PolicyVersion version, PolicyVersion newest,
                                PolicyVersion retain) {
  while (version < newest && !trainer_->older(version)) ++version.value;
  const bool last = version == newest;
  publish(cx, version, last ? trainer_->weights() : *trainer_->older(version), retain,
          [=, this](actor::Context& then, const messages::Publication& publication) {
            if (!last) return publish_from(then, PolicyVersion{version.value + 1}, newest, retain);
            initial_due_ = false;
            outbox_.send(then, messages::Published{config_.self, publication, trainer_->probe()});
          });
}

void LearnerActor::handle(actor::Context& cx, messages::WarmStart) {
  commanded_ = warm_start_.begun = true;
  warm_start_.reported = cx.now();
  warm_start_slice(cx);
}

void LearnerActor::warm_start_slice(actor::Context& cx) {
  note("warm_start", cx.now());
  const Result<WarmStartSlice> slice = trainer_->warm_start();
  note("idle", cx.now());
  if (!slice) return fail(cx, slice.error());
  // A measurement is always reported. Other progress is only for the screen: it is left out while
  // earlier events wait, so that a slow link does not fill the outbox.
  const bool report = slice->metric || cx.now() - warm_start_.reported >= kWarmStartReportEvery;
  if (report && slice->step > 0 && outbox_.empty()) {
    warm_start_.reported = cx.now();
    outbox_.send(cx, messages::WarmStartProgress{config_.self, slice->step, slice->steps_max,
                                                 slice->loss, slice->metric, slice->steps_skipped});
  }
  // One slice per turn: messages such as MeetExchange are handled between two slices.
  later(cx, slice->then_wait, [this, last = *slice](actor::Context& then) {
    last.done ? finish_warm_start(then, last) : warm_start_slice(then);
  });
}

void LearnerActor::finish_warm_start(actor::Context& cx, const WarmStartSlice& last) {
  log::info("event=warm_start_done actor={} steps={} loss={:.4f} reached={}", config_.self.name,
            last.step, last.loss, last.reached);
  // The checkpoint is saved before the publication: a learner that dies in between publishes
  // version 0 after its restart from the checkpoint (PublishInitial).
  save(cx, [this, last](actor::Context& then) {  // LE-2
    restored_ = true;
    publish(then, PolicyVersion{0}, trainer_->weights(), kInitialWeights,
            [this, last](actor::Context& later, const messages::Publication& publication) {
              warm_start_.ended = messages::WarmStarted{config_.self, last.step, publication,
                                                        last.reached, trainer_->probe()};
              outbox_.send(later, *warm_start_.ended);
              outbox_.send(later, *saved_);
            });
  });
}

void LearnerActor::handle(actor::Context& cx, messages::TrainStep command) {
  commanded_ = true;
  warm_start_.ended.reset();  // it is known
  if (disk_waits_) return deferred_.push_back(std::move(command));
  // A further part of the list that is being collected.
  if (step_ && step_->command.more && command.step == step_->command.step) {
    auto& groups = step_->command.groups;
    groups.insert(groups.end(), std::move_iterator(command.groups.begin()),
                  std::move_iterator(command.groups.end()));
    step_->command.more = command.more;
    if (!command.more) pull(cx);
    return;
  }
  if (step_ || command.step != trainer_->step())
    return fail(cx, Error{.message = "asked to train step " + std::to_string(command.step.value) +
                                     " while at step " + std::to_string(trainer_->step().value)});
  step_ = Step{.command = std::move(command), .began = cx.now(), .pulled = {}};
  if (!step_->command.more) pull(cx);
}

void LearnerActor::pull(actor::Context& cx) {
  ++step_->attempts;
  std::vector<wire::PayloadRef> refs;
  for (const messages::TrainGroup& group : step_->command.groups) refs.push_back(group.payload);
  read_payloads_(std::move(refs), [this, meeting = meeting_, post = cx.turn_poster()](
                                      Result<std::vector<std::string>> payloads) {
    auto arrived = std::make_shared<Result<std::vector<std::string>>>(std::move(payloads));
    post([this, meeting, arrived](actor::Context& then) {
      if (meeting == meeting_) pulled(then, std::move(*arrived));
    });
  });
}

void LearnerActor::pulled(actor::Context& cx, Result<std::vector<std::string>> payloads) {
  if (!payloads) {
    log::warn("step={} payloads not read, attempt={}: {}", step_->command.step.value,
              step_->attempts, payloads.error().message);
    if (payload::is_waited_for(payloads.error(), step_->unanswered_since, cx.now()))
      step_->attempts = 0;
    else if (step_->attempts >= kPayloadAttemptsMax)
      return fail(cx, payloads.error());
    return later(cx, kPayloadRetryDelay, [this](actor::Context& then) { pull(then); });
  }
  step_->pulled = cx.now();
  if (!record(cx, *payloads)) return;
  const Result<TrainBatch> batch = make_train_batch(step_->command, *std::move(payloads));
  if (!batch) return fail(cx, batch.error());
  note("train", cx.now());
  Result<TrainedStep> result = trainer_->train(*batch);
  note("idle", cx.now());
  if (!result) return fail(cx, result.error());
  // NativeTrainer has already taken its time; FakeTrainer's step takes virtual time from here on.
  const Duration wait = result->then_wait;
  if (wait == Duration{}) return trained(cx, *std::move(result));
  later(cx, wait,
        [this, result = *std::move(result)](actor::Context& then) { trained(then, result); });
}

// LE-5. False: it waits for room on the disk, or fail() has handled a failure.
bool LearnerActor::record(actor::Context& cx, const std::vector<std::string>& payloads) {
  if (!config_.recorder) return true;
  const messages::TrainStep& step = step_->command;
  note("record", cx.now());
  const auto kept = write_again([&] { return config_.recorder->keep(step, payloads); },
                                "record_again", step.step);
  note("idle", cx.now());
  if (kept) {
    go_on(cx);
    step_->recorded = *kept;
    return true;
  }
  if (waits_for_disk(kept.error())) {
    if (wait_for_room(cx, kept.error()))
      later(cx, kRoomEvery, [this, payloads](actor::Context& then) { pulled(then, payloads); });
  } else {
    fail(cx, kept.error());
  }
  return false;
}

bool LearnerActor::wait_for_room(actor::Context& cx, const Error& error) {
  if (!waits_since_) waits_since_ = cx.now();
  if (cx.now() - *waits_since_ >= kRoomWaitMax) {
    Error lasts = error;
    lasts.code = ErrorCode::kInvalid;  // it would meet the restarted learner too
    fail(cx, lasts);
    return false;
  }
  if (waits_) return true;
  log::warn("event=waits_for_room actor={} step={} where=\"{}\" error=\"{}\"", config_.self.name,
            trainer_->step().value, error.where, error.message);
  waits_ = messages::LearnerWaits{config_.self, error.message + " (" + error.where + ")"};
  outbox_.send(cx, *waits_);
  return true;
}

void LearnerActor::go_on(actor::Context& cx) {
  waits_since_.reset();
  if (!waits_) return;
  waits_.reset();
  outbox_.send(cx, messages::LearnerWaits{config_.self, {}});
}

void LearnerActor::trained(actor::Context& cx, TrainedStep result) {
  const Step& step = *step_;
  messages::StepCommitted committed{.from = config_.self,
                                    .step = step.command.step,
                                    .checksum = result.checksum,
                                    .publication = {},
                                    .report = std::move(result.report)};
  if (step.recorded) {
    committed.report.recorded_bytes = step.recorded->bytes;
    committed.report.recorded_from = step.recorded->from;
  }
  committed.report.seconds_wait_payload = seconds(step.pulled - step.began);
  committed.report.seconds_update = seconds(cx.now() - step.pulled);
  if (!step.command.publish) return commit(cx, std::move(committed));
  publish(cx, PolicyVersion{step.command.step.value + 1}, trainer_->weights(),  // LE-1
          step.command.retain,
          [this, committed = std::move(committed)](actor::Context& then,
                                                   const messages::Publication& publication) {
            messages::StepCommitted published = committed;
            published.report.seconds_publish = publication.seconds;
            published.publication = publication;
            published.probe = trainer_->probe();
            commit(then, std::move(published));
          });
}

void LearnerActor::commit(actor::Context& cx, messages::StepCommitted committed) {
  if (log::worth_a_line(++trained_))
    log::info("event=trained actor={} step={} groups={} published={} update_seconds={:.3f}",
              config_.self.name, committed.step.value, step_->command.groups.size(),
              step_->command.publish, committed.report.seconds_update);
  step_.reset();
  committed_ = committed;
  outbox_.send(cx, std::move(committed));
}

void LearnerActor::handle(actor::Context& cx, messages::SaveCheckpoint command) {
  commanded_ = true;
  if (disk_waits_) return deferred_.push_back(std::move(command));
  if (step_ || command.step != trainer_->step())
    return fail(cx, Error{.message = "asked to save step " + std::to_string(command.step.value) +
                                     " while at step " + std::to_string(trainer_->step().value)});
  trainer_->keep(std::move(command.keep));
  save(cx, [this](actor::Context& then) { outbox_.send(then, *saved_); });
}

void LearnerActor::publish(actor::Context& cx, PolicyVersion version,
                           std::span<const std::byte> weights, PolicyVersion retain,
                           OnPublished then) {
  publisher_->retain(retain);
  // With a longer timeout the publisher may wait for longer than work may be still.
  const bool watched = config_.publish_timeout <= scheduler::kHungAfterInSave / 3;
  if (watched) note("publish", cx.now());
  const Result<weights::PublishStats> stats =
      publisher_->publish(version, weights, config_.publish_timeout);
  if (watched) note("idle", cx.now());
  if (stats) {
    const messages::Publication publication{.version = version,
                                            .oldest_retained = retain,
                                            .checksum = stats->checksum,
                                            .bytes = stats->bytes,
                                            .seconds = stats->seconds,
                                            .broadcast = stats->broadcast,
                                            .offered = publisher_->offered()};
    return disk_serves(cx, [&](actor::Context& now) { then(now, publication); });
  }
  if (!waits_for_disk(stats.error())) return fail(cx, stats.error());
  if (!wait_for_room(cx, stats.error())) return;
  disk_waits_ = true;
  later(cx, kRoomEvery,
        [=, this](actor::Context& again) { publish(again, version, weights, retain, then); });
}

void LearnerActor::save(actor::Context& cx, actor::Turn then) {
  note("save", cx.now());
  const auto write = [this]() -> Result<SavedCheckpoint> {
    if (config_.recorder)
      if (const auto synced = config_.recorder->sync(); !synced) return synced.error();
    return trainer_->save();
  };
  const auto result = write_again(write, "save_again", trainer_->step());
  note("idle", cx.now());
  if (result) return saved(cx, *result, then);
  const Error& error = result.error();
  if (!waits_for_disk(error)) return fail(cx, error);
  if (!wait_for_room(cx, error)) return;
  disk_waits_ = true;
  later(cx, kRoomEvery, [this, then](actor::Context& again) { save(again, then); });
}

void LearnerActor::saved(actor::Context& cx, const SavedCheckpoint& checkpoint,
                         const actor::Turn& then) {
  log::info("event=checkpoint_saved actor={} step={} directory=\"{}\"", config_.self.name,
            checkpoint.step.value, checkpoint.directory);
  saved_ = messages::CheckpointSaved{config_.self, checkpoint.step, checkpoint.directory,
                                     checkpoint.weights_sha256};
  disk_serves(cx, then);
}

void LearnerActor::disk_serves(actor::Context& cx, const actor::Turn& then) {
  disk_waits_ = false;
  go_on(cx);
  then(cx);
  // What comes next may have to wait in its turn.
  while (!disk_waits_ && !deferred_.empty()) {
    auto command = std::move(deferred_.front());
    deferred_.pop_front();
    std::visit([&](auto& deferred) { handle(cx, std::move(deferred)); }, command);
  }
}

void LearnerActor::fail(actor::Context& cx, const Error& error) {
  const std::string message =
      error.where.empty() ? error.message : error.message + " (" + error.where + ")";
  log::error("event=learner_failed actor={} step={} error=\"{}\"", config_.self.name,
             trainer_->step().value, message);
  if (error.code == ErrorCode::kInvalid || error.code == ErrorCode::kInfeasible)
    outbox_.send(cx, *(failed_ = messages::LearnerFailed{config_.self, message}));
  else
    cx.fail(error);
}

void LearnerActor::note(const char* phase, Time now) const {
  if (config_.progress) config_.progress(phase, now);
}

void LearnerActor::later(actor::Context& cx, Duration delay, actor::Turn turn) {
  cx.after(delay, [this, meeting = meeting_, turn = std::move(turn)](actor::Context& then) {
    if (meeting == meeting_) turn(then);
  });
}

}  // namespace tandem::learner
