// Asks that wait: each ends once, at its own deadline or before, whatever becomes of the others.
#include "runtime/actor/waiting_ask.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "tests/seeds.h"

namespace tandem::actor {
namespace {

using namespace std::chrono_literals;

struct Riddle {
  using Reply = int;
  int number = 0;
};

// Answers some at once, some later, lets some die unanswered, and keeps the others for ever.
class Sphinx {
 public:
  using Inbox = std::variant<Ask<Riddle>>;
  void handle(Context& cx, Ask<Riddle> ask) {
    const int number = ask.question.number;
    switch (number % 4) {
      case 0:
        return ask.reply(number);
      case 1:
        cx.after(Duration(1ms) * (number % 50),
                 [ask](Context&) { ask.reply(ask.question.number); });
        return;
      case 2:
        return;  // its ReplyTo dies here
      default:
        kept_.push_back(std::move(ask.reply));
    }
  }

 private:
  std::vector<ReplyTo<int>> kept_;
};

struct Go {};
struct Fall {};
struct Heard {
  Time at;
  std::string what;
};
// Answers by the number of the ask, which counts over all incarnations of the actor.
using Book = std::map<int, std::vector<Heard>>;

constexpr int kAsks = 400;
Duration deadline_of(int number) { return Duration(7ms) * (1 + number * 31 % 13); }

class Asking {
 public:
  using Inbox = std::variant<Go, Fall>;
  Asking(Ref<Sphinx::Inbox> whom, Book* book, int* asked)
      : whom_(std::move(whom)), book_(book), asked_(asked) {}
  void handle(Context& cx, Go) {
    for (int i = 0; i < kAsks; ++i) {
      const int number = (*asked_)++;
      cx.ask(whom_, Riddle{number}, deadline_of(number),
             std::function([this, number](Context& then, Result<int> answer) {
               (*book_)[number].push_back(
                   {then.now(), answer ? std::to_string(*answer) : name(answer.error().code)});
             }));
    }
  }
  void handle(Context& cx, Fall) { cx.fail(Error{ErrorCode::kFailed, "told to fall"}); }

 private:
  const Ref<Sphinx::Inbox> whom_;
  Book* const book_;
  int* const asked_;
};

TEST(WaitingAsk, EachEndsOnceAtItsOwnTime) {
  for_seeds(30, [](std::uint64_t seed) {
    SimulatedExecutor executor(seed);
    System system(executor, nullptr);
    Book book;
    int asked = 0;
    const auto sphinx = system.spawn<Sphinx>("sphinx", [] { return std::make_unique<Sphinx>(); });
    const auto asking = system.spawn<Asking>(
        "asking", [&] { return std::make_unique<Asking>(sphinx, &book, &asked); });
    ASSERT_EQ(asking.tell(Go{}), Delivery::kAccepted);
    EXPECT_FALSE(executor.run_until([] { return false; }, 10s));
    ASSERT_EQ(book.size(), static_cast<std::size_t>(kAsks));
    for (const auto& [number, heard] : book) {
      ASSERT_EQ(heard.size(), 1u) << number;
      const Duration after{heard[0].at.ns}, delay = Duration(1ms) * (number % 50);
      if (number % 4 == 2) {
        EXPECT_EQ(heard[0].what, name(ErrorCode::kFailed)) << number;
      } else if (number % 4 == 3 || (number % 4 == 1 && delay > deadline_of(number))) {
        EXPECT_EQ(heard[0].what, name(ErrorCode::kTimedOut)) << number;
        EXPECT_EQ(after, deadline_of(number)) << number;
      } else if (delay != deadline_of(number)) {
        EXPECT_EQ(heard[0].what, std::to_string(number));
        EXPECT_EQ(after, number % 4 == 1 ? delay : Duration{}) << number;
      }
    }
  });
}

TEST(WaitingAsk, ALaterLifeHearsNothingOfAnEarlierOnesAsks) {
  SimulatedExecutor executor(1);
  System system(executor, nullptr);
  Book book;
  int asked = 0;
  const auto sphinx = system.spawn<Sphinx>("sphinx", [] { return std::make_unique<Sphinx>(); });
  const auto asking = system.spawn<Asking>(
      "asking", [&] { return std::make_unique<Asking>(sphinx, &book, &asked); },
      {.restart = {.restarts_max = 1}});
  ASSERT_EQ(asking.tell(Go{}), Delivery::kAccepted);
  ASSERT_EQ(asking.tell(Fall{}), Delivery::kAccepted);
  ASSERT_EQ(asking.tell(Go{}), Delivery::kAccepted);
  EXPECT_FALSE(executor.run_until([] { return false; }, 10s));
  ASSERT_EQ(asked, 2 * kAsks);
  for (int number = kAsks; number < asked; ++number) EXPECT_EQ(book[number].size(), 1u) << number;
  for (int number = 0; number < kAsks; ++number)
    for (const Heard& heard : book[number])
      EXPECT_EQ(heard.at, Time{}) << "before the fall: " << number;
}

class Fake final : public detail::WaitingAsk {
 public:
  bool answered() const override { return done; }
  void time_out() override { done = true; }
  void hand_over(Context&) override {}
  bool done = false;
};

TEST(WaitingAsk, AnsweredOnesCostNoMemoryBehindOneThatHangs) {
  detail::AskDeadlines deadlines;
  const auto hangs = std::make_shared<Fake>();
  deadlines.add(hangs, Time{}, 30s);
  std::vector<std::weak_ptr<Fake>> answered;
  for (int i = 0; i < 10'000; ++i) {
    const auto ask = std::make_shared<Fake>();
    answered.push_back(ask);
    deadlines.add(ask, Time{}, 30s);
    ask->done = true;
    deadlines.handed_over();
  }
  EXPECT_LT(deadlines.entries(), 1'000u);
  ASSERT_TRUE(deadlines.next());
  deadlines.expire(Time{} + Duration(30s));
  EXPECT_TRUE(hangs->done);
  EXPECT_FALSE(deadlines.next());
}

}  // namespace
}  // namespace tandem::actor
