// The HTTP API of runs, live and ended: /api/v1/runs and the targets below it, the samples and the
// events of a job, the logs of an actor. A run is known by its directory; if this controller works
// on the run, the controller's record adds to it.
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

// `streams` must outlive this object. Each answer reads files, and asks the controller for its
// view.
class RunsApi {
 public:
  RunsApi(runtime::Ref<Controller::Inbox> controller, std::filesystem::path home,
          ReadJobFacts read_job, const HttpStreams& streams);

  // All of these may be called on any thread. get() and remove() serve the targets below
  // /api/v1/runs.
  runtime::HttpAnswer get(const runtime::HttpRequest& request);
  runtime::HttpAnswer remove(const std::string& wanted);
  // /api/v1/jobs/JOB/samples: the newest ones, the oldest of them first.
  runtime::HttpAnswer job_samples(const runtime::HttpRequest& request, const std::string& job);
  // /api/v1/events: of the cluster, or with `job` of one job or run.
  runtime::HttpAnswer events(const runtime::HttpRequest& request);
  // /api/v1/actors/NAME/logs: of an actor of this controller, or of a run that ended before.
  runtime::HttpAnswer actor_logs(const runtime::HttpRequest& request, const std::string& actor);
  std::size_t count() const { return catalogue_.count(); }

 private:
  // The run by its files, and by the controller's record where it has one; `picture` may be null.
  nlohmann::json shown(const Run& run, const Picture* picture) const;
  runtime::HttpAnswer list();
  runtime::HttpAnswer one(const Run& run);
  runtime::HttpAnswer metrics(const Run& run, const runtime::HttpRequest& request);
  runtime::HttpAnswer samples(const Run& run, const runtime::HttpRequest& request);
  runtime::HttpAnswer run_events(const Run& run, const runtime::HttpRequest& request);
  // A stream of the controller's events with a number above `after`, of `job` or, if it is empty,
  // of all.
  runtime::HttpAnswer watch_events(std::int64_t after, const std::string& job);
  Result<std::vector<ClusterEvent>> events_of(const std::string& job, const EventQuery& query);
  runtime::HttpAnswer logs(const std::string& id, const std::string& run_dir, const NamedLog& log,
                           const LogQuery& query);

  const runtime::Ref<Controller::Inbox> controller_;
  const std::filesystem::path home_;
  const HttpStreams& streams_;
  // Both have locks of their own, so no member needs one here.
  RunCatalogue catalogue_;
  RunIndexes indexes_;
};

}  // namespace tandem::actors
