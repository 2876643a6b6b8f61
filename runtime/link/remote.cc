#include "runtime/link/remote.h"

#include "runtime/base/log.h"

namespace tandem::link {

ParcelSender to_server(LinkClient& link) {
  return [&link](std::string frame) { return link.send(std::move(frame)); };
}

ParcelSender to_peer(LinkServer& link, ActorId peer) {
  return [&link, peer = std::move(peer)](std::string frame) {
    return link.send(peer, std::move(frame));
  };
}

namespace remote_detail {

actor::Delivery send_to(const ActorId& to, const ParcelSender& sender, std::string frame) {
  switch (sender(std::move(frame))) {
    case Sent::kAccepted:
      return actor::Delivery::kAccepted;
    case Sent::kFull:
      return actor::Delivery::kFull;
    case Sent::kGone:
      return actor::Delivery::kGone;
    case Sent::kTooLarge:
      log::error("parcel too large to={}", to.name);
      return actor::Delivery::kTooLarge;
  }
  return actor::Delivery::kGone;
}

Error too_large(const char* type, const ActorId& to, std::uint64_t bytes, std::uint64_t bytes_max) {
  return {ErrorCode::kInvalid,
          "a message " + std::string(type) + " takes " + std::to_string(bytes) +
              " bytes, and a link carries at most " + std::to_string(bytes_max) + " at once",
          to.name};
}

}  // namespace remote_detail

Directory::Directory(std::uint64_t frame_bytes_max)
    : frame_bytes_max_(frame_bytes_max),
      asks_(std::make_shared<remote_detail::Asks>()),
      answers_lost_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

void Directory::add(const std::string& name, Port port) {
  const std::lock_guard lock(mutex_);
  ports_.insert_or_assign(name, std::make_shared<const Port>(std::move(port)));
}

void Directory::withdraw(const std::string& name) {
  // Declared before the lock, so that the port ends after the lock's release.
  std::shared_ptr<const Port> port;  // may hold the last reference to an actor: not under the lock
  const std::lock_guard lock(mutex_);
  const auto found = ports_.find(name);
  if (found == ports_.end()) return;
  port = std::move(found->second);
  ports_.erase(found);
}

Offer Directory::deliver(std::string_view frame, const ParcelSender& back, const ActorId& from) {
  wire::WireReader in(frame, {});
  ParcelHead head;
  if (!decode_from(in, head)) {
    // Without a head there is no ask to answer; the refusal is only logged and counted.
    refuse({}, back, in.error());
  } else if (head.answers == 0) {
    return deliver_to_port(from, head, in, back);
  } else if (!asks_->answer(head.answers, in)) {
    const std::lock_guard lock(mutex_);
    ++counters_.answers_unasked;
  }
  return Offer::kTaken;
}

Offer Directory::deliver_to_port(const ActorId& from, const ParcelHead& head,
                                 wire::WireReader& body, const ParcelSender& back) {
  std::shared_ptr<const Port> port;
  {
    const std::lock_guard lock(mutex_);
    const auto found = ports_.find(head.to.name);
    const bool known = found != ports_.end() && (head.to.incarnation == Incarnation{} ||
                                                 head.to.incarnation == found->second->incarnation);
    if (known) port = found->second;
    if (!known) ++counters_.unknown_ports;
  }
  const Error gone{ErrorCode::kUnreachable, head.to.name + " is gone"};
  if (!port) {
    refuse(head, back, gone);
    return Offer::kTaken;
  }
  // The port is used without the lock: a door or a full mailbox may take a while.
  const auto gate = std::make_shared<remote_detail::AnswerGate>(head.ask, back, answers_lost_);
  const Result<actor::Delivery> delivery = port->post(from, body, gate);
  if (!delivery) {
    refuse(head, back, delivery.error());
    // RM-2: a port with a door lets no peer try again; without a door one bad parcel is forgiven.
    if (!port->guarded) return Offer::kTaken;
    const std::lock_guard lock(mutex_);
    ++counters_.refused;
    return Offer::kRefused;
  }
  if (*delivery == actor::Delivery::kFull) {
    return Offer::kLater;
  } else if (*delivery == actor::Delivery::kGone) {
    refuse(head, back, gone);
  } else {
    // The mailbox has the question, so an answer may travel, also one that was given meanwhile.
    gate->open();
  }
  return Offer::kTaken;
}

void Directory::refuse(const ParcelHead& head, const ParcelSender& back, Error error) {
  log::warn("parcel refused to={} ask={} reason=\"{}\"", head.to.name, head.ask, error.message);
  if (error.code == ErrorCode::kInvalid) {
    const std::lock_guard lock(mutex_);
    ++counters_.undecodable;
  }
  if (head.ask == 0) return;
  // The refusal travels as the answer to the ask, so that the asker does not wait for its deadline.
  remote_detail::AnswerGate gate(head.ask, back, answers_lost_);
  gate.open();
  gate.answer([&](wire::WireWriter& out) {
    remote_detail::encode_result(out, Result<void>(std::move(error)));
  });
}

void Directory::fail_asks(const std::string& to, const Error& error) { asks_->fail(to, error); }
void Directory::fail_asks(const Error& error) { asks_->fail(std::nullopt, error); }

RemoteCounters Directory::counters() const {
  const std::lock_guard lock(mutex_);
  RemoteCounters counters = counters_;
  counters.answers_lost = *answers_lost_;
  return counters;
}

}  // namespace tandem::link
