#include "actors/api/alerts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/log.h"

namespace tandem::api {
namespace {

using namespace std::chrono_literals;
using controller::Controller;
using controller::ExchangeControl;

const bool kMuted = (log::mute(), true);

// Stands where the controller does: has a picture, and keeps the events that it is told.
class FakeCluster final : public actor::Target<Controller::Inbox> {
 public:
  actor::Delivery post(Controller::Inbox message) override {
    if (auto* const asked = std::get_if<actor::Ask<controller::GetCluster>>(&message)) {
      ++looks;
      if (answers) asked->reply(view);
    } else {
      events.push_back(std::get<controller::ProcessNews>(std::move(message)));
    }
    return actor::Delivery::kAccepted;
  }
  std::uint64_t bytes_max() const override { return actor::kBytesUnlimited; }
  Error too_large(const Controller::Inbox&) const override { return {}; }

  controller::ClusterView view;
  std::vector<controller::ProcessNews> events;
  int looks = 0;
  bool answers = true;
};

class FakeExchange final : public actor::Target<ExchangeControl> {
 public:
  actor::Delivery post(ExchangeControl message) override {
    const auto* const asked = std::get_if<actor::Ask<messages::GetExchangeReport>>(&message);
    if (asked && answers) asked->reply(report);
    return actor::Delivery::kAccepted;
  }
  std::uint64_t bytes_max() const override { return actor::kBytesUnlimited; }
  Error too_large(const ExchangeControl&) const override { return {}; }

  messages::ExchangeReport report;
  bool answers = true;
};

class AlertsTest : public testing::Test {
 protected:
  AlertsTest() {
    add_job("j-1", exchange_);
    alerts_ =
        watch_alerts(system_, actor::Ref<Controller::Inbox>(ActorId{"controller", {}}, cluster_),
                     [this] { return disk_; });
  }
  void add_job(const std::string& id, const std::shared_ptr<FakeExchange>& exchange) {
    cluster_->view.exchanges[id] =
        actor::Ref<ExchangeControl>(ActorId{"exchange/" + id, {}}, exchange);
  }
  void run_for(Duration time) {
    executor_.run_until([] { return false; }, time);
  }
  nlohmann::json firing(const std::string& job = "") {
    nlohmann::json shown;
    bool answered = false;
    const actor::ReplyTo<FiringAlerts> reply([&](Result<FiringAlerts> answer) {
      answered = true;
      if (answer) shown = alerts_json(*answer, job);
    });
    EXPECT_EQ(alerts_.tell(actor::Ask<GetAlerts>{{}, reply}), actor::Delivery::kAccepted);
    executor_.run_until([&] { return answered; }, 1s);
    return shown;
  }

  actor::SimulatedExecutor executor_{1};
  actor::System system_{executor_, nullptr};
  const std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  const std::shared_ptr<FakeExchange> exchange_ = std::make_shared<FakeExchange>();
  std::optional<HomeDisk> disk_;  // nullopt: it cannot be looked at
  actor::Ref<Alerts::Inbox> alerts_;
};

TEST_F(AlertsTest, ADiskThatIsNearlyFullIsToldBeforeAnyJobStandsStill) {
  run_for(5min);
  disk_ = {.directory = "/data", .size_bytes = 1000, .free_bytes = 51};
  run_for(5min);
  EXPECT_TRUE(cluster_->events.empty());
  disk_->free_bytes = 49;
  run_for(2min);
  ASSERT_EQ(cluster_->events.size(), 1u);
  EXPECT_EQ(cluster_->events[0].subject, "controller");
  EXPECT_EQ(cluster_->events[0].level, messages::EventLevel::kWarning);
  EXPECT_EQ(
      cluster_->events[0].message.rfind("TandemDiskNearlyFull: The disk of /data has 49 B left", 0),
      0u)
      << cluster_->events[0].message;
  const nlohmann::json shown = firing();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0]["name"], "TandemDiskNearlyFull");
  EXPECT_TRUE(shown[0]["job"].is_null());
  disk_->free_bytes = 500;
  run_for(1min);
  EXPECT_EQ(cluster_->events.size(), 2u);
  EXPECT_EQ(firing(), nlohmann::json::array());
}

