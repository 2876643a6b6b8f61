// The learner actor runs in rank 0 of the gang, the only rank with a mailbox. It pulls the payloads
// of a step, lets the Trainer train, publishes the new version, and reports to the exchange. The
// Trainer has the arithmetic; the exchange decides what is trained, and when.
//
// Training runs inside a handler, so the mailbox waits for as long as a step takes. Messages that
// must not wait, such as orders about broadcasts, have an actor of their own (actors/broadcast).
//
// Invariants
//   LE-1  A step is reported (StepCommitted) after its version was published, if it was to be.
//   LE-2  The checkpoint of step 0 is durable before WarmStarted is sent: a restart never repeats
//         the warm start.
//   LE-3  Events reach the exchange in the order in which they happened; none is lost.
//   LE-4  An exchange that follows another one hears the newest answers again, and where the
//         learner stands.
//   LE-5  Where batches are recorded, that of a step is kept before the step is trained, and all
//         are on the disk before a checkpoint is.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/learner/trainer.h"
#include "actors/messages/learner.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/link/outbox.h"
#include "runtime/payload/payload_io.h"
#include "runtime/weights/weight_ends.h"

namespace tandem::learner {

// Starts the conversation: the trainer restores its newest checkpoint, and LearnerUp is sent. This
// message comes from actors/main once the exchange can be reached. If it comes again, the learner
// returns to its checkpoint, from which the exchange repeats the batches.
struct MeetExchange {};

// Another exchange follows the one that has died: the learner goes on where it stands.
struct MeetAgain {};

struct RecordedBatches {  // all that the run has kept
  std::uint64_t bytes = 0;
  std::optional<StepId> from;  // the first one's step, once older ones have gone for room
};

// Keeps each batch as it came, before it is trained, so that the run can be trained again.
struct BatchRecorder {
  // Keeps the batch of a step.
  std::function<Result<RecordedBatches>(const messages::TrainStep& step,
                                        const std::vector<std::string>& payloads)>
      keep;
  // Waits until the disk has all of them: a checkpoint must not outlive the batches before it.
  std::function<Result<void>()> sync;
};

struct LearnerActorConfig {
  ActorId self;
  Duration publish_timeout = std::chrono::seconds(30);
  // Called when the actor begins a phase ("idle", "train", "warm_start", "save", "publish"), for
  // the progress that heartbeats carry. May be empty.
  std::function<void(const char* phase, Time now)> progress = {};
  std::optional<BatchRecorder> recorder = {};  // set where the job records its batches
};

inline constexpr int kPayloadAttemptsMax = 5;  // to read the payloads of one step
inline constexpr int kSaveAttempts = 3;  // attempts at one checkpoint or record, one after another
inline constexpr Duration kPayloadRetryDelay = std::chrono::milliseconds(200);
inline constexpr Duration kOutboxRetryDelay = std::chrono::milliseconds(20);
// The least time between two WarmStartProgress without a new measurement.
inline constexpr Duration kWarmStartReportEvery = std::chrono::milliseconds(250);

class LearnerActor {
 public:
  using Inbox = std::variant<MeetExchange, MeetAgain, messages::PublishInitial, messages::WarmStart,
                             messages::TrainStep, messages::SaveCheckpoint>;

  // `publisher` is shared because the broadcast actor may lead its broadcasts.
  LearnerActor(LearnerActorConfig config, std::unique_ptr<Trainer> trainer,
               std::shared_ptr<weights::WeightPublisher> publisher,
               payload::PayloadReader read_payloads, actor::Ref<messages::LearnerEvents> exchange);
  ~LearnerActor();  // logs what it did

  void handle(actor::Context& cx, MeetExchange meet);
  void handle(actor::Context& cx, MeetAgain meet);
  void handle(actor::Context& cx, messages::PublishInitial publish);
  void handle(actor::Context& cx, messages::WarmStart warm_start);
  void handle(actor::Context& cx, messages::TrainStep step);
  void handle(actor::Context& cx, messages::SaveCheckpoint save);

 private:
  // The TrainStep under way.
  struct Step {
    messages::TrainStep command;
    Time began, pulled;
    int attempts = 0;
    std::optional<Time> unanswered_since = {};
    std::optional<RecordedBatches> recorded = {};
  };

  using OnPublished = std::function<void(actor::Context&, const messages::Publication&)>;

  void pull(actor::Context& cx);
  void pulled(actor::Context& cx, Result<std::vector<std::string>> payloads);
  bool record(actor::Context& cx, const std::vector<std::string>& payloads);
  void trained(actor::Context& cx, TrainedStep result);
  void warm_start_slice(actor::Context& cx);
  void finish_warm_start(actor::Context& cx, const WarmStartSlice& last);
  void commit(actor::Context& cx, messages::StepCommitted committed);
  void publish_from(actor::Context& cx, PolicyVersion version, PolicyVersion newest,
                    PolicyVersion retain);
  // `then` comes once the version is published, which may take room on the disk that is not there
  // yet. It does not come after a failure, which fail() has handled.
  void publish(actor::Context& cx, PolicyVersion version, std::span<const std::byte> weights,
               PolicyVersion retain, OnPublished then);
  // The same for a checkpoint, which is then saved_.
  void save(actor::Context& cx, actor::Turn then);
  void saved(actor::Context& cx, const SavedCheckpoint& checkpoint, const actor::Turn& then);
  // A write that may have waited is done: goes on with `then`, and with what was deferred.
  void disk_serves(actor::Context& cx, const actor::Turn& then);
  // Tells the exchange that the disk cannot be written, or that it can be again. False: it could
  // not for kRoomWaitMax, and fail() has handled that.
  bool wait_for_room(actor::Context& cx, const Error& error);
  void go_on(actor::Context& cx);
  // A permanent error (kInvalid, kInfeasible) becomes LearnerFailed. Any other error ends the
  // actor, so that the gang is started again.
  void fail(actor::Context& cx, const Error& error);
  void note(const char* phase, Time now) const;
  // Works as cx.after, except that the turn is dropped if a MeetExchange comes first. With a delay
  // of 0 the messages that already wait are handled before the turn.
  void later(actor::Context& cx, Duration delay, actor::Turn turn);

  const LearnerActorConfig config_;
  const std::unique_ptr<Trainer> trainer_;
  const std::shared_ptr<weights::WeightPublisher> publisher_;
  const payload::PayloadReader read_payloads_;

  bool restored_ = false;      // there is a checkpoint, so the warm start is done
  std::uint64_t meeting_ = 0;  // which MeetExchange the work under way belongs to
  std::optional<Step> step_;
  // Commands that came while a save or a publication waits for room.
  std::deque<std::variant<messages::PublishInitial, messages::TrainStep, messages::SaveCheckpoint>>
      deferred_;
  bool disk_waits_ = false;
  bool initial_due_ = false;                     // PublishInitial is being answered
  std::optional<messages::LearnerWaits> waits_;  // for room
  std::optional<Time> waits_since_;
  struct {
    bool begun = false;  // it has been asked for
    Time reported{};
    std::optional<messages::WarmStarted> ended;  // LE-4; until training has begun
  } warm_start_;
  std::uint64_t trained_ = 0;  // steps, for the log
  bool commanded_ = false;     // an exchange has heard LearnerUp: it has given a command
  // The newest answers (LE-4).
  std::optional<messages::StepCommitted> committed_;
  std::optional<messages::CheckpointSaved> saved_;
  std::optional<messages::LearnerFailed> failed_;
  link::OutboxTo<messages::LearnerEvents> outbox_;
};

static_assert(actor::Actor<LearnerActor>);

}  // namespace tandem::learner
