// Parcels between peers of a star: three directories, and the forwarder between them.
#include "runtime/link/forwarder.h"

#include <gtest/gtest.h>

#include <deque>

#include "runtime/base/log.h"
#include "runtime/base/rng.h"
#include "runtime/link/remote.h"
#include "runtime/wire/schema.h"
#include "tests/seeds.h"

namespace forwarder_example {

struct Note {
  std::string text;
};
TANDEM_WIRE(Note, text)
struct Halve {
  using Reply = std::int32_t;
  std::int32_t number = 0;
};
TANDEM_WIRE(Halve, number)
using Inbox = std::variant<Note, tandem::actor::Ask<Halve>>;

}  // namespace forwarder_example

namespace tandem::link {
namespace {

using namespace forwarder_example;

// A peer whose mailbox the test empties, and the frames that the star has sent it.
struct Peer final : actor::Target<Inbox> {
  explicit Peer(ActorId who) : id(std::move(who)) {}
  actor::Delivery post(Inbox message) override {
    inbox.push_back(std::move(message));
    return actor::Delivery::kAccepted;
  }
  ActorId id;
  Directory directory;
  std::deque<Inbox> inbox;
  std::deque<std::string> frames;
  std::size_t room = 1000;  // frames
};

// Every frame that a peer sends goes through the forwarder at once.
class Star {
 public:
  explicit Star(std::size_t asks_max = Forwarder::kAsksMax)
      : forwarder(
            [this](const ActorId& to, std::string frame) { return send(to, std::move(frame)); },
            asks_max) {}
  // Asks that peers leave unanswered answer as the peers end, and find no peer then.
  ~Star() { const auto ending = std::exchange(peers, {}); }

  std::shared_ptr<Peer> add(const std::string& name, std::uint64_t incarnation) {
    const ActorId id{name, {incarnation}};
    auto peer = std::make_shared<Peer>(id);
    // The directory is the peer's own, so that its port does not own the peer.
    peer->directory.expose(port(name), actor::Ref<Inbox>({name, {incarnation}},
                                                         std::shared_ptr<actor::Target<Inbox>>(
                                                             std::shared_ptr<void>(), peer.get())));
    peers[name] = peer;
    forwarder.up(id);
    return peer;
  }
  void remove(const Peer& peer) {
    peers.erase(peer.id.name);
    forwarder.down(peer.id);
  }
  actor::Ref<Inbox> ref(Peer& from, const std::string& name) {
    return from.directory.remote<Inbox>({port(name), {}}, out(from.id), ActorId{name, {}});
  }
  ParcelSender out(const ActorId& from) {
    return [this, from](std::string frame) {
      last = forwarder.offer(from, frame);
      return Sent::kAccepted;
    };
  }
  // Delivers the frames that wait for this peer.
  void deliver(Peer& peer) {
    for (; !peer.frames.empty(); peer.frames.pop_front())
      EXPECT_EQ(peer.directory.deliver(peer.frames.front(), out(peer.id)), Offer::kTaken);
  }

  std::optional<Offer> last;  // the offer of the last frame that a peer sent
  Forwarder forwarder;
  std::map<std::string, std::shared_ptr<Peer>> peers;