TEST_F(AlertsTest, AFullDiskIsToldShownAndOver) {
  run_for(5min);
  EXPECT_TRUE(cluster_->events.empty());
  EXPECT_EQ(firing(), nlohmann::json::array());
  exchange_->report.status.disk_full = "no space left on /data";
  run_for(2min);
  ASSERT_EQ(cluster_->events.size(), 1u);
  EXPECT_EQ(cluster_->events[0].kind, "alert");
  EXPECT_EQ(cluster_->events[0].subject, "j-1");
  EXPECT_EQ(cluster_->events[0].level, messages::EventLevel::kError);
  EXPECT_EQ(cluster_->events[0].message.rfind("TandemDiskFull: j-1 stands still", 0), 0u)
      << cluster_->events[0].message;
  const nlohmann::json shown = firing("j-1");
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0]["name"], "TandemDiskFull");
  EXPECT_EQ(shown[0]["severity"], "critical");
  EXPECT_EQ(shown[0]["job"], "j-1");
  EXPECT_EQ(shown[0]["actor"], nullptr);
  EXPECT_EQ(firing("j-2"), nlohmann::json::array());
  EXPECT_EQ(firing().size(), 1u);
  exchange_->report.status.disk_full.reset();
  run_for(1min);
  ASSERT_EQ(cluster_->events.size(), 2u);
  EXPECT_EQ(cluster_->events[1].message.rfind("TandemDiskFull is over, after ", 0), 0u);
  EXPECT_EQ(cluster_->events[1].level, messages::EventLevel::kInfo);
  EXPECT_EQ(firing(), nlohmann::json::array());
}

TEST_F(AlertsTest, ALostNodeIsAnAlertOfTheCluster) {
  cluster_->view.nodes = {{.name = "a", .up = true}, {.name = "b", .up = false}};
  run_for(2min);
  ASSERT_EQ(cluster_->events.size(), 1u);
  EXPECT_EQ(cluster_->events[0].subject, "controller");
  EXPECT_EQ(firing()[0]["job"], nullptr);
}

TEST_F(AlertsTest, AnExchangeThatDoesNotAnswerHoldsUpNoOther) {
  const auto full = std::make_shared<FakeExchange>();
  full->report.status.disk_full = "no space left";
  add_job("j-2", full);
  exchange_->answers = false;
  run_for(3min);
  EXPECT_EQ(firing("j-2").size(), 1u);
}

TEST_F(AlertsTest, WhatStandsStandsWhileTheExchangeDoesNotAnswer) {  // AW-4
  exchange_->report.status.disk_full = "no space left";
  run_for(2min);
  ASSERT_EQ(cluster_->events.size(), 1u);
  exchange_->answers = false;
  run_for(1min);
  EXPECT_EQ(firing().size(), 1u);
  exchange_->answers = true;
  run_for(3min);
  EXPECT_EQ(firing().size(), 1u);
  EXPECT_EQ(cluster_->events.size(), 1u) << "it neither ended nor began anew";
  exchange_->answers = false;
  cluster_->view.exchanges.clear();  // the job is over
  run_for(1min);
  EXPECT_EQ(firing(), nlohmann::json::array());
}

TEST_F(AlertsTest, WhatStandsStandsWhileTheControllerDoesNotAnswer) {
  exchange_->report.status.disk_full = "no space left";
  run_for(2min);
  cluster_->answers = false;
  run_for(10min);
  EXPECT_EQ(firing().size(), 1u);
  const int looks = cluster_->looks;
  cluster_->answers = true;
  exchange_->report.status.disk_full.reset();
  run_for(1min);
  EXPECT_GT(cluster_->looks, looks);
  EXPECT_EQ(firing(), nlohmann::json::array());
}

}  // namespace
}  // namespace tandem::api
