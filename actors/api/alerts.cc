#include "actors/api/alerts.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "actors/api/prometheus.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"

namespace tandem::api {
namespace {

constexpr Duration kAlertAskTimeout = std::chrono::seconds(5);

// The event of what begins or ends. An alert about no job is about the controller's cluster.
controller::ProcessNews event_of(const AlertNews& news, Time now) {
  const Alert& alert = news.alert;
  const auto& [job, actor, journal, directory] = alert.subject;
  controller::ProcessNews event{.kind = "alert"};
  event.subject = !actor.empty() ? actor : !job.empty() ? job : "controller";
  event.message = alert.rule->name;
  if (news.fires) {
    event.message += ": " + summary(alert) + " " + advice(alert);
    event.level = alert.rule->severity == AlertSeverity::kCritical ? messages::EventLevel::kError
                                                                   : messages::EventLevel::kWarning;
  } else {
    event.message +=
        " is over, after " + std::to_string((now - alert.since) / std::chrono::seconds(1)) + " s";
    event.level = messages::EventLevel::kInfo;
  }
  return event;
}

}  // namespace

Alerts::Alerts(actor::Ref<controller::Controller::Inbox> controller, DiskLook disk)
    : controller_(std::move(controller)), disk_(std::move(disk)) {}

void Alerts::handle(actor::Context& cx, WatchAlerts) {
  cx.ask(controller_, controller::GetCluster{}, kAlertAskTimeout,
         [this](actor::Context& then, Result<controller::ClusterView> cluster) {
           if (cluster) {
             cluster_ = *std::move(cluster);
             ask_exchanges(then);
           } else {
             // Nothing is known of this moment: what stands, stands.
             then.after(kAlertsEvery,
                        [this](actor::Context& next) { handle(next, WatchAlerts{}); });
           }
         });
}

void Alerts::ask_exchanges(actor::Context& cx) {
  reports_.clear();
  unanswered_ = cluster_.exchanges.size();
  for (const auto& [job, exchange] : cluster_.exchanges)
    cx.ask(exchange, messages::GetExchangeReport{}, kAlertAskTimeout,
           [this, id = job](actor::Context& then, Result<messages::ExchangeReport> report) {
             if (report) reports_.emplace(id, *std::move(report));
             if (--unanswered_ == 0) judge(then);
           });
  if (unanswered_ == 0) judge(cx);
}

void Alerts::judge(actor::Context& cx) {
  const std::vector<std::string> families = watch_.families();
  std::set<std::string> unheard;
  for (const auto& [job, exchange] : cluster_.exchanges)
    if (!reports_.contains(job)) unheard.insert(job);
  for (const AlertNews& news :
       watch_.look(metric_samples(cluster_, reports_, disk_(), families), cx.now(), unheard))
    // An event for which the controller has no room now is left out: the API still shows the alert.
    if (controller_.tell(event_of(news, cx.now())) != actor::Delivery::kAccepted)
      log::warn("event=alert_not_told name={} fires={}", news.alert.rule->name, news.fires);
  cluster_ = {};
  reports_.clear();
  cx.after(kAlertsEvery, [this](actor::Context& then) { handle(then, WatchAlerts{}); });
}

void Alerts::handle(actor::Context& cx, actor::Ask<GetAlerts> ask) {
  ask.reply(FiringAlerts{.alerts = watch_.firing(), .now = cx.now()});
}

actor::Ref<Alerts::Inbox> watch_alerts(actor::System& system,
                                       const actor::Ref<controller::Controller::Inbox>& controller,
                                       const DiskLook& disk) {
  auto alerts = system.spawn<Alerts>(
      "alerts", [controller, disk] { return std::make_unique<Alerts>(controller, disk); });
  CHECK(alerts.tell(WatchAlerts{}) == actor::Delivery::kAccepted);
  return alerts;
}

nlohmann::json alerts_json(const FiringAlerts& firing, const std::string& job) {
  nlohmann::json all = nlohmann::json::array();
  for (const Alert& alert : firing.alerts) {
    const auto& [of_job, actor, journal, directory] = alert.subject;
    if (!job.empty() && of_job != job) continue;
    all.push_back({{"name", alert.rule->name},
                   {"severity", name(alert.rule->severity)},
                   {"job", of_job.empty() ? nlohmann::json() : nlohmann::json(of_job)},
                   {"actor", actor.empty() ? nlohmann::json() : nlohmann::json(actor)},
                   {"message", summary(alert)},
                   {"advice", advice(alert)},
                   {"value", alert.value},
                   {"since_s", seconds(firing.now - alert.since)}});
  }
  return all;
}

}  // namespace tandem::api
