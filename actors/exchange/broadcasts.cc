// Every message is checked against the epochs that its sender was asked into (BC-1), then told to
// the group. A message of an incarnation that is over, or of an epoch that its sender has left, is
// dropped without a word: it was sent before its sender could know. A message that no order of
// events explains is answered with a reason, and the exchange ends the peer.
//
// The group's orders have epoch numbers and ranks; the unique id and the layout that a JoinEpoch
// needs are looked up here. Which epochs formed and which failed is read from the orders and the
// group's answers, once per epoch, so that no peer can flood the event log (BC-2).
#include "actors/exchange/broadcasts.h"

#include <algorithm>
#include <utility>

#include "actors/messages/roles.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "scheduler/fleet/wait_end.h"

namespace tandem::exchange {

namespace {

constexpr std::size_t kWordsBytesMax = 1024;  // a longer message of a rank is cut
// An epoch that was in use for this long has worked: a failure after it begins a new row.
constexpr Duration kWorked = std::chrono::minutes(1);
constexpr double kUnderWayShown_s = 1;  // shorter operations are not shown to the user

std::string text(std::uint64_t number) { return std::to_string(number); }

// "rollout/1" of "job-1/rollout/1".
std::string short_name(const std::string& actor) {
  for (const messages::Role& role : messages::kTrainingRoles)
    if (const auto at = actor.rfind(std::string("/") + name(role) + "/"); at != std::string::npos)
      return actor.substr(at + 1);
  return actor;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

bool is_power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

// The place of an operation in its epoch. Operations of sequence 0 differ by their labels.
using OperationKey = std::pair<std::uint64_t, std::string>;

OperationKey key_of(const messages::EpochOperation& operation) {
  return {operation.sequence, operation.label};
}

bool is_under_way(const messages::EpochOperation& operation) {
  return operation.state == messages::EpochOperationState::kEntered ||
         operation.state == messages::EpochOperationState::kStarted;
}

// The report says how long at the time of the report; the time since then is added.
double under_way_for(const RankOperations& rank, const messages::EpochOperation& operation,
                     Time now) {
  return static_cast<double>(operation.since_ms) / 1000 + seconds(now - rank.at);
}

const messages::EpochOperation* find_operation(const RankOperations& rank,
                                               const OperationKey& key) {
  for (const messages::EpochOperation& operation : rank.operations)
    if (key_of(operation) == key) return &operation;
  return nullptr;
}

std::string words_of(const OperationKey& key) {
  const auto& [sequence, label] = key;
  if (label.empty()) return "operation " + text(sequence);
  return sequence == 0 ? label : "the broadcast of " + label;
}

// The oldest operation that some rank has been within for longer than a second.
std::optional<OperationKey> oldest_under_way(const std::vector<RankOperations>& ranks, Time now) {
  std::optional<OperationKey> oldest;
  for (const RankOperations& rank : ranks)
    for (const messages::EpochOperation& operation : rank.operations)
      if (is_under_way(operation) && under_way_for(rank, operation, now) > kUnderWayShown_s &&
          (!oldest || key_of(operation) < *oldest))
        oldest = key_of(operation);
  return oldest;
}

// True for a rank that is at a later operation: it may have dropped this one from its list.
bool is_past(const RankOperations& rank, const OperationKey& key) {
  return !rank.operations.empty() && rank.operations.back().sequence > key.first;
}

}  // namespace

std::vector<messages::Wait> waits_within(const std::vector<RankOperations>& ranks,
                                         Duration operation_max, Time now) {
  const auto key = oldest_under_way(ranks, now);
  if (!key) return {};
  // A rank that has not entered the operation; `silent` if it has reported nothing at all.
  struct Missing {
    std::string actor;
    bool silent = false;
  };
  std::vector<Missing> missing;
  std::vector<std::string> inside, inside_short;
  double since_s = 0;
  for (const RankOperations& rank : ranks) {
    const messages::EpochOperation* const operation = find_operation(rank, *key);
    if (operation && is_under_way(*operation)) {
      inside.push_back(rank.actor);
      inside_short.push_back(short_name(rank.actor));
      since_s = std::max(since_s, under_way_for(rank, *operation, now));
    } else if (operation ? operation->state == messages::EpochOperationState::kQueued
                         : !is_past(rank, *key)) {
      missing.push_back({rank.actor, rank.operations.empty()});
    }
  }
  const std::string operation = words_of(*key);
  const std::string entered = list_of(inside_short) + " entered " +
                              std::to_string(static_cast<std::int64_t>(since_s)) + " s ago";
  const double left_s = std::max(0.0, seconds(operation_max) - since_s);
  std::vector<messages::Wait> waits;
  for (const auto& [actor, silent] : missing)
    waits.push_back({.who = inside.front(),
                     .waits_for = actor + " to enter " + operation,
                     .since_s = since_s,
                     .deadline_s = left_s,
                     .detail = short_name(actor) +
                               (silent ? " has not said that it entered " : " has not entered ") +
                               operation + ", which " + entered});
  if (missing.empty())
    waits.push_back({.who = inside.front(),
                     .waits_for = "the end of " + operation,
                     .since_s = since_s,
                     .deadline_s = left_s,
                     .detail = "no rank is outside it; " + entered});
  return waits;
}

Broadcasts::Broadcasts(std::string job, const scheduler::BroadcastLimits& limits,
                       std::uint64_t epoch_last)
    : job_(std::move(job)),
      former_last_(epoch_last),
      operation_max_(limits.forming_max),
      group_(limits, epoch_last),
      used_last_(epoch_last) {}

std::optional<std::string> Broadcasts::take(const messages::BroadcastEvents& event, Time now) {
  if (const auto* up = std::get_if<messages::BroadcastUp>(&event)) return come_up(*up, now);
  return std::visit(
      [&](const auto& message) -> std::optional<std::string> {
        if constexpr (std::is_same_v<std::decay_t<decltype(message)>, messages::BroadcastUp>) {
          return std::nullopt;
        } else {
          if (message.epoch > 0 && message.epoch <= former_last_) return std::nullopt;  // BC-1
          const auto peer = peers_.find(message.from.name);
          // A message of an unknown or newer incarnation should have followed its BroadcastUp.
          if (peer == peers_.end() || peer->second.incarnation < message.from.incarnation)
            return "epoch " + text(message.epoch) + ": it never said that it takes part";
          // A message of an older incarnation is late.
          if (peer->second.incarnation != message.from.incarnation) return std::nullopt;
          if (message.epoch == 0 || message.epoch > peer->second.asked_last)
            return "epoch " + text(message.epoch) + ", into which it was never asked";
          if (!peer->second.asked.contains(message.epoch)) return std::nullopt;  // BC-1
          return answer(peer->second, message, now);
        }
      },
      event);
}

// A rank may send BroadcastUp twice to one exchange, where exchanges follow one another quickly. It
// is in none of the epochs of which it has heard by then, and answers where it is told to leave.
void Broadcasts::come_up_again(Peer& peer, const messages::BroadcastUp& up, Time now) {
  for (const auto& [epoch, told_to_leave] : peer.asked)
    if (!told_to_leave)
      (void)answer(peer, messages::EpochFailed{up.from, epoch, "it met another exchange"}, now);
}

std::optional<std::string> Broadcasts::come_up(const messages::BroadcastUp& up, Time now) {
  const auto known = peers_.find(up.from.name);
  if (known != peers_.end() && known->second.incarnation == up.from.incarnation) {
    come_up_again(known->second, up, now);
    return std::nullopt;
  }
  if (known != peers_.end() && up.from.incarnation < known->second.incarnation) return std::nullopt;
  // The message of a new incarnation may come before the news of the old one's end.
  if (known != peers_.end()) gone({up.from.name, known->second.incarnation});
  const bool learner = up.from.name.starts_with(job_ + "/" + name(messages::Role::kLearner) + "/");
  Peer peer;
  peer.incarnation = up.from.incarnation;
  peer.learner = learner;
  peers_[up.from.name] = std::move(peer);
  if (learner)
    group_.learner_up(up.from, up.nccl_version);
  else
    group_.member_up(up.from, up.nccl_version);
  return std::nullopt;
}

std::optional<std::string> Broadcasts::answer(Peer& peer, const messages::EpochOpened& opened,
                                              Time) {
  Epoch& epoch = epochs_.at(opened.epoch);
  if (!peer.learner || epoch.opened)
    return "EpochOpened: epoch " + text(opened.epoch) + ", which it was not asked to open";
  epoch.opened = opened;
  group_.opened(opened.from, opened.epoch);
  return std::nullopt;
}

std::optional<std::string> Broadcasts::answer(Peer&, const messages::EpochJoined& joined, Time) {
  if (!epochs_.at(joined.epoch).opened)
    return "EpochJoined: epoch " + text(joined.epoch) + ", which is not open";
  group_.joined(joined.from, joined.epoch);
  return std::nullopt;
}

std::optional<std::string> Broadcasts::answer(Peer& peer, const messages::EpochInUse& used,
                                              Time now) {
  if (!peer.learner || !epochs_.at(used.epoch).told_to_use)
    return "EpochInUse: epoch " + text(used.epoch) + ", which it was not told to use";
  group_.in_use(used.from, used.epoch);
  note_use(now);
  return std::nullopt;
}

std::optional<std::string> Broadcasts::answer(Peer&, const messages::EpochFailed& failed,
                                              Time now) {
  const std::string why =
      short_name(failed.from.name) + ": " + cut_utf8(failed.message, kWordsBytesMax);
  Epoch& epoch = epochs_.at(failed.epoch);
  // The first failure is the cause; the other ranks fail because of that one.
  if (epoch.failure.empty()) epoch.failure = why;
  group_.failed(failed.from, failed.epoch, why, now);
  return std::nullopt;
}

std::optional<std::string> Broadcasts::answer(Peer& peer, const messages::EpochLeft& left, Time) {
  if (!peer.asked.at(left.epoch))
    return "EpochLeft: epoch " + text(left.epoch) + ", which it was not told to leave";
  peer.asked.erase(left.epoch);
  if (peer.progress.epoch == left.epoch) peer.progress = {};
  group_.left(left.from, left.epoch);
  forget_empty_epochs();
  return std::nullopt;
}

std::optional<std::string> Broadcasts::answer(Peer& peer, const messages::EpochProgress& progress,
                                              Time now) {
  peer.progress = progress;
  for (messages::EpochOperation& operation : peer.progress.operations)
    operation.label = cut_utf8(operation.label, kWordsBytesMax);
  peer.reported = now;
  return std::nullopt;
}

void Broadcasts::gone(const ActorId& who) {
  const auto peer = peers_.find(who.name);
  if (peer == peers_.end() || peer->second.incarnation > who.incarnation) return;
  peers_.erase(peer);
  group_.gone(who.name);
  forget_empty_epochs();
}

void Broadcasts::leaves(const ActorId& who) {
  const auto peer = peers_.find(who.name);
  if (peer != peers_.end() && peer->second.incarnation == who.incarnation) group_.leaves(who.name);
}

// An epoch is kept until every peer that was asked into it has left or is gone.
void Broadcasts::forget_empty_epochs() {
  std::erase_if(epochs_, [&](const auto& epoch) {
    return std::ranges::none_of(
        peers_, [&](const auto& peer) { return peer.second.asked.contains(epoch.first); });
  });
}

std::vector<Broadcasts::Message> Broadcasts::decide(Time now) {
  std::vector<Message> messages;
  for (const scheduler::BroadcastOrder& order : group_.decide(now))
    messages.push_back(std::visit([&](const auto& one) { return carry_out(one, now); }, order));
  note_use(now);
  return messages;
}

// Notes that the peer was asked, which is what makes its later messages about the epoch valid
// (BC-1).
Broadcasts::Peer& Broadcasts::ask_into(const ActorId& to, std::uint64_t epoch) {
  Peer& peer = peers_.at(to.name);
  CHECK(peer.incarnation == to.incarnation);  // BG-5
  peer.asked[epoch] = false;
  peer.asked_last = std::max(peer.asked_last, epoch);
  return peer;
}

Broadcasts::Message Broadcasts::carry_out(const scheduler::OpenOrder& order, Time) {
  ask_into(order.to, order.epoch);
  CHECK(epochs_.emplace(order.epoch, Epoch{}).second);  // BG-1
  return {order.to, messages::OpenEpoch{order.epoch, order.size}};
}

Broadcasts::Message Broadcasts::carry_out(const scheduler::JoinOrder& order, Time) {
  ask_into(order.to, order.epoch);
  const auto& opened = epochs_.at(order.epoch).opened;
  CHECK(opened.has_value());
  return {order.to, messages::JoinEpoch{.epoch = order.epoch,
                                        .unique_id = opened->unique_id,
                                        .rank = order.rank,
                                        .size = order.size,
                                        .layout_hash = opened->layout_hash,
                                        .layout = opened->layout}};
}

Broadcasts::Message Broadcasts::carry_out(const scheduler::UseOrder& order, Time) {
  // From this moment the learner may broadcast in this epoch.
  epochs_.at(order.epoch).told_to_use = true;
  used_last_ = std::max(used_last_, order.epoch);
  return {order.to, messages::UseEpoch{order.epoch}};
}

Broadcasts::Message Broadcasts::carry_out(const scheduler::LeaveOrder& order, Time now) {
  Peer& peer = peers_.at(order.to.name);
  CHECK(peer.incarnation == order.to.incarnation);          // BG-5
  CHECK(!std::exchange(peer.asked.at(order.epoch), true));  // BG-3
  note_end(order.epoch, order.why, now);
  return {order.to, messages::LeaveEpoch{order.epoch, order.why}};
}

bool Broadcasts::takes_part(const ActorId& rollout, std::uint64_t epoch) const {
  return group_.takes_part(rollout, epoch);
}

void Broadcasts::note_use(Time now) {
  const auto epoch = group_.epoch_in_use();
  if (epoch == in_use_) return;
  in_use_ = epoch;
  if (!epoch) return;
  const auto known = epochs_.find(*epoch);
  CHECK(known != epochs_.end());
  known->second.in_use = now;
  std::vector<std::string> outside;
  std::size_t ranks = 0;
  for (const auto& [actor, peer] : peers_) {
    // The learner is a rank of each epoch too.
    const bool inside = peer.asked.contains(*epoch);
    ranks += inside ? 1 : 0;
    if (!inside) outside.push_back(short_name(actor));
  }
  if (!is_power_of_two(failures_in_row_)) return;  // BC-2; 0 counts as one
  std::string line = "weights are broadcast to " + text(ranks - 1) +
                     (ranks == 2 ? " rollout" : " rollouts") + ", in epoch " + text(*epoch);
  if (!outside.empty()) line += ", without " + cut_utf8(list_of(outside), kWordsBytesMax);
  if (failures_in_row_ > 0) line += ", after " + text(failures_in_row_) + " failures in a row";
  news_.push_back({std::move(line), messages::EventLevel::kInfo});
}

// Counts and tells the end of an epoch, once. An epoch that its successor replaced has not failed.
void Broadcasts::note_end(std::uint64_t number, const std::string& why, Time now) {
  Epoch& epoch = epochs_.at(number);
  if (std::exchange(epoch.over, true)) return;
  if (const auto used = group_.epoch_in_use(); used && *used > number) return;
  const bool worked = epoch.in_use && now - *epoch.in_use >= kWorked;
  failures_in_row_ = worked ? 1 : failures_in_row_ + 1;
  ++failures_;
  if (!is_power_of_two(failures_in_row_)) return;  // BC-2
  std::string line = "broadcast epoch " + text(number) +
                     (epoch.in_use ? " ended: " : " did not form: ") +
                     (epoch.failure.empty() ? cut_utf8(why, kWordsBytesMax) : epoch.failure);
  if (failures_in_row_ > 1) line += "; that is failure " + text(failures_in_row_) + " in a row";
  news_.push_back({std::move(line), messages::EventLevel::kWarning});
}

std::vector<Broadcasts::News> Broadcasts::take_news() { return std::exchange(news_, {}); }

bool Broadcasts::everybody_takes_part() const {
  const auto epoch = group_.epoch_in_use();
  return std::ranges::all_of(peers_, [&](const auto& peer) {
    return peer.second.learner ||
           (epoch && group_.takes_part({peer.first, peer.second.incarnation}, *epoch));
  });
}

std::vector<messages::Wait> Broadcasts::waits(Time now) const {
  std::vector<messages::Wait> waits;
  for (const auto& [number, epoch] : epochs_) {
    std::vector<RankOperations> ranks;
    for (const auto& [actor, peer] : peers_) {
      if (!peer.asked.contains(number)) continue;
      RankOperations rank{.actor = actor, .operations = {}, .at = peer.reported};
      if (peer.progress.epoch == number) rank.operations = peer.progress.operations;
      ranks.push_back(std::move(rank));
    }
    const auto within = waits_within(ranks, operation_max_, now);
    waits.insert(waits.end(), within.begin(), within.end());
  }
  // Only then is there nothing to explain.
  if (everybody_takes_part()) return waits;
  for (std::string& line : group_.explain(now)) {
    // A line of the group is about the actor with the longest name in it, as rollout/1 is part of
    // rollout/12; about the job where no name is.
    std::string who = job_;  // or the actor with the longest name that the line has
    for (const auto& [actor, peer] : peers_)
      if (line.find(actor) != std::string::npos && actor.size() > (who == job_ ? 0 : who.size()))
        who = actor;
    waits.push_back({.who = std::move(who),
                     .waits_for = "its place in the broadcasts",
                     .since_s = 0,
                     .deadline_s = {},
                     .detail = std::move(line),
                     .ended_by = words(scheduler::EndedBy::kNotHeld)});
  }
  // The last line tells of the epoch that forms, or of the next try, if there is a time for it.
  if (const auto next = next_deadline(); next && *next > now)
    waits.back().deadline_s = seconds(*next - now);
  return waits;
}

}  // namespace tandem::exchange
