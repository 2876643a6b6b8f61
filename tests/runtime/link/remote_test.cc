// Typed refs across a link: parcels, asks, backpressure, RM-1.
#include "runtime/link/remote.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

#include "tests/runtime/link/bindings.h"
#include "tests/runtime/patience.h"

namespace remote_example {

struct Note {
  std::string text;
};
TANDEM_WIRE(Note, text)

struct Count {
  std::int32_t number = 0;
};
TANDEM_WIRE(Count, number)

struct Halve {
  using Reply = Count;
  std::int32_t number = 0;
};
TANDEM_WIRE(Halve, number)

struct Ping {
  using Reply = void;
};
TANDEM_WIRE_EMPTY(Ping)

using Inbox = std::variant<Note, Count, tandem::actor::Ask<Halve>, tandem::actor::Ask<Ping>>;

}  // namespace remote_example

namespace tandem::link {
namespace {

using namespace remote_example;
using std::chrono::seconds;

// A mailbox without an actor: the test handles its messages.
class Mailbox final : public actor::Target<Inbox> {
 public:
  actor::Delivery post(Inbox message) override {
    const std::lock_guard lock(mutex_);
    if (gone_) return actor::Delivery::kGone;
    if (messages_.size() >= room_) return actor::Delivery::kFull;
    messages_.push_back(std::move(message));
    changed_.notify_all();
    return actor::Delivery::kAccepted;
  }
  std::optional<Inbox> take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return !messages_.empty(); })) return {};
    Inbox message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  void set(std::size_t room, bool gone) {
    const std::lock_guard lock(mutex_);
    room_ = room;
    gone_ = gone;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Inbox> messages_;
  std::size_t room_ = 1000;
  bool gone_ = false;
};

// Two directories joined by queues that the test moves, one parcel at a time.
class Pair {
 public:
  ParcelSender to_there() {
    return [this](std::string frame) {
      if (closed) return Sent::kGone;
      there.push_back(std::move(frame));
      return Sent::kAccepted;
    };
  }
  ParcelSender to_here() {
    return [this](std::string frame) {
      if (closed) return Sent::kGone;
      here.push_back(std::move(frame));
      return Sent::kAccepted;
    };
  }
  Offer move_there() {
    const Offer offer = server.deliver(there.front(), to_here());
    if (offer == Offer::kTaken) there.pop_front();
    return offer;
  }
  Offer move_here() {
    const Offer offer = client.deliver(here.front(), to_there());
    here.pop_front();
    return offer;
  }

  Directory client, server;
  std::deque<std::string> there, here;
  bool closed = false;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  actor::Ref<Inbox> port{{"exchange", {5}}, mailbox};
};

template <class R>
actor::ReplyTo<R> into(std::optional<Result<R>>& slot) {
  return actor::ReplyTo<R>([&slot](Result<R> result) { slot = std::move(result); });
}

TEST(Remote, a_told_message_arrives_as_it_was) {
  Pair pair;
  pair.server.expose("exchange", pair.port);
  const auto ref = pair.client.remote<Inbox>({"exchange", {}}, pair.to_there());
  EXPECT_EQ(ref.tell(Note{"hello"}), actor::Delivery::kAccepted);
  EXPECT_EQ(ref.tell(Count{-7}), actor::Delivery::kAccepted);
  EXPECT_EQ(pair.move_there(), Offer::kTaken);
  EXPECT_EQ(pair.move_there(), Offer::kTaken);
  EXPECT_EQ(std::get<Note>(pair.mailbox->take().value()).text, "hello");
  EXPECT_EQ(std::get<Count>(pair.mailbox->take().value()).number, -7);
}

TEST(Remote, asks_are_answered_with_values_and_errors) {
  Pair pair;
  pair.server.expose("exchange", pair.port);
  const auto ref = pair.client.remote<Inbox>({"exchange", {5}}, pair.to_there());
  std::optional<Result<Count>> halved, odd;
  std::optional<Result<void>> ponged;
  ASSERT_EQ(ref.tell(actor::Ask<Halve>{{8}, into(halved)}), actor::Delivery::kAccepted);
  ASSERT_EQ(ref.tell(actor::Ask<Halve>{{9}, into(odd)}), actor::Delivery::kAccepted);
  ASSERT_EQ(ref.tell(actor::Ask<Ping>{{}, into(ponged)}), actor::Delivery::kAccepted);
  for (int i = 0; i < 3; ++i) {
    (void)pair.move_there();
    Inbox message = pair.mailbox->take().value();
    if (auto* halve = std::get_if<actor::Ask<Halve>>(&message)) {
      if (halve->question.number % 2 == 0) {
        halve->reply(Count{halve->question.number / 2});
      } else {
        halve->reply(Error{ErrorCode::kInvalid, "odd"});
      }
    } else {
      std::get<actor::Ask<Ping>>(message).reply({});
    }
    (void)pair.move_here();
  }
  EXPECT_EQ(halved.value().value().number, 4);
  EXPECT_EQ(odd.value().error().message, "odd");
  EXPECT_TRUE(ponged.value());
}

