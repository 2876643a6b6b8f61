// Actors on both executors: mailboxes with limits, failures and restarts, asks with deadlines (AC-1
// to AC-3); one seed gives one history in the simulated executor.
#include "runtime/actor/system.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/threaded_executor.h"

namespace tandem::actor {
namespace {

using namespace std::chrono_literals;

struct Add {
  int value;
};
struct Crash {};
struct Sum {
  using Reply = int;
};

class Adder {
 public:
  using Inbox = std::variant<Add, Crash, Ask<Sum>>;
  void handle(Context&, Add add) {
    EXPECT_GT(add.value, last_) << "XR-2: order of one sender";
    last_ = add.value;
    sum_ += add.value;
  }
  void handle(Context&, Crash) { throw std::runtime_error("told to crash"); }
  void handle(Context&, Ask<Sum> ask) { ask.reply(sum_); }

 private:
  int sum_ = 0, last_ = 0;
};
static_assert(Actor<Adder>);

Ref<Adder::Inbox> spawn_adder(System& system, SpawnOptions options = {}) {
  return system.spawn<Adder>(
      "adder", [] { return std::make_unique<Adder>(); }, options);
}

// Asks the actors that it is told to ask and keeps their answers. In a simulation it can also leave
// a question unanswered.
struct Question {
  Ref<Adder::Inbox> whom;
};
struct Silence {
  using Reply = int;
};
class Asker {
 public:
  using Inbox = std::variant<Question, Ask<Silence>>;
  explicit Asker(std::vector<std::string>* log) : log_(log) {}
  void handle(Context& cx, Question question) {
    cx.ask(question.whom, Sum{}, 1s, [this](Context& then, Result<int> reply) {
      log_->push_back(then.self().name + " " + std::to_string(then.now().ns / 1'000'000) + "ms " +
                      (reply ? std::to_string(*reply) : name(reply.error().code)));
    });
    cx.monitor(question.whom.address(), [this](Context&, const Error& reason) {
      log_->push_back("down: " + reason.message);
    });
  }
  void handle(Context&, Ask<Silence> ask) { kept_ = std::move(ask.reply); }

 private:
  std::vector<std::string>* log_;
  ReplyTo<int> kept_;
};

TEST(System, ThreadsHandleEveryMessageOnceAndAnswerAsks) {
  ThreadedExecutor executor(2, 1);
  System system(executor, nullptr);
  const auto adder = spawn_adder(system);
  for (int i = 1; i <= 20000; ++i) ASSERT_EQ(adder.tell(Add{i}), Delivery::kAccepted);
  const Result<int> sum = ask_and_wait(adder, Sum{}, 10s);
  ASSERT_TRUE(sum);
  EXPECT_EQ(*sum, 20000 * 20001 / 2);
  executor.stop();
}

// Each turn of this actor, for a message or a timer, lasts long enough for another one to meet it.
class Alone {
 public:
  using Inbox = std::variant<Add>;
  static constexpr int kTurns = 8000;
  struct Watch {
    std::atomic<int> inside = 0;
    std::promise<void> all;
  };
  explicit Alone(Watch& watch) : watch_(watch) {}
  void handle(Context& cx, Add) {
    turn();
    cx.after(1us, [this](Context&) { turn(); });
  }

