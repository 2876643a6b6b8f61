#include "runtime/link/forwarder.h"

#include <utility>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/link/remote_target.h"
#include "runtime/wire/codec.h"

namespace tandem::link {
namespace {

constexpr std::uint64_t kForwarded = std::uint64_t{1} << 63;  // in the numbers of forwarded asks
constexpr const char* kInboxMark = " (inbox ";

std::string group_of(const std::string& name) { return name.substr(0, name.find('/')); }

std::string peer_of(const std::string& port) { return port.substr(0, port.find(kInboxMark)); }

std::string frame_of(const ParcelHead& head, std::string_view body) {
  std::string frame;
  wire::WireWriter out(frame);
  encode_to(out, head);
  return frame.append(body);
}

Error unreachable(const std::string& actor, const char* why) {
  return {ErrorCode::kUnreachable, actor + why};
}

}  // namespace

std::string inbox_name(const std::string& actor, const std::string& schema_hash) {
  return actor + kInboxMark + schema_hash + ")";
}

void Forwarder::up(const ActorId& peer) { peers_[peer.name] = peer.incarnation; }

void Forwarder::down(const ActorId& peer) {
  const auto known = peers_.find(peer.name);
  if (known != peers_.end() && known->second == peer.incarnation) peers_.erase(known);
  std::vector<UnderWay> unanswered;
  for (auto it = asks_.begin(); it != asks_.end();) {
    const auto next = std::next(it);
    if (it->second.asked == peer || it->second.asker == peer) unanswered.push_back(take(it));
    it = next;
  }
  for (const UnderWay& ask : unanswered)
    if (ask.asker != peer)
      send_error(ask.asker, ask.ask, unreachable(peer.name, " ended before it answered"));
}

std::optional<Offer> Forwarder::offer(const ActorId& from, std::string_view frame) {
  wire::WireReader in(frame, {});
  ParcelHead head;
  if (!decode_from(in, head)) return std::nullopt;  // RM-1 is the Directory's
  if ((head.answers & kForwarded) != 0) {
    answer(from, head, in.rest());
    return Offer::kTaken;
  }
  const bool between_peers = head.answers == 0 && head.to.name.find('/') != std::string::npos &&
                             group_of(head.to.name) == group_of(from.name);
  if (!between_peers) return std::nullopt;
  return question(from, head, in.rest());
}

Offer Forwarder::question(const ActorId& from, const ParcelHead& head, std::string_view body) {
  const std::string actor = peer_of(head.to.name);
  const auto peer = peers_.find(actor);
  if (peer == peers_.end()) return refuse(from, head, unreachable(actor, " is not running"));
  const ActorId to{actor, peer->second};
  ParcelHead onward{.to = head.to};
  if (head.ask != 0) onward.ask = remember(from, head, to);
  const Sent sent = send_(to, frame_of(onward, body));
  if (sent == Sent::kAccepted) {
    ++counters_.forwarded;
    return Offer::kTaken;
  }
  if (onward.ask != 0) take(asks_.find(onward.ask));
  switch (sent) {
    case Sent::kFull:
      if (head.ask == 0) return Offer::kLater;
      return refuse(from, head, unreachable(actor, " is at its limit"));
    case Sent::kTooLarge:
      return refuse(from, head,
                    {ErrorCode::kInvalid, actor + " was asked more than its link can carry"});
    case Sent::kGone:
    case Sent::kAccepted:
      break;
  }
  return refuse(from, head, unreachable(actor, " is gone"));
}

void Forwarder::answer(const ActorId& from, const ParcelHead& head, std::string_view body) {
  const auto found = asks_.find(head.answers);
  if (found == asks_.end() || found->second.asked != from) {
    ++counters_.unasked;
    return;
  }
  const UnderWay ask = take(found);
  // An answer that the asker's link does not take is lost; the asker's deadline ends the ask.
  if (send_(ask.asker, frame_of({.answers = ask.ask}, body)) == Sent::kAccepted)
    ++counters_.forwarded;
  else
    log::warn("event=answer_lost from={} to={}", from.name, ask.asker.name);
}

Offer Forwarder::refuse(const ActorId& from, const ParcelHead& head, Error error) {
  if (log::worth_a_line(++counters_.refused))
    log::warn("event=parcel_refused from={} ask={} reason=\"{}\" refused={}", from.name, head.ask,
              error.message, counters_.refused);
  if (head.ask != 0) send_error(from, head.ask, std::move(error));
  return Offer::kTaken;
}

void Forwarder::send_error(const ActorId& asker, std::uint64_t ask, Error error) {
  std::string frame;
  wire::WireWriter out(frame);
  encode_to(out, ParcelHead{.answers = ask});
  remote_detail::encode_result(out, Result<void>(std::move(error)));
  (void)send_(asker, std::move(frame));
}

std::uint64_t Forwarder::remember(const ActorId& from, const ParcelHead& head,
                                  const ActorId& asked) {
  const auto open = asked_by_.find(from);
  if (open != asked_by_.end() && open->second.size() >= asks_max_) {
    // Numbers grow, so the first one is the oldest.
    const UnderWay oldest = take(asks_.find(*open->second.begin()));
    if (log::worth_a_line(++counters_.overdue))
      log::warn("event=asks_at_limit from={} limit={} overdue={}", from.name, asks_max_,
                counters_.overdue);
    send_error(from, oldest.ask,
               {ErrorCode::kTimedOut, "asked " + oldest.asked.name + " and had no answer when " +
                                          std::to_string(asks_max_) + " later asks waited"});
  }
  const std::uint64_t number = kForwarded | ++last_;
  asks_.emplace(number, UnderWay{from, head.ask, asked});
  asked_by_[from].insert(number);
  return number;
}

Forwarder::UnderWay Forwarder::take(Asks::iterator found) {
  const auto of_asker = asked_by_.find(found->second.asker);
  of_asker->second.erase(found->first);
  if (of_asker->second.empty()) asked_by_.erase(of_asker);
  UnderWay taken = std::move(found->second);
  asks_.erase(found);
  return taken;
}

}  // namespace tandem::link
