// The actor of one job's exchange: it passes the messages of its peers to the core, which decides
// (exchange_core.h), and carries the core's effects out. The actor owns the messages on their way;
// it borrows the run's files, the payload store and the links.
//
// After any number of messages the core decides once; the actor journals, and then sends, in this
// order (EX-J): no work leaves where the journal cannot be written.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/exchange/effects.h"
#include "actors/exchange/exchange_config.h"
#include "actors/exchange/exchange_core.h"
#include "actors/exchange/outgoing.h"
#include "actors/exchange/run_record.h"
#include "actors/messages/payload.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"

namespace tandem::actors {

class Exchange {
 public:
  using Inbox =
      std::variant<RolloutUp, Installed, Generated, Unservable, Evaluated, RolloutStats, RewardUp,
                   GroupsScored, TextsScored, RewardTrouble, LearnerUp, Published,
                   WarmStartProgress, WarmStarted, StepCommitted, CheckpointSaved, LearnerFailed,
                   BroadcastUp, EpochOpened, EpochJoined, EpochInUse, EpochFailed, EpochLeft,
                   EpochProgress, ActorDown, DrainActor, EndJob, runtime::Ask<GetExchangeReport>,
                   runtime::Ask<GetGroups>>;

  // Both references must stay valid as long as the exchange exists.
  Exchange(ExchangeConfig config, ExchangeLinks links, RunRecord& record,
           PayloadStore& payload_store);

  template <std::convertible_to<ExchangeInput> Message>
  void handle(runtime::Context& cx, Message message) {
    step(cx, std::move(message));
  }
  void handle(runtime::Context& cx, Generated generated);
  void handle(runtime::Context& cx, runtime::Ask<GetExchangeReport> ask);
  void handle(runtime::Context& cx, runtime::Ask<GetGroups> ask);

  const ExchangeCore& core() const { return core_; }

 private:
  void step(runtime::Context& cx, ExchangeInput input);
  void wake(runtime::Context& cx);  // decides once the waiting messages are handled
  void decide(runtime::Context& cx);
  void retry(runtime::Context& cx);
  void tell_controller(runtime::Context& cx);

  void carry_out(runtime::Context& cx, ToRollout effect);
  void carry_out(runtime::Context& cx, ToReward effect);
  void carry_out(runtime::Context& cx, ToLearner effect);
  void carry_out(runtime::Context& cx, ToBroadcast effect);
  void carry_out(runtime::Context& cx, Notify effect);
  void carry_out(runtime::Context& cx, const Refuse& effect);
  void carry_out(runtime::Context& cx, DecideSoon);
  void carry_out(runtime::Context& cx, DecideAt effect);
  void carry_out(runtime::Context& cx, WakeAtDeadline effect);
  void carry_out(runtime::Context& cx, Journal effect);
  void carry_out(runtime::Context& cx, const WriteMetrics& effect);
  void carry_out(runtime::Context& cx, const WriteSample& effect);
  void carry_out(runtime::Context& cx, const WriteStepSamples& effect);
  void carry_out(runtime::Context& cx, const WriteFailureSample& effect);
  void carry_out(runtime::Context& cx, const NameBest& effect);
  void carry_out(runtime::Context& cx, const ReleasePayload& effect);
  void carry_out(runtime::Context& cx, const ReleaseWritten& effect);
  void carry_out(runtime::Context& cx, ReadHistory);
  void carry_out(runtime::Context& cx, const TakeUpRun& effect);
  void carry_out(runtime::Context& cx, EndRun effect);

  // Ends the job where a file of the run could not be written.
  void expect_kept(runtime::Context& cx, const Result<void>& kept);
  bool keep_sample(runtime::Context& cx, const std::string& line);
  std::optional<GroupPayload> read(const runtime::PayloadRef& payload);
  bool wrote(const Sender& from, const runtime::PayloadRef& payload);

  const ExchangeLinks links_;
  RunRecord& record_;
  PayloadStore& payload_store_;
  ExchangeCore core_;
  OutgoingMessages outgoing_;             // to ranks
  OutgoingMessages to_controller_;        // what its mailbox had no room for is offered again
  std::vector<ExchangeNotices> notices_;  // wait for the journal
  bool decide_due_ = false;               // a timer is set
  bool retry_due_ = false;                // likewise
};

static_assert(runtime::Actor<Exchange>);

}  // namespace tandem::actors