 private:
  static std::string port(const std::string& name) {
    return inbox_name(name, wire::schema_hash(wire::wire_schema<Inbox>()));
  }
  Sent send(const ActorId& to, std::string frame) {
    const auto found = peers.find(to.name);
    if (found == peers.end() || found->second->id != to) return Sent::kGone;
    if (found->second->frames.size() >= found->second->room) return Sent::kFull;
    found->second->frames.push_back(std::move(frame));
    return Sent::kAccepted;
  }
};

// Outlives the star: an ask that is left answers as its asker ends.
using Answer = std::optional<Result<std::int32_t>>;
void ask(const actor::Ref<Inbox>& whom, std::int32_t number, Answer& answer) {
  ASSERT_EQ(whom.tell(actor::Ask<Halve>{
                {.number = number},
                actor::ReplyTo<std::int32_t>([&](auto result) { answer = std::move(result); })}),
            actor::Delivery::kAccepted);
}

TEST(Forwarder, an_ask_and_its_answer_cross) {
  Answer answer;
  Star star;
  const auto a = star.add("job-1/a/0", 1), b = star.add("job-1/b/0", 2);
  ask(star.ref(*a, "job-1/b/0"), 8, answer);
  star.deliver(*b);
  ASSERT_EQ(b->inbox.size(), 1u);
  const auto asked = std::get<actor::Ask<Halve>>(std::move(b->inbox.front()));
  EXPECT_EQ(asked.question.number, 8);
  asked.reply(4);
  star.deliver(*a);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->value(), 4);
  EXPECT_EQ(star.forwarder.counters().forwarded, 2u);
}

TEST(Forwarder, other_jobs_and_ports_of_this_process_are_not_reached) {  // FP-1
  Star star;
  const auto a = star.add("job-1/a/0", 1), other = star.add("job-2/b/0", 2);
  EXPECT_EQ(star.ref(*a, "job-2/b/0").tell(Note{"hello"}), actor::Delivery::kAccepted);
  EXPECT_EQ(star.last, std::nullopt);  // left to the directory of this process
  EXPECT_EQ(star.ref(*a, "controller/ranks").tell(Note{"hello"}), actor::Delivery::kAccepted);
  EXPECT_EQ(star.last, std::nullopt);
  EXPECT_TRUE(other->frames.empty());
  EXPECT_EQ(star.forwarder.offer(a->id, "no parcel"), std::nullopt);
}

TEST(Forwarder, only_the_asked_peer_can_answer) {  // FP-1
  Answer answer;
  Star star;
  const auto a = star.add("job-1/a/0", 1), b = star.add("job-1/b/0", 2),
             c = star.add("job-1/c/0", 3);
  ask(star.ref(*a, "job-1/b/0"), 8, answer);
  const std::string question = b->frames.front();
  // c answers in the place of b, under the right number.
  EXPECT_EQ(c->directory.deliver(question, star.out(c->id)), Offer::kTaken);
  star.deliver(*a);
  EXPECT_FALSE(answer);
  EXPECT_EQ(star.forwarder.counters().unasked, 1u);
}

TEST(Forwarder, an_ask_to_an_unknown_or_ended_actor_ends_by_name) {  // FP-2
  Answer unknown, ended;
  Star star;
  const auto a = star.add("job-1/a/0", 1), b = star.add("job-1/b/0", 2);
  ask(star.ref(*a, "job-1/b/7"), 8, unknown);
  star.deliver(*a);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(unknown->error().message, "job-1/b/7 is not running");
  ask(star.ref(*a, "job-1/b/0"), 8, ended);
  star.remove(*b);
  star.deliver(*a);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(ended->error().message, "job-1/b/0 ended before it answered");
}

TEST(Forwarder, a_full_queue_refuses_asks_and_holds_told_messages_back) {  // FP-2
  Answer answer;
  Star star;
  const auto a = star.add("job-1/a/0", 1), b = star.add("job-1/b/0", 2);
  b->room = 0;
  ask(star.ref(*a, "job-1/b/0"), 8, answer);
  star.deliver(*a);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().message, "job-1/b/0 is at its limit");
  EXPECT_EQ(star.ref(*a, "job-1/b/0").tell(Note{"hello"}), actor::Delivery::kAccepted);
  EXPECT_EQ(star.last, Offer::kLater);
}

TEST(Forwarder, takes_any_bytes_from_a_peer) {  // RM-1
  log::mute();
  for_seeds(200, [](std::uint64_t seed) {
    Rng rng(seed);
    Answer answer;
    Star star;
    const auto a = star.add("job-1/a/0", 1), b = star.add("job-1/b/0", 2);
    ask(star.ref(*a, "job-1/b/0"), 8, answer);
    std::string frame = b->frames.front();
    for (int i = 0; i < 20; ++i) {
      frame[rng.below(frame.size())] = static_cast<char>(rng.below(256));
      (void)star.forwarder.offer(b->id, frame);
      (void)star.forwarder.offer(a->id, frame.substr(0, rng.below(frame.size())));
    }
    for (Peer* peer : {a.get(), b.get()})
      for (; !peer->frames.empty(); peer->frames.pop_front())
        (void)peer->directory.deliver(peer->frames.front(), star.out(peer->id));
  });
}

TEST(Forwarder, one_ask_too_many_ends_the_oldest_of_that_peer) {  // FP-3
  Answer answers[3], other;
  Star star(2);
  const auto a = star.add("job-1/a/0", 1), b = star.add("job-1/b/0", 2);
  ask(star.ref(*b, "job-1/a/0"), 8, other);
  for (Answer& answer : answers) ask(star.ref(*a, "job-1/b/0"), 8, answer);
  a->frames.pop_front();  // the question of b
  star.deliver(*a);
  ASSERT_TRUE(answers[0]);
  EXPECT_EQ(answers[0]->error().code, ErrorCode::kTimedOut);
  EXPECT_FALSE(answers[1] || answers[2] || other);
  EXPECT_EQ(star.forwarder.counters().overdue, 1u);
  // The asks of a peer that ends are forgotten: their answers find nobody.
  star.remove(*a);
  star.deliver(*b);
  for (Inbox& message : b->inbox) std::get<actor::Ask<Halve>>(message).reply(4);
  EXPECT_EQ(star.forwarder.counters().unasked, 3u);
}

}  // namespace
}  // namespace tandem::link
