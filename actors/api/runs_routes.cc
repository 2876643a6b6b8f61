// The routes of RunsApi, with their queries, answers and errors. The handlers are in runs_api.cc.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "actors/api/run_queries.h"
#include "actors/api/runs_api.h"
#include "actors/api/schema.h"

namespace tandem::api {

using http::HttpAnswer;
using schema::list_of;
using schema::ref;

namespace {

constexpr RouteError kWrongQuery{400, "A value of the query is wrong."};
constexpr RouteError kNoRun{404, "There is no such run."};
constexpr RouteError kSeveralRuns{400,
                                  "A value of the query is wrong, or several runs have the name."};
constexpr RouteError kNoJob{404, "There is no such job or run."};
constexpr RouteError kNotWatched{400, "Several runs have the name, or `watch` is set."};

std::vector<Body> events_answers() {
  return {json_body(list_of(ref("Event")), "Events, oldest first."),
          json_lines_body(ref("Event"), "With `watch`, one for each line.")};
}

}  // namespace

RouteHandler RunsApi::of_run(RunHandler handler) {
  return [this, handler](const Call& call) -> HttpAnswer {
    const auto run = catalogue_.find(call.at("run"));
    return run ? (this->*handler)(*run, call) : http::error_response(run.error());
  };
}

RouteHandler RunsApi::by(HttpAnswer (RunsApi::*handler)(const Call&)) {
  return [this, handler](const Call& call) { return (this->*handler)(call); };
}

std::vector<Route> RunsApi::routes() {
  std::vector<Route> routes = run_routes();
  routes.push_back(
      {.method = "GET",
       .path = "/api/v1/jobs/{job}/samples",
       .id = "job_samples",
       .summary = "Samples of a job",
       .about = "The newest samples, the oldest of them first.",
       .query = {kSampleStep, kSampleEvaluation, kSampleFailed, kSampleBefore, kSampleLimit,
                 kSampleSteps},
       .answers = {json_body(schema::any_of({list_of(ref("Sample")), list_of(schema::integer())}),
                             "Samples; with `steps`, the numbers of the steps that have some.")},
       .errors = {kSeveralRuns, kNoJob},
       .handler = by(&RunsApi::job_samples)});
  routes.push_back({.method = "GET",
                    .path = "/api/v1/jobs/{job}/metrics",
                    .id = "job_metrics",
                    .summary = "Lines of a job's metrics",
                    .about =
                        "Lines of metrics.jsonl as they are, about 4 MiB of them. In `keys`, "
                        "`*` stands for any characters and `?` for one; without it, each line "
                        "has all its keys. An error says that the file was replaced meanwhile.",
                    .query = {kMetricKeys, kStepsFrom, kStepsTo, kAfterPage},
                    .answers = {json_body(ref("MetricsLines"), "One page.")},
                    .errors = {kSeveralRuns, kNoJob},
                    .handler = by(&RunsApi::job_metrics)});
  routes.push_back(
      {.method = "GET",
       .path = "/api/v1/actors/{actor...}/logs",
       .id = "actor_logs",
       .summary = "The log of an actor",
       .about = "At most its last 4 MiB.",
       .query = {kLogTail, kLogSince, kLogFollow, kLogPrevious, kLogFrom},
       .answers = {text_body("Lines; with `follow` they go on.")},
       .errors = {{400, "A value of the query is wrong, or several jobs have the name."},
                  {404, "There is no such actor, or it has no such log."}},
       .handler = by(&RunsApi::actor_logs)});
  routes.push_back({.method = "GET",
                    .path = "/api/v1/events",
                    .id = "list_events",
                    .summary = "Events of the cluster",
                    .query = {kEventsSince, kEventsLimit, kEventsJob, kWatch},
                    .answers = events_answers(),
                    .errors = {kWrongQuery},
                    .handler = by(&RunsApi::events)});
  return routes;
}

std::vector<Route> RunsApi::run_routes() {
  std::vector<Route> routes = {
      {.method = "GET",
       .path = "/api/v1/runs",
       .id = "list_runs",
       .summary = "Runs, also ended ones",
       .about = "The runs below TANDEM_HOME/runs. They cannot be watched.",
       .answers = {json_body(list_of(ref("Run")), "Runs, newest first.")},
       .errors = {{400, "`watch` is set."}},
       .handler = by(&RunsApi::list)},
      {.method = "GET",
       .path = "/api/v1/runs/{run}",
       .id = "get_run",
       .summary = "One run, with its actors and its result",
       .answers = {json_body(ref("Run"), "The run.")},
       .errors = {kNotWatched, kNoRun},
       .handler = of_run(&RunsApi::one)},
  };
  for (const auto& [method, path, id] :
       {std::tuple("DELETE", "/api/v1/runs/{run}", "delete_run"),
        std::tuple("POST", "/api/v1/runs/{run}/delete", "delete_run_by_post")})
    routes.push_back(
        {.method = method,
         .path = path,
         .id = id,
         .summary = "Deletes a run that has ended",
         .about = "Removes its directory, and the job's record.",
         .answers = {json_body(ref("Id"), "It is deleted.")},
         .errors = {{400, "Several runs have the name."}, kNoRun, {409, "The run has not ended."}},
         .handler = of_run(&RunsApi::remove)});
  std::ranges::move(run_file_routes(), std::back_inserter(routes));
  return routes;
}

std::vector<Route> RunsApi::run_file_routes() {
  return {
      {.method = "GET",
       .path = "/api/v1/runs/{run}/config",
       .id = "run_config",
       .summary = "The job file of a run, with all defaults",
       .answers = {json_body(ref("RunConfig"), "Its keys and values.")},
       .errors = {{400, "Several runs have the name, or the job file cannot be read."},
                  {404, "There is no such run, or it has no job file."}},
       .handler = of_run(&RunsApi::config)},
      {.method = "GET",
       .path = "/api/v1/runs/{run}/metrics",
       .id = "run_metrics",
       .summary = "Series of a run's metrics, for plots",
       .about = "For each key at most `points` buckets of steps, with minimum, maximum and mean. "
                "Without `keys`, only the list of keys and the range of steps.",
       .query = {kMetricKeys, kStepsFrom, kStepsTo, kPoints},
       .answers = {json_body(ref("RunMetrics"), "The series.")},
       .errors = {kSeveralRuns, kNoRun},
       .handler = of_run(&RunsApi::metrics)},
      {.method = "GET",
       .path = "/api/v1/runs/{run}/samples",
       .id = "run_samples",
       .summary = "Samples of a run",
       .query = {kSampleStep, kSampleEvaluation, kSampleFailed, kSampleBefore, kSampleLimit},
       .answers = {json_body(list_of(ref("Sample")), "Samples, newest first.")},
       .errors = {kSeveralRuns, kNoRun},
       .handler = of_run(&RunsApi::samples)},
      {.method = "GET",
       .path = "/api/v1/runs/{run}/events",
       .id = "run_events",
       .summary = "Events of a run",
       .query = {kEventsSince, kEventsLimit, kWatch},
       .answers = events_answers(),
       .errors = {kSeveralRuns, kNoRun},
       .handler = of_run(&RunsApi::run_events)},
      {.method = "GET",
       .path = "/api/v1/runs/{run}/logs/{log...}",
       .id = "run_log",
       .summary = "A log of a run",
       .about = "At most its last 4 MiB.",
       .query = {kLogTail, kLogSince, kLogFollow, kLogPrevious, kLogFrom},
       .answers = {text_body("Lines; with `follow` they go on.")},
       .errors = {kSeveralRuns, {404, "There is no such run, or it has no such log."}},
       .handler = of_run(&RunsApi::run_logs)},
  };
}

}  // namespace tandem::api
