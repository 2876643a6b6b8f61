// What the Controller does with effects whose receivers have no room for them.
#include "actors/controller/controller.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "tests/actors/controller/controller_world.h"

namespace tandem::actors {
namespace {

// The mailbox of an exchange, full for as long as the test says.
class FullMailbox final : public runtime::Target<ExchangeControl> {
 public:
  runtime::Delivery post(ExchangeControl message) override {
    if (full) return runtime::Delivery::kFull;
    taken.push_back(std::move(message));
    return runtime::Delivery::kAccepted;
  }
  bool full = true;
  std::vector<ExchangeControl> taken;
};

ControllerHands hands_to(std::shared_ptr<FullMailbox> exchange) {
  ControllerHands hands;
  hands.expect = [](const std::string&, const runtime::RankId&) {};
  hands.agent = [](const std::string&, Incarnation) {  // gone: no rank can be started
    return runtime::Ref<runtime::AgentInbox>();
  };
  hands.rank_arguments = [](const runtime::RankId&) { return std::vector<std::string>(); };
  hands.make_run_directory = [](const JobShape&) -> Result<RunDirectory> {
    return RunDirectory{"job-1", "runs/job-1"};
  };
  hands.open_exchange = [exchange](const JobRecord&) -> Result<runtime::Ref<ExchangeControl>> {
    return runtime::Ref<ExchangeControl>({"exchange/job-1", Incarnation{1}}, exchange);
  };
  hands.close_exchange = [](const std::string&) {};
  hands.journal = [](const ClusterEvent&) -> Result<void> { return {}; };
  return hands;
}

TEST(Controller, AnExchangeWhoseMailboxIsFullIsToldOnceItHasRoom) {
  runtime::SimulatedExecutor executor(1);
  runtime::System system(executor, nullptr);
  const auto exchange = std::make_shared<FullMailbox>();
  const auto controller = system.spawn<Controller>(
      "controller", [exchange] { return std::make_unique<Controller>(1, hands_to(exchange)); });
  const auto tell = [&](Controller::Inbox message) {
    ASSERT_EQ(controller.tell(std::move(message)), runtime::Delivery::kAccepted);
    executor.at(executor.now() + std::chrono::milliseconds(50), [] {});
    executor.run_until([] { return false; }, std::chrono::milliseconds(50));
  };
  tell(runtime::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  tell(runtime::Ask<Submit>{{shape_of(1)}, {}});
  tell(runtime::Ask<Cancel>{{"job-1"}, {}});
  EXPECT_TRUE(exchange->taken.empty());
  exchange->full = false;
  executor.run_until([&] { return exchange->taken.size() == 4; }, std::chrono::seconds(1));
  ASSERT_GE(exchange->taken.size(), 4u) << "three actors that could not start, and the cancel";
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(std::holds_alternative<ActorDown>(exchange->taken[i])) << i;
  EXPECT_TRUE(std::holds_alternative<EndJob>(exchange->taken[3])) << "in their order";
}

}  // namespace
}  // namespace tandem::actors
