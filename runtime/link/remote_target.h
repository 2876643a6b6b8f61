// The encoding of typed messages: from a message to a parcel (RemoteTarget), and from a parcel to a
// message (decode_message). Used by remote.h alone.
//
// A parcel is a ParcelHead and then one of
//   [index, body]    a message: which alternative of the Inbox, and its fields; of an Ask<Q> the Q
//   true, value      an answer (true alone where Reply is void)
//   false, error     an answer that is an Error
// Both ends must have the same Inbox, with its alternatives in the same order. Processes of one
// build do: a link refuses all others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "runtime/actor/ref.h"
#include "runtime/link/asks.h"
#include "runtime/wire/codec.h"

namespace tandem::link {

namespace remote_detail {

// Whether M is an Ask<Q>, and of which question and reply.
template <class M>
struct Asked {
  // A message without an answer.
  static constexpr bool kIsAsk = false;
};
template <class Q>
struct Asked<actor::Ask<Q>> {
  static constexpr bool kIsAsk = true;
  using Question = Q;
  // The type of the answer's value, as the question names it.
  using Reply = typename Q::Reply;
};

// An answer as it travels; decode_result() reads it back.
template <class R>
void encode_result(wire::WireWriter& out, const Result<R>& result) {
  out.boolean(result.has_value());
  if (!result) return encode_to(out, result.error());
  if constexpr (!std::is_void_v<R>) encode_to(out, *result);
}

// The answer, or the Error that it carries, or the Error of a body that does not decode. finish()
// makes sure that nothing follows: a longer body is of another type.
template <class R>
Result<R> decode_result(wire::WireReader& in) {
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

// A message for a port from the bytes behind a ParcelHead. Nothing: they do not decode as any
// alternative of the Inbox, and `in` has the Error (RM-1). The ReplyTo of an ask answers through
// `gate`, which it keeps alive.
template <class Inbox, std::size_t... I>
std::optional<Inbox> decode_message(wire::WireReader& in, const std::shared_ptr<AnswerGate>& gate,
                                    std::index_sequence<I...>) {
  std::uint64_t index = 0;
  if (!in.enter_struct("message", 2) || !in.unsigned_integer(index)) return std::nullopt;
  std::optional<Inbox> message;
  // The index is known only when the program runs, so every alternative is tried and all but one
  // return at once.
  const auto one = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    using M = std::variant_alternative_t<i, Inbox>;
    if (i != index) return;
    if constexpr (Asked<M>::kIsAsk) {
      typename Asked<M>::Question question{};
      if (!decode_from(in, question) || !in.finish()) return;
      using R = typename Asked<M>::Reply;
      actor::ReplyTo<R> reply([gate](Result<R> result) {
        gate->answer([&](wire::WireWriter& out) { encode_result(out, result); });
      });
      message.emplace(std::in_place_index<i>, M{std::move(question), std::move(reply)});
    } else {
      M body{};
      if (decode_from(in, body) && in.finish())
        message.emplace(std::in_place_index<i>, std::move(body));
    }
  };
  (one(std::integral_constant<std::size_t, I>{}), ...);
  // An index beyond the Inbox: the peer has another Inbox, or is no peer of ours.
  if (!message && index >= sizeof...(I)) in.fail("no such message");
  return message;
}

// Sends a parcel, and says in the words of a Ref how that ended.
actor::Delivery send_to(const ActorId& to, const ParcelSender& sender, std::string frame);
// kInvalid, with the message's type, its size and the limit in bytes.
Error too_large(const char* type, const ActorId& to, std::uint64_t bytes, std::uint64_t bytes_max);

// The name of a message's type for errors; of an ask that of its question.
template <class M>
const char* wire_name() {
  if constexpr (Asked<M>::kIsAsk) {
    return wire_fields(static_cast<const typename Asked<M>::Question*>(nullptr)).type;
  } else if constexpr (wire::Wired<M>) {
    return wire_fields(static_cast<const M*>(nullptr)).type;
  } else {
    return "a message";
  }
}

// The end of a Ref to an actor elsewhere. Any thread; never blocks.
template <class Inbox>
class RemoteTarget final : public actor::Target<Inbox> {
 public:
  // `to` is encoded into every parcel; `asks` and `sender` are shared with the Directory.
  RemoteTarget(ActorId to, ParcelSender sender, std::shared_ptr<Asks> asks,
               std::uint64_t frame_bytes_max)
      : to_(std::make_shared<const ActorId>(std::move(to))),
        sender_(std::move(sender)),
        asks_(std::move(asks)),
        frame_bytes_max_(frame_bytes_max) {}

  // kFull and kGone are the link's words; kTooLarge is found out here, before anything is sent.
  actor::Delivery post(Inbox message) override {
    const std::size_t index = message.index();
    return std::visit([&](auto& m) { return post_one(index, m); }, message);
  }

  // The bytes that a parcel leaves for the encoding of one message, next to the largest possible
  // head.
  std::uint64_t bytes_max() const override {
    const std::uint64_t head = wire::encode(ParcelHead{.to = *to_}).size() + kBodyHeadBytesMax;
    return frame_bytes_max_ - std::min(frame_bytes_max_, head);
  }

  // Encodes the message once more, only to count its bytes: this is for the words of an error.
  Error too_large(const Inbox& message) const override {
    const ParcelHead head{.to = *to_};
    return std::visit(
        [&]<class M>(const M& m) {
          return remote_detail::too_large(wire_name<M>(), *to_, frame_of(head, 0, m).size(),
                                          frame_bytes_max_);
        },
        message);
  }

 private:
  // Reserved for a parcel. Most messages are small, and are then allocated once.
  static constexpr std::size_t kFrameBytesUsual = 96;
  // More than the numbers of an ask, the index and the array's own head can take, next to
  // `to_`.
  static constexpr std::uint64_t kBodyHeadBytesMax = 32;

  // Head, index and body: the whole parcel.
  template <class M>
  static std::string frame_of(const ParcelHead& head, std::size_t index, const M& message) {
    std::string frame;
    frame.reserve(kFrameBytesUsual);
    wire::WireWriter out(frame);
    encode_to(out, head);
    out.array(2);
    out.unsigned_integer(index);
    if constexpr (Asked<M>::kIsAsk) {
      encode_to(out, message.question);
    } else {
      encode_to(out, message);
    }
    return frame;
  }

  template <class M>
  actor::Delivery post_one(std::size_t index, M& message) {
    ParcelHead head{.to = *to_};
    if constexpr (Asked<M>::kIsAsk) {
      using R = typename Asked<M>::Reply;
      // The ask waits before it is sent, because its answer may come on another thread at once.
      head.ask =
          asks_->await(to_, {message.reply.state(), [](void* who, auto answer) {
                               static_cast<actor::Answerable<R>*>(who)->answer(
                                   answer ? decode_result<R>(**answer) : Result<R>(answer.error()));
                             }});
    }
    std::string frame = frame_of(head, index, message);
    const actor::Delivery delivery = frame.size() > frame_bytes_max_
                                         ? actor::Delivery::kTooLarge
                                         : send_to(*to_, sender_, std::move(frame));
    // The message was not sent: the caller of tell() learns that, and the asker from the caller.
    if (head.ask != 0 && delivery != actor::Delivery::kAccepted) asks_->forget(head.ask);
    return delivery;
  }

  // Shared with the asks that wait for this actor.
  const std::shared_ptr<const ActorId> to_;
  const ParcelSender sender_;
  const std::shared_ptr<Asks> asks_;
  const std::uint64_t frame_bytes_max_;
};

}  // namespace remote_detail

}  // namespace tandem::link