 private:
  void turn() {
    EXPECT_EQ(watch_.inside.fetch_add(1), 0);
    const Time end = steady_now() + 2us;
    while (steady_now() < end) continue;
    watch_.inside.fetch_sub(1);
    if (++turns_ == kTurns) watch_.all.set_value();
  }
  Watch& watch_;
  int turns_ = 0;
};

TEST(System, HandlersOfOneActorNeverMeet) {  // XR-1
  constexpr int kSenders = 4;
  Alone::Watch watch;
  ThreadedExecutor executor(4, 1);
  System system(executor, nullptr);
  const auto alone = system.spawn<Alone>("alone", [&] { return std::make_unique<Alone>(watch); });
  std::vector<std::future<void>> senders;
  for (int i = 0; i < kSenders; ++i)
    senders.push_back(std::async(std::launch::async, [&] {
      for (int n = 0; n < Alone::kTurns / kSenders / 2; ++n)
        EXPECT_EQ(alone.tell(Add{n}), Delivery::kAccepted);
    }));
  for (auto& sender : senders) sender.get();
  EXPECT_EQ(watch.all.get_future().wait_for(30s), std::future_status::ready);
  executor.stop();
}

TEST(System, AMailboxAtItsLimitRefuses_AC1) {
  SimulatedExecutor executor(1);  // nothing runs until the test steps
  System system(executor, nullptr);
  const auto adder = spawn_adder(system, {.mailbox_max = 2});
  EXPECT_EQ(adder.tell(Add{1}), Delivery::kAccepted);
  EXPECT_EQ(adder.tell(Add{2}), Delivery::kAccepted);
  EXPECT_EQ(adder.tell(Add{3}), Delivery::kFull);
}

TEST(System, AFailureRestartsWithinTheBudgetThenTellsMonitors_AC2_AC3) {
  SimulatedExecutor executor(1);
  std::vector<std::string> failed, log;
  System system(executor, [&](const ActorId& who, const Error& why) {
    failed.push_back(who.name + ": " + why.message);
  });
  const auto adder = spawn_adder(system, {.restart = {.restarts_max = 1}});
  const auto asker = system.spawn<Asker>("asker", [&] { return std::make_unique<Asker>(&log); });
  ASSERT_EQ(adder.tell(Crash{}), Delivery::kAccepted);
  ASSERT_EQ(adder.tell(Add{5}), Delivery::kAccepted);  // waits through the restart (AC-3)
  ASSERT_EQ(asker.tell(Question{adder}), Delivery::kAccepted);
  while (executor.step()) continue;
  ASSERT_TRUE(system.alive("adder"));
  EXPECT_EQ(log, std::vector<std::string>{"asker 0ms 5"});
  ASSERT_EQ(asker.tell(Question{Ref<Adder::Inbox>({"adder", {}}, nullptr)}), Delivery::kAccepted);
  while (executor.step()) continue;
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[1], "asker 0ms unreachable");
  ASSERT_EQ(adder.tell(Crash{}), Delivery::kAccepted);
  while (executor.step()) continue;
  EXPECT_FALSE(system.alive("adder"));
  EXPECT_EQ(failed, std::vector<std::string>{"adder: adder threw: told to crash"});
  ASSERT_EQ(log.size(), 4u);  // it was watched twice
  EXPECT_EQ(log[2], "down: adder threw: told to crash");
  EXPECT_EQ(log[3], log[2]);
  EXPECT_EQ(adder.tell(Add{6}), Delivery::kGone);
}

TEST(System, EndsItsActorsAndLeavesTheirRefsHarmless) {
  SimulatedExecutor executor(1);
  Ref<Adder::Inbox> adder;
  {
    System system(executor, nullptr);
    adder = spawn_adder(system);
    EXPECT_EQ(adder.tell(Add{1}), Delivery::kAccepted);
  }
  EXPECT_EQ(adder.tell(Add{2}), Delivery::kGone);
}

// Asks itself, and ends before it answers.
struct Begin {};
class SelfAsker {
 public:
  using Inbox = std::variant<Begin, Ask<Sum>>;
  explicit SelfAsker(const Ref<Inbox>* self) : self_(self) {}
  void handle(Context& cx, Begin) {
    cx.ask(*self_, Sum{}, 1s, [](Context&, Result<int>) {});
    cx.stop();
  }
  void handle(Context&, Ask<Sum> ask) { ask.reply(0); }

 private:
  const Ref<Inbox>* self_;
};

// The mailbox owns the question, and the question's end tells its asker: the same cell.
TEST(System, AnActorEndsWithItsOwnQuestionInItsMailbox) {
  SimulatedExecutor executor(4);
  System system(executor, nullptr);
  Ref<SelfAsker::Inbox> self;
  self = system.spawn<SelfAsker>("self", [&] { return std::make_unique<SelfAsker>(&self); });
  EXPECT_EQ(self.tell(Begin{}), Delivery::kAccepted);
  while (executor.step()) continue;
  EXPECT_FALSE(system.alive("self"));
}

TEST(System, AnAskHasItsDeadlineInVirtualTime) {
  SimulatedExecutor executor(3);
  System system(executor, nullptr);
  std::vector<std::string> log;
  const auto asker = system.spawn<Asker>("asker", [&] { return std::make_unique<Asker>(&log); });
  std::optional<Result<int>> answer;
  ASSERT_EQ(asker.tell(Ask<Silence>{{}, ReplyTo<int>([&](Result<int> r) { answer = r; })}),
            Delivery::kAccepted);
  while (executor.step()) continue;
  EXPECT_FALSE(answer.has_value());
  system.stop("asker");  // a ReplyTo that dies unanswered answers with an Error
  while (executor.step()) continue;
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->has_value());
}

// XR-3 and repeatability: one seed gives one order of events, another seed another.
TEST(SimulatedExecutor, OneSeedOneHistory) {
  const auto history = [](std::uint64_t seed) {
    SimulatedExecutor executor(seed);
    System system(executor, nullptr);
    std::vector<std::string> log;
    std::vector<Ref<Asker::Inbox>> askers;
    const auto adder = spawn_adder(system);
    for (int i = 0; i < 5; ++i)
      askers.push_back(system.spawn<Asker>("asker/" + std::to_string(i),
                                           [&] { return std::make_unique<Asker>(&log); }));
    for (int i = 1; i <= 5; ++i) {
      EXPECT_EQ(adder.tell(Add{i}), Delivery::kAccepted);
      EXPECT_EQ(askers[i - 1].tell(Question{adder}), Delivery::kAccepted);
    }
    EXPECT_TRUE(executor.run_until([&] { return log.size() == 5; }, 10s));
    return log;
  };
  EXPECT_EQ(history(5), history(5));
  bool differs = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) differs |= history(seed) != history(5);
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace tandem::actor
