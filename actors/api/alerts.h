// The actor that watches the controller's own figures for alerts, so that they are seen without a
// Prometheus: every kAlertsEvery it asks the controller and the exchanges, as /metrics does, and
// hands the samples to an AlertWatch. What begins and what ends is told as an event of the kind
// `alert`. An exchange that does not answer is left out of that look, and its alerts stand.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "actors/api/alert_watch.h"
#include "actors/api/api_json.h"
#include "actors/api/home_disk.h"
#include "actors/controller/controller.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/ref.h"
#include "runtime/actor/system.h"

namespace tandem::api {

inline constexpr Duration kAlertsEvery = std::chrono::seconds(10);

struct WatchAlerts {};  // the first look; the others follow until the system ends
struct FiringAlerts {
  std::vector<Alert> alerts;
  Time now{};
};
struct GetAlerts {
  using Reply = FiringAlerts;
};

class Alerts {
 public:
  using Inbox = std::variant<WatchAlerts, actor::Ask<GetAlerts>>;
  Alerts(actor::Ref<controller::Controller::Inbox> controller, DiskLook disk);

  void handle(actor::Context& cx, WatchAlerts);
  void handle(actor::Context& cx, actor::Ask<GetAlerts> ask);

 private:
  void ask_exchanges(actor::Context& cx);
  void judge(actor::Context& cx);

  const actor::Ref<controller::Controller::Inbox> controller_;
  const DiskLook disk_;
  AlertWatch watch_;
  // The look under way: how many exchanges have not answered yet, and what is known.
  std::size_t unanswered_ = 0;
  controller::ClusterView cluster_;
  ExchangeReports reports_;
};
static_assert(actor::Actor<Alerts>);

// Spawns the actor, and has it look.
actor::Ref<Alerts::Inbox> watch_alerts(actor::System& system,
                                       const actor::Ref<controller::Controller::Inbox>& controller,
                                       const DiskLook& disk);

// The API's objects of the alerts: of this job alone, or of all where it is empty.
nlohmann::json alerts_json(const FiringAlerts& firing, const std::string& job = "");

}  // namespace tandem::api
