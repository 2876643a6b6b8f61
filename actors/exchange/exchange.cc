// Carries out the effects of an exchange's core.
//
// Messages wait in outgoing_ until decide() has had the core decide and its journal is written
// (EX-1). A message whose link is full is offered again after kRetryAfter; the later messages to
// the same peer wait behind it.
#include "actors/exchange/exchange.h"

#include <type_traits>
#include <utility>

#include "actors/exchange/run_report.h"
#include "actors/exchange/samples.h"
#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/split.h"

namespace tandem::exchange {

namespace {

// Events for people that may wait for room at the controller. Every other notice is of a phase of
// the job, of an actor's drain or of the job's end, hence bounded by what the controller has asked.
constexpr std::size_t kEventsWaitingMax = 1000;

// A message that may be too long for one frame names the list at which it is cut (cut_at, beside
// the message); all other messages are sent whole.
template <class Message>
constexpr std::nullptr_t cut_at(const Message&) {
  return nullptr;
}

template <class Inbox, class Message>
void add(link::Outbox& outgoing, const ActorId& to, const actor::Ref<Inbox>& ref, Message message) {
  if constexpr (std::is_null_pointer_v<decltype(cut_at(message))>) {
    outgoing.add(to, ref, std::move(message));
  } else {
    const auto list = cut_at(message);
    outgoing.add(to, ref, std::move(message), list);
  }
}

// All parts of a batch but the last say that more of it comes.
void add(link::Outbox& outgoing, const ActorId& to,
         const actor::Ref<messages::LearnerInbox>& learner, messages::TrainStep train) {
  auto parts = wire::split(std::move(train), &messages::TrainStep::groups, learner.bytes_max());
  for (messages::TrainStep& part : parts) {
    part.more = &part != &parts.back();
    outgoing.add(to, learner, part);
  }
}

}  // namespace

Exchange::Exchange(ExchangeConfig config, ExchangeLinks links, RunRecord& record,
                   PayloadStore& payload_store)
    : links_(std::move(links)),
      record_(record),
      payload_store_(payload_store),
      core_(std::move(config)) {}

Exchange::Exchange(ExchangeConfig config, ExchangeLinks links, RunRecord& record,
                   PayloadStore& payload_store, Predecessor before, Time now)
    : links_(std::move(links)),
      record_(record),
      payload_store_(payload_store),
      core_(std::move(config), std::move(before), now) {}

// The core decides at once, so that the journal has the beginning of this exchange before anybody
// is told anything. Lines of steps that the journal does not have are written again with those
// steps. A run in its start may have an earlier attempt's lines, which TakeUpRun looks after. One
// that has ended has all its lines, and nothing is left to decide.
void Exchange::handle(actor::Context& cx, Begin) {
  const RunStage stage = core_.state().facts().stage;
  if (stage == RunStage::kEnded)
    step(cx, Decide{});
  else if (stage != RunStage::kStarting)
    expect_kept(cx, record_.rewind_metrics(core_.ledger().next_commit()));
  decide(cx);
}

void Exchange::handle(actor::Context& cx, messages::Generated generated) {
  GroupsGenerated stored{.message = std::move(generated), .payloads = {}};
  for (const messages::GroupHeader& header : stored.message.groups)
    if (holds(stored.message.from, header.payload)) stored.payloads.insert(header.payload);
  step(cx, std::move(stored));
}

// Whoever ends a job does not wait for room: what is not journalled is lost to the run.
void Exchange::handle(actor::Context& cx, messages::EndJob end) {
  step(cx, std::move(end));
  if (writes_.any()) give_up_room(cx);
}

void Exchange::handle(actor::Context& cx, actor::Ask<messages::GetExchangeReport> ask) {
  messages::ExchangeReport report = core_.report(cx.now());
  report.status.journal_write_s = writes_.slowest_s(cx.now());
  if (writes_.any()) {
    const double waited = seconds(cx.now() - writes_.since());
    report.status.disk_full =
        writes_.error().message + " (" + writes_.error().where + "); " + kNothingIsLost;
    report.status.waits.insert(
        report.status.waits.begin(),
        {.who = core_.job(),
         .waits_for =
             lacks_room(writes_.error()) ? "room on the disk" : "a disk that can be written",
         .since_s = waited,
         .deadline_s = seconds(kRoomWaitMax) - waited,
         .detail = *report.status.disk_full});
  }
  ask.reply(std::move(report));
}

void Exchange::handle(actor::Context& cx, actor::Ask<messages::GetGroups> ask) {
  ask.reply(core_.groups(ask.question, cx.now()));
}

void Exchange::step(actor::Context& cx, ExchangeInput input) {
  for (ExchangeEffect& effect : core_.step(std::move(input), cx.now()))
    std::visit([&](auto& what) { carry_out(cx, std::move(what)); }, effect);
}

void Exchange::wake(actor::Context& cx) {
  if (std::exchange(decide_due_, true)) return;
  cx.after(Duration{0}, [this](actor::Context& then) { decide(then); });
}

void Exchange::decide(actor::Context& cx) {
  decide_due_ = false;
  if (writes_.any()) return flush_to_controller(cx);
  if (core_.ended()) return tell_controller(cx);
  step(cx, Decide{});
  if (writes_.any()) return;
  for (const wire::PayloadRef& payload : std::exchange(released_, {}))
    payload_store_.release(payload);
  // flush() drops messages to a peer that died; ActorDown for that peer is on its way.
  const Result<bool> some_wait = outgoing_.flush();
  if (!some_wait) step(cx, SendFailed{some_wait.error().message});
  if (some_wait && *some_wait) retry(cx);
  tell_controller(cx);
  step(cx, MessagesSent{});
}

void Exchange::retry(actor::Context& cx) {
  if (std::exchange(retry_due_, true)) return;
  cx.after(link::kRetryAfter, [this](actor::Context& then) {
    retry_due_ = false;
    wake(then);
  });
}

// The controller's mailbox also holds the messages of ranks and agents, so it may be full. A notice
// is kept in its order until it is taken, also after the job's end: no other message tells of it.
void Exchange::tell_controller(actor::Context& cx) {
  for (messages::ExchangeNotices& notice : std::exchange(notices_, {})) {
    const auto* event = std::get_if<messages::ExchangeEvent>(&notice);
    if (event && to_controller_.size() >= kEventsWaitingMax)
      log::error("event=dropped job={} reason=\"the controller's mailbox is full\" message=\"{}\"",
                 core_.job(), event->message);
    else
      to_controller_.add(links_.controller.address(), links_.controller, std::move(notice));
  }
  flush_to_controller(cx);
}

void Exchange::flush_to_controller(actor::Context& cx) {
  const Result<bool> some_wait = to_controller_.flush();
  CHECK(some_wait.has_value());  // a mailbox of this process takes messages of any size
  if (*some_wait) retry(cx);
}

template <class Peer>
void Exchange::carry_out(actor::Context&, To<Peer> effect) {
  const auto peer = std::get<Dial<Peer>>(links_.dials)(effect.to);
  std::visit([&](auto& message) { add(outgoing_, effect.to, peer, std::move(message)); },
             effect.message);
}

void Exchange::carry_out(actor::Context&, Notify effect) {
  notices_.push_back(std::move(effect.notice));
}

void Exchange::carry_out(actor::Context&, const Refuse& effect) {
  links_.refuse(effect.who, effect.why);
}

void Exchange::carry_out(actor::Context& cx, DecideSoon) { wake(cx); }

void Exchange::carry_out(actor::Context& cx, DecideAt effect) {
  cx.after(effect.at - cx.now(), [this](actor::Context& then) { wake(then); });
}

void Exchange::carry_out(actor::Context& cx, WakeAtDeadline effect) {
  cx.after(effect.at - cx.now(), [this](actor::Context& then) { step(then, DeadlineCame{}); });
}

// Passes by the notices, which wait for the journal.
void Exchange::say(actor::Context& cx, std::string message, messages::EventLevel level) {
  to_controller_.add(links_.controller.address(), links_.controller,
                     messages::ExchangeNotices(messages::ExchangeEvent{core_.job(), core_.job(),
                                                                       std::move(message), level}));
  flush_to_controller(cx);
}

void Exchange::keep(actor::Context& cx, const WaitingWrites::Write& write,
                    const WaitingWrites::Then& then) {
  writes_.add(cx, write, then);
  if (!writes_.any() || std::exchange(room_due_, true)) return;
  const Error& error = writes_.error();
  log::warn("event=disk_full job={} where=\"{}\" message=\"{}\"", core_.job(), error.where,
            error.message);
  say(cx,
      std::string("stands still, and goes on once ") + awaited_of_disk(error) + ": " +
          error.message + " (" + error.where + ")",
      messages::EventLevel::kError);
  cx.after(kRoomEvery, [this](actor::Context& then_cx) { look_for_room(then_cx); });
}

void Exchange::look_for_room(actor::Context& cx) {
  if (!writes_.any()) return;  // they were given up
  const Duration waited = cx.now() - writes_.since();
  const std::string mended = lacks_room(writes_.error()) ? "there is room on the disk again"
                                                         : awaited_of_disk(writes_.error());
  writes_.retry(cx);
  if (writes_.any() && waited >= kRoomWaitMax) return give_up_room(cx);
  if (writes_.any()) {
    cx.after(kRoomEvery, [this](actor::Context& then) { look_for_room(then); });
    return;
  }
  room_due_ = false;
  say(cx,
      mended + ": goes on after " + std::to_string(static_cast<std::int64_t>(seconds(waited))) +
          " s",
      messages::EventLevel::kInfo);
  wake(cx);
}

void Exchange::give_up_room(actor::Context& cx) {
  writes_.give_up(cx);
  room_due_ = false;
  wake(cx);
}

void Exchange::carry_out(actor::Context& cx, Journal effect) {
  keep(
      cx,
      [this, effect = std::move(effect)]() -> Result<void> {
        if (const auto kept = record_.journal(effect.events, effect.durability); !kept) return kept;
        if (effect.image) record_.keep_image(*effect.image);
        return {};
      },
      [this](actor::Context& then, const Result<void>& kept) {
        if (kept || core_.ended()) return;
        outgoing_.clear();
        step(then, JournalFailed{kept.error().message});
      });
}

void Exchange::expect_kept(actor::Context& cx, const Result<void>& kept) {
  if (!kept) step(cx, RecordFailed{kept.error().message});
}

void Exchange::carry_out(actor::Context& cx, const WriteMetrics& effect) {
  keep_line(
      cx, [this, line = effect.line] { return record_.metrics(line); }, MetricsAtLimit{});
}

void Exchange::keep_sample(actor::Context& cx, const std::string& line) {
  keep_line(
      cx, [this, line] { return record_.sample(line); }, SamplesAtLimit{});
}

void Exchange::keep_line(actor::Context& cx, std::function<Result<bool>()> write,
                         ExchangeInput at_limit) {
  const auto reached = std::make_shared<bool>(false);
  keep(
      cx,
      [write = std::move(write), reached]() -> Result<void> {
        const auto kept = write();
        if (!kept) return kept.error();
        *reached = *kept;
        return {};
      },
      [this, reached, at_limit = std::move(at_limit)](actor::Context& then,
                                                      const Result<void>& kept) {
        expect_kept(then, kept);
        if (*reached) step(then, at_limit);
        for (std::string& text : record_.take_warnings()) step(then, RecordWarned{std::move(text)});
      });
}

void Exchange::carry_out(actor::Context& cx, const WriteSample& effect) {
  keep_sample(cx, effect.line);
}

void Exchange::carry_out(actor::Context& cx, const WriteStepSamples& effect) {
  const auto payload = read(effect.payload);
  if (!payload) return;
  for (const std::string& line : sample_lines(effect, *payload)) keep_sample(cx, line);
}

void Exchange::carry_out(actor::Context& cx, const WriteFailureSample& effect) {
  const auto payload = read(effect.payload);
  keep_sample(cx, failure_line(effect, payload ? &*payload : nullptr));
}

void Exchange::carry_out(actor::Context& cx, const NameBest& effect) {
  keep(
      cx, [this, step = effect.step] { return record_.name_best(step); },
      [this](actor::Context& then, const Result<void>& kept) { expect_kept(then, kept); });
}

void Exchange::carry_out(actor::Context& cx, ReadHistory) {
  auto history = record_.history();
  if (!history) return expect_kept(cx, history.error());
  step(cx, HistoryRead{*std::move(history)});
}

void Exchange::carry_out(actor::Context& cx, const TakeUpRun& effect) {
  if (const auto kept = record_.take_up(effect.job_yaml); !kept) return expect_kept(cx, kept);
  if (const auto done = record_.rewind_metrics(effect.checkpoint); !done)
    return expect_kept(cx, done);
  step(cx, RunTakenUp{});
}

void Exchange::carry_out(actor::Context& cx, EndRun effect) {
  const auto run = std::make_shared<EndRun>(std::move(effect));
  keep(
      cx,
      [this, run] {
        return run->result && !record_.has_result() ? record_.result(*run->result) : Result<void>{};
      },
      [this, run](actor::Context&, const Result<void>& written) {
        if (!written && run->ended.outcome == messages::JobOutcome::kSucceeded) {
          run->ended.outcome = messages::JobOutcome::kFailed;
          run->ended.reason = written.error().message;
        }
        for (std::string& text : record_.take_warnings())
          notices_.push_back(messages::ExchangeEvent{core_.job(), core_.job(), std::move(text),
                                                     messages::EventLevel::kWarning});
        notices_.push_back(std::move(run->ended));
      });
}

// An exchange that follows this one may need the payload, if the journal does not have the reason.
// While the journal waits for room an answer may come again, and be refused once more.
void Exchange::carry_out(actor::Context&, const ReleasePayload& effect) {
  released_.insert(effect.payload);
}

void Exchange::carry_out(actor::Context&, SettlePayloads) { payload_store_.settle(); }

void Exchange::carry_out(actor::Context&, const ReleaseWritten& effect) {
  for (const wire::PayloadRef& payload : effect.payloads)
    if (payload_store_.holds(payload) && wrote(effect.writer, payload)) released_.insert(payload);
}

// A payload may have been stored while the exchange before lived, which did not hear of it.
bool Exchange::holds(const ActorId& from, const wire::PayloadRef& payload) {
  if (payload_store_.holds(payload)) return true;
  if (!payload_store_.recover(payload)) return false;
  if (wrote(from, payload)) return true;
  payload_store_.release(payload);
  return false;
}

// A payload says itself for which lease it was made. Where the sender holds that lease no other
// honest rank wrote it; where it does not, the payload may be another's whose message is on its
// way.
bool Exchange::wrote(const ActorId& from, const wire::PayloadRef& payload) {
  const auto group = read(payload);
  const auto* record = group ? core_.ledger().find(group->group) : nullptr;
  return record && record->lease && record->lease->id.value == group->attempt &&
         record->lease->holder == from.incarnation;
}

// Returns nothing where the bytes lie on another node, or nowhere, as in a simulation.
std::optional<messages::GroupPayload> Exchange::read(const wire::PayloadRef& payload) {
  const auto bytes = payload_store_.read(payload);
  if (!bytes) return std::nullopt;
  auto group = wire::decode<messages::GroupPayload>(*bytes);
  if (!group) return std::nullopt;
  return std::move(*group);
}

}  // namespace tandem::exchange
