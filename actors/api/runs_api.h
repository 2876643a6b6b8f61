// The HTTP API of runs, live and ended: /api/v1/runs and the targets below it, the samples and the
// events of a job, the logs of an actor. A run is known by its directory; if a controller works on
// the run, the controller's record adds to it. Where no controller runs, the command line asks a
// RunsApi in its own process, so that both give the same rows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/api/cluster_picture.h"
#include "actors/api/http_answers.h"
#include "actors/api/log_answers.h"
#include "actors/api/route.h"
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

  // The routes of runs, events, samples and metrics of jobs, and logs of actors. Handlers may be
  // called on any thread, and refer to this object.
  std::vector<Route> routes();
  // How many runs there are. Any thread.
  std::size_t count() const { return catalogue_.count(); }

 private:
  using RunHandler = http::HttpAnswer (RunsApi::*)(const runs::Run&, const Call&);
  // Calls the handler with the run that the path names, and answers the error where none is found.
  RouteHandler of_run(RunHandler handler);
  RouteHandler by(http::HttpAnswer (RunsApi::*handler)(const Call&));
  // Those of /api/v1/runs; the second ones read the files of one run.
  std::vector<Route> run_routes();
  std::vector<Route> run_file_routes();

  // The newest samples, the oldest of them first.
  http::HttpAnswer job_samples(const Call& call);
  // A page of the lines of metrics.jsonl (metrics_page.h).
  http::HttpAnswer job_metrics(const Call& call);
  // The files of the job or run; without a controller also of a run directory.
  Result<runs::IndexedRun> files_of(const std::string& job);
  // Of the cluster, or with `job` of one job or run.
  http::HttpAnswer events(const Call& call);
  // Of an actor of this controller, or of a run that ended before.
  http::HttpAnswer actor_logs(const Call& call);
  // Errors of these: kUnreachable without a controller.
  Result<Picture> picture() const;
  Result<controller::ClusterView> cluster() const;
  Result<std::vector<runs::ClusterEvent>> held_events(std::int64_t after) const;
  // The run by its files, and by the controller's record where it has one; `picture` may be null.
  nlohmann::json shown(const runs::Run& run, const Picture* picture) const;
  http::HttpAnswer list(const Call& call);
  http::HttpAnswer one(const runs::Run& run, const Call& call);
  // The keys of the run's job file, with defaults as they were when it began.
  http::HttpAnswer config(const runs::Run& run, const Call& call);
  http::HttpAnswer metrics(const runs::Run& run, const Call& call);
  http::HttpAnswer samples(const runs::Run& run, const Call& call);
  http::HttpAnswer run_events(const runs::Run& run, const Call& call);
  http::HttpAnswer run_logs(const runs::Run& run, const Call& call);
  http::HttpAnswer remove(const runs::Run& run, const Call& call);
  // A stream of the controller's events with a number above `after`, of `job` or, if it is empty,
  // of all.
  http::HttpAnswer watch_events(std::int64_t after, const std::string& job);
  // The events that this controller, earlier ones of this state folder and those of `tandem run`s
  // have announced. `run` is null where the job has no run directory.
  Result<std::vector<runs::ClusterEvent>> announced(const std::string& job, const runs::Run* run,
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
