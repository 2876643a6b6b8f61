// Typed actors on top of a link. A Directory holds the ports of this process to which peers may
// write, and makes Refs to actors elsewhere. Telling such a Ref encodes the message into a parcel,
// a frame of the link; the Directory at the other end decodes it and posts it to the port.
//
//   server: on_parcel = [&](const ActorId& from, std::string& frame) {
//             return directory.deliver(frame, to_peer(server, from)); }
//   client: on_parcel = [&](const ActorId&, std::string& frame) {
//             return directory.deliver(frame, to_server(client)); }
//   on_down = directory.fail_asks(peer.name, down.error);
//
// Asks cross too: an alternative Ask<Q> of an Inbox travels as Q under a number, and its ReplyTo's
// answer travels back. An ask whose peer goes down ends with that Error; one whose answer is lost
// ends by the asker's own deadline.
//
// Threading: any thread; deliver() on the link's. A full mailbox leaves the parcel in the link
// (Offer::kLater), whose credit then slows the sender down.
//
// RM-1  Bytes from a peer never crash: an unknown port or a body that does not decode is counted,
//       logged, and answered with an Error if it was an ask.
// RM-2  A port with a door hears nothing that its door refuses; Offer::kRefused then ends the peer,
//       as it does when a body for such a port does not decode.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "runtime/actor/ref.h"
#include "runtime/link/asks.h"
#include "runtime/link/link.h"
#include "runtime/link/remote_target.h"
#include "runtime/wire/codec.h"

namespace tandem::link {

// A door decides whether `from` may send this message to the port; it is asked on the link's
// thread, before the message is posted. The Error says what is wrong.
template <class Inbox>
using Door = std::function<Result<void>(const ActorId& from, const Inbox&)>;

// Senders over a link, which must outlive them.
ParcelSender to_server(LinkClient& link);
ParcelSender to_peer(LinkServer& link, ActorId peer);

// Parcels and answers that went nowhere, since the Directory was made.
struct RemoteCounters {
  std::uint64_t unknown_ports = 0, undecodable = 0;
  std::uint64_t refused = 0;          // by a port's door
  std::uint64_t answers_lost = 0;     // answers that the link did not accept
  std::uint64_t answers_unasked = 0;  // answers that came after their ask had ended
};

// One per process that has a link. Refs that it made may outlive it: they share its asks.
class Directory {
 public:
  // A Ref refuses a message whose parcel takes more bytes than this (Delivery::kTooLarge).
  explicit Directory(std::uint64_t frame_bytes_max = SessionLimits{}.frame_bytes_max);

  // Peers reach `port` as `name`; a second port of that name takes the place of the first. A parcel
  // for another incarnation than port.address()'s is refused. Without a door every peer may send
  // every message of the Inbox.
  template <class Inbox>
  void expose(const std::string& name, actor::Ref<Inbox> port, Door<Inbox> door = nullptr) {
    const Incarnation incarnation = port.address().incarnation;
    const auto post = [port, door](const ActorId& from, wire::WireReader& body,
                                   const Gate& gate) -> Result<actor::Delivery> {
      auto message = remote_detail::decode_message<Inbox>(
          body, gate, std::make_index_sequence<std::variant_size_v<Inbox>>());
      if (!message) return body.error();
      if (door)
        if (const auto may = door(from, *message); !may) return may.error();
      return port.tell(std::move(*message));
    };
    add(name, {incarnation, post, door != nullptr});
  }
  // Parcels for `name` are refused from now on. One that is being posted may still arrive.
  void withdraw(const std::string& name);

  // A Ref to an actor elsewhere. Nothing is checked here: whether the actor exists shows when the
  // peer answers an ask, or counts an unknown port. `shown` is the actor that errors name, where
  // the name of the port is not one for people.
  template <class Inbox>
  actor::Ref<Inbox> remote(ActorId to, ParcelSender sender, std::optional<ActorId> shown = {}) {
    ActorId named = shown ? std::move(*shown) : to;
    return actor::Ref<Inbox>(std::move(named),
                             std::make_shared<remote_detail::RemoteTarget<Inbox>>(
                                 std::move(to), std::move(sender), asks_, frame_bytes_max_));
  }

  // Takes a parcel from a link. `back` leads to its sender; a door is asked about `from`. The
  // frame is only read, so that the link can offer it again after kLater.
  Offer deliver(std::string_view frame, const ParcelSender& back, const ActorId& from = {});

  // Ends the asks that wait for an actor of this name, or all asks.
  void fail_asks(const std::string& to, const Error& error);
  void fail_asks(const Error& error);
  RemoteCounters counters() const;

 private:
  using Gate = std::shared_ptr<remote_detail::AnswerGate>;
  // Decodes a body and posts the message, a type-erased expose(). An Error: the body did not
  // decode, or the door refused it.
  using Post = std::function<Result<actor::Delivery>(const ActorId& from, wire::WireReader& body,
                                                     const Gate& gate)>;
  struct Port {
    Incarnation incarnation;
    Post post;
    bool guarded = false;  // it has a door
  };
  void add(const std::string& name, Port port);
  Offer deliver_to_port(const ActorId& from, const ParcelHead& head, wire::WireReader& body,
                        const ParcelSender& back);
  void refuse(const ParcelHead& head, const ParcelSender& back, Error error);

  const std::uint64_t frame_bytes_max_;
  const std::shared_ptr<remote_detail::Asks> asks_;
  const std::shared_ptr<std::atomic<std::uint64_t>> answers_lost_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Port>> ports_;  // guarded by mutex_, as is:
  RemoteCounters counters_;
};

}  // namespace tandem::link
