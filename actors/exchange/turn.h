// One step of an exchange's core, as its parts see it: the facts and observations that they read,
// the time, and the three things that they may do: record an event, send an effect, observe.
//
// The parts are functions over a Turn, a file for each part (exchange_core.h lists them). A part
// decides on facts alone, records its decision, and then sends the messages that follow from it.
//
//   EX-1  No message leaves before the journal holds what it follows from.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange/effects.h"
#include "actors/exchange/exchange_config.h"
#include "actors/exchange/observed.h"
#include "actors/exchange/state/durable_state.h"
#include "actors/exchange/worker_role.h"

namespace tandem::exchange {

// The journal of the decisions since the last Decide.
struct JournalDraft {
  std::vector<JournalEvent> events;
  Durability durability = Durability::kKill;
};

// The part of a Turn that changes nothing, for reports and for checks of messages.
struct RunView {
  const ExchangeConfig& config;
  const RunFacts& facts;
  const Observed& seen;
  Time now;
  std::span<const WorkerRole> roles = {};
};

// Lasts for one step; the references outlive it.
class Turn {
 public:
  Turn(const ExchangeConfig& config_now, Time time, DurableState& state, Observed& observed,
       JournalDraft& draft, std::vector<ExchangeEffect>& effects,
       std::span<const WorkerRole> all_roles)
      : config(config_now),
        roles(all_roles),
        now(time),
        facts(state.facts()),
        seen(observed),
        state_(state),
        draft_(draft),
        effects_(effects) {}

  const ExchangeConfig& config;
  const std::span<const WorkerRole> roles;  // that work under leases
  const Time now;
  const RunFacts& facts;  // as of now: record() changes them
  Observed& seen;

  RunView view() const { return {config, facts, seen, now, roles}; }

  void record(JournalEvent event) {
    state_.apply(event);
    seen.history.take(event);
    std::visit([this](const auto& change) { note_move(change); }, event);
    draft_.events.push_back(std::move(event));
  }
  // Records the hash of the facts as they are.
  void record_hash() { record(StateHashed{state_.hash()}); }
  void set_deadline(const scheduler::LeaseKey& lease, Time deadline) {
    state_.set_deadline(lease, deadline);
  }
  // The next Journal is on the disk before a message that follows from it leaves.
  void survive_power_cut() { draft_.durability = Durability::kPowerCut; }

  void send(ExchangeEffect effect) { effects_.push_back(std::move(effect)); }
  template <class Message>
  void tell(const ActorId& to, Message message) {
    send(To<typename messages::PeerThatGets<Message>::type>{to, std::move(message)});
  }
  template <class Message>
  void tell_learner(Message message) {  // it is up
    tell(*facts.learner.who, std::move(message));
  }
  void notify(messages::ExchangeNotices notice) { send(Notify{std::move(notice)}); }
  // One line of `tandem events` about the job, which is in the cluster's journal and in the
  // controller's log; so a part has no log of its own.
  // What is said at another level than kInfo is in result.json as well.
  void say(std::string message, messages::EventLevel level = messages::EventLevel::kInfo) {
    if (level != messages::EventLevel::kInfo) seen.statistics.warnings.take(message);
    notify(messages::ExchangeEvent{config.job, config.job, std::move(message), level});
  }
  void wake() { send(DecideSoon{}); }  // decide, once the waiting messages are handled

 private:
  // Notes the time where the event has put one group into another state.
  template <class Change>
  void note_move(const Change& change) {
    if constexpr (std::is_same_v<Change, LeaseAdopted>) return;
    if constexpr (std::is_same_v<Change, AnswerRefused>)
      if (change.refusal != scheduler::Refusal::kOverAge) return;
    const GroupId* group = nullptr;
    if constexpr (requires { change.header.group; }) group = &change.header.group;
    if constexpr (requires { change.group; }) group = &change.group;
    if (!group) return;
    if (const auto times = seen.groups.find(*group); times != seen.groups.end())
      times->second.moved = now;
  }

  DurableState& state_;
  JournalDraft& draft_;
  std::vector<ExchangeEffect>& effects_;
};

}  // namespace tandem::exchange