TEST(Remote, an_ask_that_is_dropped_unanswered_ends_with_an_error) {
  Pair pair;
  pair.server.expose("exchange", pair.port);
  const auto ref = pair.client.remote<Inbox>({"exchange", {}}, pair.to_there());
  std::optional<Result<Count>> answer;
  ASSERT_EQ(ref.tell(actor::Ask<Halve>{{8}, into(answer)}), actor::Delivery::kAccepted);
  (void)pair.move_there();
  { const auto dropped = pair.mailbox->take(); }
  (void)pair.move_here();
  EXPECT_EQ(answer.value().error().code, ErrorCode::kFailed);
}

TEST(Remote, a_full_mailbox_leaves_the_parcel_and_answers_nothing) {
  Pair pair;
  pair.mailbox->set(0, false);
  pair.server.expose("exchange", pair.port);
  const auto ref = pair.client.remote<Inbox>({"exchange", {}}, pair.to_there());
  std::optional<Result<Count>> answer;
  ASSERT_EQ(ref.tell(actor::Ask<Halve>{{8}, into(answer)}), actor::Delivery::kAccepted);
  EXPECT_EQ(pair.move_there(), Offer::kLater);
  EXPECT_EQ(pair.move_there(), Offer::kLater);
  EXPECT_TRUE(pair.here.empty());
  pair.mailbox->set(1, false);
  EXPECT_EQ(pair.move_there(), Offer::kTaken);
  std::get<actor::Ask<Halve>>(pair.mailbox->take().value()).reply(Count{4});
  ASSERT_EQ(pair.here.size(), 1u);
  (void)pair.move_here();
  EXPECT_EQ(answer.value().value().number, 4);
}

TEST(Remote, RM_1_unknown_ports_and_bad_bytes_are_counted_and_answered) {
  Pair pair;
  pair.server.expose("exchange", pair.port);
  std::optional<Result<Count>> nobody, older, gone;
  const auto ask = [&](ActorId to, std::optional<Result<Count>>& answer) {
    const auto ref = pair.client.remote<Inbox>(to, pair.to_there());
    ASSERT_EQ(ref.tell(actor::Ask<Halve>{{8}, into(answer)}), actor::Delivery::kAccepted);
    ASSERT_EQ(pair.move_there(), Offer::kTaken);
    ASSERT_EQ(pair.move_here(), Offer::kTaken);
  };
  ask({"nobody", {}}, nobody);
  ask({"exchange", {4}}, older);
  EXPECT_EQ(pair.server.counters().unknown_ports, 2u);
  pair.mailbox->set(10, true);
  ask({"exchange", {5}}, gone);
  for (const auto& answer : {nobody, older, gone}) {
    EXPECT_EQ(answer.value().error().code, ErrorCode::kUnreachable);
  }
  EXPECT_EQ(pair.server.deliver("", pair.to_here()), Offer::kTaken);
  EXPECT_EQ(pair.server.deliver("garbage", pair.to_here()), Offer::kTaken);
  const std::string head = wire::encode(ParcelHead{.to = {"exchange", {}}, .ask = 77});
  EXPECT_EQ(pair.server.deliver(head, pair.to_here()), Offer::kTaken);
  EXPECT_EQ(pair.server.deliver(head + "\x92\x09\x90", pair.to_here()), Offer::kTaken);
  EXPECT_EQ(pair.server.counters().undecodable, 4u);
  EXPECT_EQ(pair.here.size(), 2u);  // the two that were asks
  (void)pair.move_here();
  EXPECT_EQ(pair.client.counters().answers_unasked, 1u);
}

TEST(Remote, asks_end_when_their_peer_goes_down_or_the_link_refuses) {
  Pair pair;
  std::optional<Result<Count>> lost, other, refused;
  const auto exchange = pair.client.remote<Inbox>({"exchange", {}}, pair.to_there());
  const auto elsewhere = pair.client.remote<Inbox>({"elsewhere", {}}, pair.to_there());
  ASSERT_EQ(exchange.tell(actor::Ask<Halve>{{8}, into(lost)}), actor::Delivery::kAccepted);
  ASSERT_EQ(elsewhere.tell(actor::Ask<Halve>{{8}, into(other)}), actor::Delivery::kAccepted);
  pair.client.fail_asks("exchange", {ErrorCode::kUnreachable, "it died"});
  EXPECT_EQ(lost.value().error().message, "it died");
  EXPECT_FALSE(other);
  pair.client.fail_asks({ErrorCode::kUnreachable, "all died"});
  EXPECT_EQ(other.value().error().message, "all died");
  pair.closed = true;
  EXPECT_EQ(exchange.tell(actor::Ask<Halve>{{8}, into(refused)}), actor::Delivery::kGone);
  EXPECT_FALSE(refused.value());
}

