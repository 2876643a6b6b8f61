// Forwards parcels between the peers of a link server, which are a star: a peer has no link to
// another one. Peers belong together if the first parts of their names, before the first '/', are
// equal: "job-1/counter/0" and "job-1/board/0". A peer addresses another one by the port name that
// inbox_name() makes, of which the forwarder reads the peer's part only.
//
// An ask travels on under a number of the forwarder's own, whose highest bit tells its answer from
// those to asks of this process. Parcels are not read beyond their heads.
//
//   FP-1  A parcel reaches only peers of its sender's own group, and an answer only the one who
//         asked, and only from the peer that was asked.
//   FP-2  A forwarded ask whose peer is unknown, is at its limit or goes down before its answer
//         ends with an Error that names the actor. Nothing is asked twice.
//   FP-3  At most asks_max asks of one peer are under way; one more ends that peer's oldest.
//
// Not thread-safe: all calls come on the thread of the link, as its callbacks do. A parcel that is
// only told and meets a full queue stays in its sender's link (Offer::kLater).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "runtime/link/asks.h"
#include "runtime/link/link.h"

namespace tandem::link {

// The name of the port by which other processes reach the inbox of an actor. The hash of the
// inbox's schema (runtime/wire/schema.h) is part of it, so that a peer with another idea of the
// messages finds no port instead of being misunderstood.
std::string inbox_name(const std::string& actor, const std::string& schema_hash);

struct ForwarderCounters {
  std::uint64_t forwarded = 0;  // questions, told messages and answers
  std::uint64_t refused = 0;    // FP-2, and told messages for peers that are not up
  std::uint64_t overdue = 0;    // FP-3
  std::uint64_t unasked = 0;    // answers to no ask under way, or from another peer than the asked
};

class Forwarder {
 public:
  using Send = std::function<Sent(const ActorId& to, std::string frame)>;
  static constexpr std::size_t kAsksMax = 8'192;

  explicit Forwarder(Send send, std::size_t asks_max = kAsksMax)
      : send_(std::move(send)), asks_max_(asks_max) {}

  void up(const ActorId& peer);
  void down(const ActorId& peer);
  // Takes a parcel that is for another peer. nullopt: it is for this process (Directory::deliver).
  std::optional<Offer> offer(const ActorId& from, std::string_view frame);
  const ForwarderCounters& counters() const { return counters_; }

 private:
  struct UnderWay {
    ActorId asker;
    std::uint64_t ask = 0;  // the asker's own number
    ActorId asked;
  };
  using Asks = std::map<std::uint64_t, UnderWay>;

  Offer question(const ActorId& from, const ParcelHead& head, std::string_view body);
  void answer(const ActorId& from, const ParcelHead& head, std::string_view body);
  // Tells the asker why its ask ends; a told message is only counted.
  Offer refuse(const ActorId& from, const ParcelHead& head, Error error);
  void send_error(const ActorId& asker, std::uint64_t ask, Error error);
  std::uint64_t remember(const ActorId& from, const ParcelHead& head, const ActorId& asked);
  UnderWay take(Asks::iterator found);

  const Send send_;
  const std::size_t asks_max_;
  std::map<std::string, Incarnation> peers_;  // the peers that are up
  Asks asks_;                                 // by the number under which they travel on
  // The numbers of asks, by asker; no set is empty.
  std::map<ActorId, std::set<std::uint64_t>> asked_by_;
  std::uint64_t last_ = 0;
  ForwarderCounters counters_;
};

}  // namespace tandem::link
