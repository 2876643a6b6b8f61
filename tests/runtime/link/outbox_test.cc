#include "runtime/link/outbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"

namespace tandem::link {
namespace {

using namespace std::chrono_literals;
using actor::Delivery;

using Inbox = std::variant<std::string>;

// Takes messages while `says` is kAccepted. A message "long" is too large for it.
struct Receiver final : actor::Target<Inbox> {
  Delivery post(Inbox message) override {
    const std::string& text = std::get<std::string>(message);
    if (text == "long") return Delivery::kTooLarge;
    if (says == Delivery::kAccepted) taken.push_back(text);
    return says;
  }
  Error too_large(const Inbox&) const override { return {ErrorCode::kInvalid, "too large"}; }
  Delivery says = Delivery::kAccepted;
  std::vector<std::string> taken;
};

struct Addressee {
  ActorId id;
  std::shared_ptr<Receiver> receiver = std::make_shared<Receiver>();
  actor::Ref<Inbox> ref() const { return {id, receiver}; }
};

using Texts = std::vector<std::string>;

TEST(Outbox, KeepsTheOrderForAReceiverAndLetsOthersPass) {
  const Addressee a{{"a", {1}}}, b{{"b", {1}}};
  Outbox outbox;
  const auto add = [&](const Addressee& to, const char* text) {
    outbox.add(to.id, to.ref(), std::string(text));
  };
  add(a, "1");
  add(b, "2");
  add(a, "3");
  a.receiver->says = Delivery::kFull;
  EXPECT_TRUE(outbox.flush().value()) << "some wait";
  EXPECT_EQ(a.receiver->taken, Texts{});
  EXPECT_EQ(b.receiver->taken, Texts{"2"});
  add(b, "4");
  a.receiver->says = Delivery::kAccepted;
  EXPECT_FALSE(outbox.flush().value());
  EXPECT_EQ(a.receiver->taken, (Texts{"1", "3"}));
  EXPECT_EQ(b.receiver->taken, (Texts{"2", "4"}));
}

TEST(Outbox, DropsWhatIsForAReceiverThatIsGoneOrWaitsForIt) {
  for (const WhenGone when_gone : {WhenGone::kDrop, WhenGone::kWait}) {
    const Addressee a{{"a", {1}}};
    Outbox outbox(when_gone);
    outbox.add(a.id, a.ref(), std::string("1"));
    a.receiver->says = Delivery::kGone;
    EXPECT_EQ(outbox.flush().value(), when_gone == WhenGone::kWait);
    a.receiver->says = Delivery::kAccepted;
    EXPECT_FALSE(outbox.flush().value());
    EXPECT_EQ(a.receiver->taken, when_gone == WhenGone::kWait ? Texts{"1"} : Texts{});
  }
}

TEST(Outbox, AMessageThatNoLinkCarriesIsAnErrorAndTheOthersStay) {
  const Addressee a{{"a", {1}}};
  Outbox outbox;
  outbox.add(a.id, a.ref(), std::string("long"));
  outbox.add(a.id, a.ref(), std::string("2"));
  const auto sent = outbox.flush();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().message, "too large, and it is for a");
  EXPECT_EQ(outbox.size(), 1u);
  outbox.clear();
  EXPECT_FALSE(outbox.flush().value());
  EXPECT_EQ(a.receiver->taken, Texts{});
}

// Sends the texts that it is given to one receiver.
class Sending {
 public:
  using Inbox = std::variant<Texts>;
  explicit Sending(const Addressee& to) : outbox_(to.ref(), 10ms) {}
  void handle(actor::Context& cx, const Texts& texts) {
    for (const std::string& text : texts) outbox_.send(cx, text);
  }

 private:
  OutboxTo<link::Inbox> outbox_;
};

class OutboxTo_ : public testing::Test {
 protected:
  void run_for(Duration time) {
    (void)executor_.run_until([] { return false; }, time);
  }
  void send(Texts texts) { ASSERT_EQ(ref_.tell(std::move(texts)), Delivery::kAccepted); }

  const Addressee to_{{"a", {1}}};
  actor::SimulatedExecutor executor_{1};
  actor::System system_{executor_, nullptr};
  actor::Ref<Sending::Inbox> ref_ =
      system_.spawn<Sending>("sending", [this] { return std::make_unique<Sending>(to_); });
};

TEST_F(OutboxTo_, OffersAgainUntilEverythingIsTakenInOrder) {
  to_.receiver->says = Delivery::kFull;
  send({"1", "2"});
  run_for(35ms);
  to_.receiver->says = Delivery::kGone;
  send({"3"});
  run_for(35ms);
  EXPECT_EQ(to_.receiver->taken, Texts{});
  to_.receiver->says = Delivery::kAccepted;
  run_for(15ms);
  EXPECT_EQ(to_.receiver->taken, (Texts{"1", "2", "3"}));
}

TEST_F(OutboxTo_, NothingIsSentBehindAMessageThatNoLinkCarries) {
  send({"1", "long", "3"});
  run_for(100ms);
  EXPECT_EQ(to_.receiver->taken, Texts{"1"}) << "the actor fails, and its later messages with it";
}

}  // namespace
}  // namespace tandem::link
