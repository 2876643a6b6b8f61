// The actor of one job's exchange: it passes the messages of its peers to the core, which decides
// (exchange_core.h), and carries the core's effects out. The actor owns the messages on their way;
// it borrows the run's files, the payload store and the links.
//
// After any number of messages the core decides once; the actor journals, and then sends, in this
// order (EX-1): no work leaves where the journal cannot be written. While the disk is full the run
// stands still: it says so, takes what comes in, sends nothing, and goes on once there is room.
#pragma once

#include <concepts>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/exchange/effects.h"
#include "actors/exchange/exchange_config.h"
#include "actors/exchange/exchange_core.h"
#include "actors/exchange/run_record.h"
#include "actors/exchange/waiting_writes.h"
#include "actors/messages/payload.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/link/outbox.h"

namespace tandem::exchange {

struct Begin {};  // from whoever made it, before its peers can reach it

class Exchange {
 public:
  using Inbox = messages::Joined<
      messages::PeerEvents,
      std::variant<messages::ActorDown, messages::ActorSilent, messages::DrainActor,
                   messages::EndJob, Begin, actor::Ask<messages::GetExchangeReport>,
                   actor::Ask<messages::GetGroups>>>::type;

  // Both references must stay valid as long as the exchange exists.
  Exchange(ExchangeConfig config, ExchangeLinks links, RunRecord& record,
           PayloadStore& payload_store);
  // Follows, at `now`, an exchange that has died.
  Exchange(ExchangeConfig config, ExchangeLinks links, RunRecord& record,
           PayloadStore& payload_store, Predecessor before, Time now);

  template <std::convertible_to<ExchangeInput> Message>
  void handle(actor::Context& cx, Message message) {
    step(cx, std::move(message));
  }
  void handle(actor::Context& cx, messages::Generated generated);
  void handle(actor::Context& cx, messages::EndJob end);
  void handle(actor::Context& cx, Begin);
  void handle(actor::Context& cx, actor::Ask<messages::GetExchangeReport> ask);
  void handle(actor::Context& cx, actor::Ask<messages::GetGroups> ask);

  const ExchangeCore& core() const { return core_; }
  // Writes wait for room on the disk: the state is ahead of the journal.
  bool stands_still() const { return writes_.any(); }

 private:
  void step(actor::Context& cx, ExchangeInput input);
  void wake(actor::Context& cx);  // decides once the waiting messages are handled
  void decide(actor::Context& cx);
  void retry(actor::Context& cx);
  void tell_controller(actor::Context& cx);
  void flush_to_controller(actor::Context& cx);
  void say(actor::Context& cx, std::string message, messages::EventLevel level);

  template <class Peer>
  void carry_out(actor::Context& cx, To<Peer> effect);
  void carry_out(actor::Context& cx, Notify effect);
  void carry_out(actor::Context& cx, const Refuse& effect);
  void carry_out(actor::Context& cx, DecideSoon);
  void carry_out(actor::Context& cx, DecideAt effect);
  void carry_out(actor::Context& cx, WakeAtDeadline effect);
  void carry_out(actor::Context& cx, Journal effect);
  void carry_out(actor::Context& cx, const WriteMetrics& effect);
  void carry_out(actor::Context& cx, const WriteSample& effect);
  void carry_out(actor::Context& cx, const WriteStepSamples& effect);
  void carry_out(actor::Context& cx, const WriteFailureSample& effect);
  void carry_out(actor::Context& cx, const NameBest& effect);
  void carry_out(actor::Context& cx, const ReleasePayload& effect);
  void carry_out(actor::Context& cx, const ReleaseWritten& effect);
  void carry_out(actor::Context& cx, SettlePayloads);
  void carry_out(actor::Context& cx, ReadHistory);
  void carry_out(actor::Context& cx, const TakeUpRun& effect);
  void carry_out(actor::Context& cx, EndRun effect);

  // Writes to the run's files, or waits for room to do so.
  void keep(actor::Context& cx, const WaitingWrites::Write& write, const WaitingWrites::Then& then);
  void look_for_room(actor::Context& cx);
  void give_up_room(actor::Context& cx);
  // Ends the job where a file of the run could not be written.
  void expect_kept(actor::Context& cx, const Result<void>& kept);
  void keep_sample(actor::Context& cx, const std::string& line);
  // Writes a line; the core hears `at_limit` where the file has just reached its limit.
  void keep_line(actor::Context& cx, std::function<Result<bool>()> write, ExchangeInput at_limit);
  std::optional<messages::GroupPayload> read(const wire::PayloadRef& payload);
  bool wrote(const ActorId& from, const wire::PayloadRef& payload);
  bool holds(const ActorId& from, const wire::PayloadRef& payload);

  const ExchangeLinks links_;
  RunRecord& record_;
  PayloadStore& payload_store_;
  ExchangeCore core_;
  WaitingWrites writes_;
  bool room_due_ = false;       // the run stands still: a timer is set, or its turn is under way
  link::Outbox outgoing_;       // to ranks
  link::Outbox to_controller_;  // messages for which the controller's mailbox had no room
  std::vector<messages::ExchangeNotices> notices_;  // wait for the journal
  std::set<wire::PayloadRef> released_;             // wait for the journal as well
  bool decide_due_ = false;                         // a timer is set
  bool retry_due_ = false;                          // likewise
};

static_assert(actor::Actor<Exchange>);

}  // namespace tandem::exchange
