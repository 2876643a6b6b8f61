// The learner actor: rank 0 of the gang, the only one with a mailbox. It pulls the payloads of a
// step, lets the Trainer train, publishes the new version, and reports to the exchange. The
// arithmetic is the Trainer's; what is trained, and when, is the exchange's decision.
//
// Invariants
//   LE-1  A step is reported (StepCommitted) after its version was published, if it was to be.
//   LE-2  The checkpoint of step 0 is durable before WarmStarted is sent: a restart never repeats
//         the warm start.
//   LE-3  Events reach the exchange in the order in which they happened; none is lost.
#pragma once

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
#include "runtime/actor/outbox.h"
#include "runtime/net/payload_io.h"
#include "runtime/weights/weights.h"

namespace tandem::actors {

// Starts the conversation: the trainer restores its newest checkpoint and LearnerUp goes out. Sent
// by main once the exchange can be reached, and again when a restarted exchange has to be met anew:
// the learner then returns to its checkpoint, from which that exchange repeats the batches.
struct MeetExchange {};

struct LearnerActorConfig {
  Sender self;
  Duration publish_timeout = std::chrono::seconds(30);
  // Told what the actor is at ("idle", "train", "warm_start", "save"); may be empty.
  std::function<void(const char* phase, Time now)> progress = {};
};

inline constexpr int kPayloadAttemptsMax = 5;
inline constexpr int kSaveAttempts = 3;
inline constexpr Duration kPayloadRetryDelay = std::chrono::milliseconds(200);
inline constexpr Duration kOutboxRetryDelay = std::chrono::milliseconds(20);
inline constexpr Duration kWarmStartReportEvery = std::chrono::milliseconds(250);

class LearnerActor {
 public:
  using Inbox = std::variant<MeetExchange, PublishInitial, WarmStart, TrainStep, SaveCheckpoint>;

  // The publisher's broadcasts may be led by another actor, which then shares it.
  LearnerActor(LearnerActorConfig config, std::unique_ptr<Trainer> trainer,
               std::shared_ptr<runtime::WeightPublisher> publisher,
               runtime::PayloadReader read_payloads, runtime::Ref<LearnerEvents> exchange);
  ~LearnerActor();  // logs what it did

  void handle(runtime::Context& cx, MeetExchange meet);
  void handle(runtime::Context& cx, PublishInitial publish);
  void handle(runtime::Context& cx, WarmStart warm_start);
  void handle(runtime::Context& cx, TrainStep step);
  void handle(runtime::Context& cx, SaveCheckpoint save);

 private:
  struct Step {  // the TrainStep under way
    TrainStep command;
    Time began, pulled;
    int attempts = 0;
  };

  void pull(runtime::Context& cx);
  void pulled(runtime::Context& cx, Result<std::vector<std::string>> payloads);
  void trained(runtime::Context& cx, TrainedStep result);
  void warm_start_slice(runtime::Context& cx);
  void finish_warm_start(runtime::Context& cx, const WarmStartSlice& last);
  std::optional<Publication> publish(runtime::Context& cx, PolicyVersion version,
                                     std::span<const std::byte> weights, PolicyVersion retain);
  std::optional<CheckpointSaved> save(runtime::Context& cx);
  // A permanent error becomes LearnerFailed; any other one ends the actor, so that the gang is
  // started again.
  void fail(runtime::Context& cx, const Error& error);
  void note(const char* phase, Time now) const;
  // As cx.after, but not into another meeting. A delay of 0 lets waiting messages in first.
  void later(runtime::Context& cx, Duration delay, runtime::Turn turn);

  const LearnerActorConfig config_;
  const std::unique_ptr<Trainer> trainer_;
  const std::shared_ptr<runtime::WeightPublisher> publisher_;
  const runtime::PayloadReader read_payloads_;

  bool restored_ = false;      // there is a checkpoint: the warm start is behind
  std::uint64_t meeting_ = 0;  // which MeetExchange the work under way belongs to
  std::optional<Step> step_;
  Time warm_start_reported_{};
  std::uint64_t trained_ = 0;  // steps, for the log
  runtime::Outbox<LearnerEvents> outbox_;
};

static_assert(runtime::Actor<LearnerActor>);

}  // namespace tandem::actors
