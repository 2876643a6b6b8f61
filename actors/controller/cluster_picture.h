// The cluster at one moment, as one HTTP answer needs it: what the controller and the exchanges
// say, and the API's objects made from it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "actors/controller/api_json.h"
#include "actors/controller/controller.h"

namespace tandem::actors {

struct Picture {
  ClusterView cluster;
  ExchangeReports reports;

  const ExchangeReport* report(const std::string& job) const;
  // An id, or a name that one job alone has (the newest of those still running, else the newest).
  const JobRecord* job(const std::string& wanted) const;
  nlohmann::json shown(const JobRecord& job) const;
  nlohmann::json shown(const JobRecord& job, const ActorRecord& actor) const;
};

Result<Picture> take_picture(const runtime::Ref<Controller::Inbox>& controller);

struct FoundActor {
  const JobRecord* job = nullptr;
  const ActorRecord* actor = nullptr;
};
// "JOB/rollout/0" is one actor; "rollout/0" is one if a single job has it.
Result<FoundActor> find_actor(const Picture& picture, const std::string& wanted);

// All of a kind: "jobs", "actors", "nodes", "groups".
nlohmann::json list(const Picture& picture, const std::string& kind);
Result<nlohmann::json> find_one(const Picture& picture, const std::string& kind,
                                const std::string& name);

// `GET /api/v1/status` but for what the process alone knows.
nlohmann::json status_json(const ClusterView& cluster);

}  // namespace tandem::actors
