// The HTTP API of runs, living and ended: /api/v1/runs and what lies below it, the samples and the
// events of a job, the logs of an actor. A run is known by its directory; where this controller
// works on it, its record says more.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/controller/cluster_picture.h"
#include "actors/controller/http_answers.h"
#include "actors/controller/log_answers.h"
#include "actors/controller/run_catalogue.h"
#include "actors/controller/run_events.h"
#include "actors/controller/run_indexes.h"

namespace tandem::actors {

class RunsApi {
 public:
  RunsApi(runtime::Ref<Controller::Inbox> controller, std::filesystem::path home,
          ReadJobFacts read_job, const HttpStreams& streams);

  // Any thread. `get` and `remove` are for targets below /api/v1/runs.
  runtime::HttpAnswer get(const runtime::HttpRequest& request);
  runtime::HttpAnswer remove(const std::string& wanted);
  // /api/v1/jobs/JOB/samples: the newest 64, oldest of them first.
  runtime::HttpAnswer job_samples(const runtime::HttpRequest& request, const std::string& job);
  // /api/v1/events
  runtime::HttpAnswer events(const runtime::HttpRequest& request);
  // /api/v1/actors/NAME/logs
  runtime::HttpAnswer actor_logs(const runtime::HttpRequest& request, const std::string& actor);
  std::size_t count() const { return catalogue_.count(); }

 private:
  nlohmann::json shown(const Run& run, const Picture* picture) const;
  runtime::HttpAnswer list();
  runtime::HttpAnswer one(const Run& run);
  runtime::HttpAnswer metrics(const Run& run, const runtime::HttpRequest& request);
  runtime::HttpAnswer samples(const Run& run, const runtime::HttpRequest& request);
  runtime::HttpAnswer run_events(const Run& run, const runtime::HttpRequest& request);
  runtime::HttpAnswer watch_events(std::int64_t after, const std::string& job);
  Result<std::vector<ClusterEvent>> events_of(const std::string& job, const EventQuery& query);
  runtime::HttpAnswer logs(const std::string& id, const std::string& run_dir, const NamedLog& log,
                           const LogQuery& query);

  const runtime::Ref<Controller::Inbox> controller_;
  const std::filesystem::path home_;
  const HttpStreams& streams_;
  RunCatalogue catalogue_;
  RunIndexes indexes_;
};

}  // namespace tandem::actors
