// How typed actors meet a link. A Directory holds the ports of this process that peers may write
// to, and makes Refs to actors elsewhere: telling such a Ref encodes the message into a parcel, a
// frame of the link, and the Directory at the other end decodes it and posts it to the port.
//
//   server: on_parcel = [&](const PeerId& from, std::string& frame) {
//             return directory.deliver(frame, to_peer(server, from)); }
//   client: on_parcel = [&](const PeerId&, std::string& frame) {
//             return directory.deliver(frame, to_server(client)); }
//   on_down = directory.fail_asks(peer.name, down.error);
//
// Asks cross too: an alternative Ask<Q> of an Inbox travels as Q under a number, and its ReplyTo's
// answer travels back. An ask whose peer goes down ends with that Error; one whose answer is lost
// ends by the asker's own deadline.
//
// Threading: any thread; deliver() on the link's. A full mailbox leaves the parcel in the link
// (Offer::kLater), whose credit slows the sender down.
//
// RM-1  Bytes from a peer never crash: an unknown port or a body that does not decode is counted,
//       logged, and answered with an Error if it was an ask.
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
#include <type_traits>
#include <utility>
#include <variant>

#include "runtime/actor/ref.h"
#include "runtime/net/asks.h"
#include "runtime/net/link.h"
#include "runtime/wire/codec.h"

namespace tandem::runtime {

ParcelSender to_server(LinkClient& link);  // the link must outlive the sender
ParcelSender to_peer(LinkServer& link, PeerId peer);

struct RemoteCounters {
  std::uint64_t unknown_ports = 0, undecodable = 0;
  std::uint64_t answers_lost = 0;     // the link would not take them
  std::uint64_t answers_unasked = 0;  // late, after the ask had ended
};

namespace remote_detail {

template <class M>
struct Asked {
  static constexpr bool kIsAsk = false;
};
template <class Q>
struct Asked<Ask<Q>> {
  static constexpr bool kIsAsk = true;
  using Question = Q;
  using Reply = typename Q::Reply;
};

template <class R>
void encode_result(WireWriter& out, const Result<R>& result) {
  out.boolean(result.has_value());
  if (!result) return encode_to(out, result.error());
  if constexpr (!std::is_void_v<R>) encode_to(out, *result);
}

template <class R>
Result<R> decode_result(WireReader& in) {
  bool has_value = false;
  if (!in.boolean(has_value)) return in.error();
  if (!has_value) {
    Error error;
    return decode_from(in, error) && in.finish() ? error : in.error();
  }
  if constexpr (std::is_void_v<R>) {
    return in.finish() ? Result<void>() : in.error();
  } else {
    R value{};
    if (!decode_from(in, value) || !in.finish()) return in.error();
    return value;
  }
}

// A message for a port from the bytes behind a ParcelHead: [index, body].
template <class Inbox, std::size_t... I>
std::optional<Inbox> decode_message(WireReader& in, const std::shared_ptr<AnswerGate>& gate,
                                    std::index_sequence<I...>) {
  std::uint64_t index = 0;
  if (!in.enter_struct("message", 2) || !in.unsigned_integer(index)) return std::nullopt;
  std::optional<Inbox> message;
  const auto one = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    using M = std::variant_alternative_t<i, Inbox>;
    if (i != index) return;
    if constexpr (Asked<M>::kIsAsk) {
      typename Asked<M>::Question question{};
      if (!decode_from(in, question) || !in.finish()) return;
      using R = typename Asked<M>::Reply;
      ReplyTo<R> reply([gate](Result<R> result) {
        gate->answer([&](WireWriter& out) { encode_result(out, result); });
      });
      message.emplace(std::in_place_index<i>, M{std::move(question), std::move(reply)});
    } else {
      M body{};
      if (decode_from(in, body) && in.finish())
        message.emplace(std::in_place_index<i>, std::move(body));
    }
  };
  (one(std::integral_constant<std::size_t, I>{}), ...);
  if (!message && index >= sizeof...(I)) in.fail("no such message");
  return message;
}

Delivery send_to(const Address& to, const ParcelSender& sender, std::string frame);

template <class Inbox>
class RemoteTarget final : public Target<Inbox> {
 public:
  RemoteTarget(Address to, ParcelSender sender, std::shared_ptr<Asks> asks)
      : to_(std::move(to)), sender_(std::move(sender)), asks_(std::move(asks)) {}

  Delivery post(Inbox message) override {
    const std::size_t index = message.index();
    return std::visit([&](auto& m) { return post_one(index, m); }, message);
  }

 private:
  template <class M>
  Delivery post_one(std::size_t index, M& message) {
    ParcelHead head{.to = to_};
    if constexpr (Asked<M>::kIsAsk) {
      using R = typename Asked<M>::Reply;
      head.ask = asks_->await(to_.name, [reply = message.reply](Result<WireReader*> answer) {
        reply(answer ? decode_result<R>(**answer) : Result<R>(answer.error()));
      });
    }
    std::string frame = encode(head);
    WireWriter out(frame);
    out.array(2);
    out.unsigned_integer(index);
    if constexpr (Asked<M>::kIsAsk) {
      encode_to(out, message.question);
    } else {
      encode_to(out, message);
    }
    const Delivery delivery = send_to(to_, sender_, std::move(frame));
    if (head.ask != 0 && delivery != Delivery::kAccepted) asks_->forget(head.ask);
    return delivery;
  }

  const Address to_;
  const ParcelSender sender_;
  const std::shared_ptr<Asks> asks_;
};

}  // namespace remote_detail

class Directory {
 public:
  Directory();

  // Peers reach `port` as `name`; a second of that name takes its place. A parcel to another
  // incarnation than port.address()'s is refused.
  template <class Inbox>
  void expose(const std::string& name, Ref<Inbox> port) {
    const Incarnation incarnation = port.address().incarnation;
    add(name, {incarnation,
               [port](WireReader& body, const std::shared_ptr<remote_detail::AnswerGate>& gate) {
                 auto message = remote_detail::decode_message<Inbox>(
                     body, gate, std::make_index_sequence<std::variant_size_v<Inbox>>());
                 std::optional<Delivery> delivery;
                 if (message) delivery = port.tell(std::move(*message));
                 return delivery;
               }});
  }
  void withdraw(const std::string& name);

  template <class Inbox>
  Ref<Inbox> remote(Address to, ParcelSender sender) {
    return Ref<Inbox>(
        to, std::make_shared<remote_detail::RemoteTarget<Inbox>>(to, std::move(sender), asks_));
  }

  // Takes a parcel from a link; `back` is the way back to its sender.
  Offer deliver(std::string_view frame, const ParcelSender& back);

  void fail_asks(const std::string& to, const Error& error);  // those to this name
  void fail_asks(const Error& error);                         // all
  RemoteCounters counters() const;

 private:
  // Nothing: the body did not decode, and the reader says why.
  using Post = std::function<std::optional<Delivery>(
      WireReader& body, const std::shared_ptr<remote_detail::AnswerGate>& gate)>;
  struct Port {
    Incarnation incarnation;
    Post post;
  };
  void add(const std::string& name, Port port);
  Offer deliver_to_port(const ParcelHead& head, WireReader& body, const ParcelSender& back);
  void refuse(const ParcelHead& head, const ParcelSender& back, Error error);

  const std::shared_ptr<remote_detail::Asks> asks_;
  const std::shared_ptr<std::atomic<std::uint64_t>> answers_lost_;
  mutable std::mutex mutex_;
  std::map<std::string, Port> ports_;  // guarded by mutex_, as is:
  RemoteCounters counters_;
};

}  // namespace tandem::runtime
