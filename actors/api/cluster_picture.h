// The cluster at one moment, as one HTTP answer needs it: the views of the controller, of the
// exchanges and of the watchdog, and the API's objects made from them.
//
// Used on the HTTP server's threads. take_picture() and list("groups") ask actors and wait for
// their answers, at most kApiAskTimeout each; the other functions do not wait.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/api/alerts.h"
#include "actors/api/api_json.h"
#include "actors/controller/controller.h"
#include "actors/controller/watchdog.h"

namespace tandem::api {

// Pointers that its members return point into the picture, and are valid while it is not changed.
struct Picture {
  controller::ClusterView cluster;
  ExchangeReports reports;
  controller::WorkByActor work = {};
  FiringAlerts alerts = {};

  const messages::ExchangeReport* report(const std::string& job) const;
  // The job of this id, or else of this name: one that still runs if there is one, and the last in
  // the list among several. Null if there is none.
  const controller::JobRecord* job(const std::string& wanted) const;
  nlohmann::json shown(const controller::JobRecord& job) const;
  nlohmann::json shown(const controller::JobRecord& job,
                       const controller::ActorRecord& actor) const;
};

// The actors that are asked besides the exchanges.
struct PictureSources {
  actor::Ref<controller::Controller::Inbox> controller;
  actor::Ref<controller::Watchdog::Inbox> watchdog = {};  // empty: it is not asked
  actor::Ref<Alerts::Inbox> alerts = {};                  // likewise
};
// Asks the controller, then each exchange of the page, and for jobs and actors the watchdog
// and the alerts. Fails
// only if the controller does not answer; another actor that does not is left out.
Result<Picture> take_picture(const PictureSources& from, const controller::ViewPage& page = {});
// Of the job of this id alone, or of all where there is none: the job may be meant by its name.
Result<Picture> picture_of(const PictureSources& from, const std::string& job);

struct FoundActor {
  const controller::JobRecord* job = nullptr;
  const controller::ActorRecord* actor = nullptr;
};
// "JOB/rollout/0" names one actor; "rollout/0" does if a single job that is not over has such an
// actor. Fails with kNotFound, or kInvalid where several jobs have one.
Result<FoundActor> find_actor(const Picture& picture, const std::string& wanted);

// From where a list of groups goes on, behind a group of a job, and how long it is.
struct GroupsPage {
  std::string job = {};
  std::uint64_t after = 0;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
};
// The objects of a kind that the picture has: "jobs", "actors", "nodes" or "groups". Jobs are
// without `rates.rollouts`, the row for each rollout; find_one() has it.
nlohmann::json list(const Picture& picture, const std::string& kind, const GroupsPage& page = {});
// The object of a kind by its name, or by its number for a group. kNotFound if there is none.
Result<nlohmann::json> find_one(const Picture& picture, const std::string& kind,
                                const std::string& name);

// The part of `GET /api/v1/status` that the controller knows; its process adds the rest.
nlohmann::json status_json(const controller::ClusterCounts& counts);

}  // namespace tandem::api