TEST(Remote, RM_2_a_door_hears_who_says_what_and_may_refuse) {
  std::optional<Result<Count>> answer;  // set at the latest when the pair ends
  Pair pair;
  const Door<Inbox> door = [](const ActorId& from, const Inbox& message) -> Result<void> {
    const auto* count = std::get_if<Count>(&message);
    if (count && count->number == 7 && from.name == "friend") return {};
    return Error{ErrorCode::kInvalid, "not from you"};
  };
  pair.server.expose("guarded", pair.port, door);
  const auto say = [&](Inbox message, const ActorId& from) {
    const auto ref = pair.client.remote<Inbox>({"guarded", {}}, pair.to_there());
    EXPECT_EQ(ref.tell(std::move(message)), actor::Delivery::kAccepted);
    const std::string frame = std::move(pair.there.front());
    pair.there.pop_front();
    return pair.server.deliver(frame, pair.to_here(), from);
  };
  EXPECT_EQ(say(Count{7}, {"friend", {1}}), Offer::kTaken);
  EXPECT_TRUE(pair.mailbox->take());
  EXPECT_EQ(say(Count{7}, {"stranger", {1}}), Offer::kRefused);
  EXPECT_EQ(say(Count{8}, {"friend", {1}}), Offer::kRefused);
  EXPECT_EQ(say(actor::Ask<Halve>{{8}, into(answer)}, {"friend", {1}}), Offer::kRefused);
  EXPECT_EQ(pair.server.counters().refused, 3u);
  const std::string garbage = wire::encode(ParcelHead{.to = {"guarded", {}}}) + "\x92\x09\x90";
  EXPECT_EQ(pair.server.deliver(garbage, pair.to_here()), Offer::kRefused);
}

TEST(Remote, what_is_too_large_is_named_and_never_sent) {
  Pair pair;
  Directory narrow(200);
  const auto ref = narrow.remote<Inbox>({"exchange", {}}, pair.to_there());
  const Inbox large = Note{.text = std::string(300, 'x')};
  EXPECT_EQ(ref.tell(large), actor::Delivery::kTooLarge);
  EXPECT_TRUE(pair.there.empty());
  const Error why = ref.too_large(large);
  EXPECT_EQ(why.code, ErrorCode::kInvalid);
  EXPECT_EQ(why.where, "exchange");
  EXPECT_TRUE(why.message.starts_with("a message Note takes 3")) << why.message;
  EXPECT_NE(why.message.find("carries at most 200 at once"), std::string::npos) << why.message;
  EXPECT_EQ(ref.tell(Note{.text = std::string(ref.bytes_max() - 20, 'x')}),
            actor::Delivery::kAccepted);
  EXPECT_LE(pair.there.front().size(), 200u);
}

TEST(Remote, over_a_real_link) {
  IoThread server_io, client_io;
  Directory server_side, client_side;
  auto mailbox = std::make_shared<Mailbox>();
  server_side.expose("controller", actor::Ref<Inbox>({"controller", {1}}, mailbox));
  std::unique_ptr<LinkServer> server;
  const auto ignore_up = [](const ActorId&, const Hello&) {};
  const auto ignore_down = [](const ActorId&, const Down&) {};
  const LinkCallbacks at_server{.on_parcel =
                                    [&](const ActorId& from, std::string& frame) {
                                      return server_side.deliver(frame, to_peer(*server, from));
                                    },
                                .on_up = ignore_up,
                                .on_down = ignore_down};
  LinkOptions patient;
  patient.peer_timeout = seconds(60);  // messages that a stalled machine loses are not sent again
  server =
      std::move(LinkServer::listen(server_io, {here()}, {.name = "controller", .incarnation = {1}},
                                   patient, at_server))
          .value();
  server->start();
  std::unique_ptr<LinkClient> client;
  std::promise<void> up;
  const LinkCallbacks at_client{.on_parcel =
                                    [&](const ActorId&, std::string& frame) {
                                      return client_side.deliver(frame, to_server(*client));
                                    },
                                .on_up = [&](const ActorId&, const Hello&) { up.set_value(); },
                                .on_down = ignore_down};
  client = std::make_unique<LinkClient>(client_io, Dial{server->endpoint(), {}},
                                        Hello{.name = "node/vm", .incarnation = {1}}, patient,
                                        at_client);
  client->start();
  up.get_future().wait();

  const auto ref = client_side.remote<Inbox>({"controller", {}}, to_server(*client));
  std::promise<Result<Count>> answer;
  ASSERT_EQ(ref.tell(actor::Ask<Halve>{{84}, actor::ReplyTo<Count>([&](Result<Count> result) {
                                         answer.set_value(std::move(result));
                                       })}),
            actor::Delivery::kAccepted);
  std::get<actor::Ask<Halve>>(mailbox->take().value()).reply(Count{42});
  EXPECT_EQ(answer.get_future().get().value().number, 42);
  client->close(kPatience);
  server->close(kPatience);
}

}  // namespace
}  // namespace tandem::link
