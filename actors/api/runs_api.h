// The HTTP API of runs, live and ended: /api/v1/runs and the targets below it, the samples and the
// events of a job, the logs of an actor. A run is known by its directory; if a controller works on
// the run, the controller's record adds to it. Where no controller runs, the command line asks a
// RunsApi in its own process, so that both give the same rows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "actors/api/cluster_picture.h"
#include "actors/api/http_answers.h"
#include "actors/api/log_answers.h"
#include "actors/runs/cluster_event.h"
#include "actors/runs/run_catalogue.h"
#include "actors/runs/run_indexes.h"

namespace tandem::api {

// The controller whose process serves the API, and the streams of that process.
struct ServingController {
  actor::Ref<controller::Controller::Inbox> controller;
  const HttpStreams& streams;  // outlives the RunsApi
};

// Each answer reads files and, where there is a controller, asks it for its view.
class RunsApi {
 public:
  // `controller` is empty in a process without one: nothing is then followed, and a directory may
  // be given for a job.
  RunsApi(std::optional<ServingController> controller, std::filesystem::path home,
          runs::JobReaders read_job);

  // Both may be called on any thread. get() answers a GET below /api/v1 of runs, events, samples
  // and metrics of jobs, and logs of actors; nullopt for other targets.
  std::optional<http::HttpAnswer> get(const http::HttpRequest& request);
  http::HttpAnswer remove(const std::string& wanted);
  std::size_t count() const { return catalogue_.count(); }

 private:
  // The targets below /api/v1/runs.
  http::HttpAnswer get_runs(const http::HttpRequest& request);
  // /api/v1/jobs/JOB/samples: the newest ones, the oldest of them first.
  http::HttpAnswer job_samples(const http::HttpRequest& request, const std::string& job);
  // /api/v1/jobs/JOB/metrics: a page of its lines (metrics_page.h).
  http::HttpAnswer job_metrics(const http::HttpRequest& request, const std::string& job);
  // The files of the job or run; without a controller also of a run directory.
  Result<runs::IndexedRun> files_of(const std::string& job);
  // /api/v1/events: of the cluster, or with `job` of one job or run.
  http::HttpAnswer events(const http::HttpRequest& request);
  // /api/v1/actors/NAME/logs: of an actor of this controller, or of a run that ended before.
  http::HttpAnswer actor_logs(const http::HttpRequest& request, const std::string& actor);
  // Errors of these: kUnreachable without a controller.
  Result<Picture> picture() const;
  Result<controller::ClusterView> cluster() const;
  Result<std::vector<runs::ClusterEvent>> held_events(std::int64_t after) const;
  // The run by its files, and by the controller's record where it has one; `picture` may be null.
  nlohmann::json shown(const runs::Run& run, const Picture* picture) const;
  http::HttpAnswer list();
  http::HttpAnswer one(const runs::Run& run);
  // The keys of the run's job file, with defaults as they were when it began.
  http::HttpAnswer config(const runs::Run& run);
  http::HttpAnswer metrics(const runs::Run& run, const http::HttpRequest& request);
  http::HttpAnswer samples(const runs::Run& run, const http::HttpRequest& request);
  http::HttpAnswer run_events(const runs::Run& run, const http::HttpRequest& request);
  // A stream of the controller's events with a number above `after`, of `job` or, if it is empty,
  // of all.
  http::HttpAnswer watch_events(std::int64_t after, const std::string& job);
  // The events that this controller and earlier ones of this state folder have announced.
  Result<std::vector<runs::ClusterEvent>> announced(const std::string& job,
                                                    const runs::EventQuery& query);
  // The events of a run: those that controllers have announced, and before the first of these the
  // milestones of the run's journal.
  Result<std::vector<runs::ClusterEvent>> events_of(const std::string& job,
                                                    const runs::EventQuery& query);
  http::HttpAnswer logs(const std::string& id, const std::string& run_dir, const NamedLog& log,
                        const LogQuery& query);

  const std::optional<ServingController> serving_;
  const std::filesystem::path home_;
  // Both have locks of their own, so no member needs one here.
  runs::RunCatalogue catalogue_;
  runs::RunIndexes indexes_;
};

}  // namespace tandem::api
