// Routes and their queries; the work is done by the catalogue, the indexes, and the readers of
// events and logs. Nothing here holds a lock, or waits for anything but the controller's answer and
// the disk.
//
// A run has two sources, the files of its directory and the controller's record, and they may
// disagree: another process may have resumed a run that is over here. A live lock with a final
// record therefore means that the files are right.
#include "actors/api/runs_api.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "actors/runs/cluster_journal.h"
#include "actors/runs/metrics_page.h"
#include "actors/runs/run_events.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::api {

namespace fs = std::filesystem;
using http::HttpAnswer;
using http::HttpRequest;
using http::HttpStream;
using nlohmann::json;

namespace {

constexpr std::int64_t kNumberMax = runs::kStepMax;

HttpAnswer refuse(const Error& error) { return http::error_response(error); }

HttpAnswer answer_of(const Result<json>& body) { return body ? ok(*body) : refuse(body.error()); }

std::vector<std::string> words_of(const std::string& list) {  // "a,b"
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

struct MetricsQuery {
  std::vector<std::string> keys;
  runs::StepRange range{runs::kVersionMin, kNumberMax};
  std::size_t points = runs::kPointsDefault;
};

Result<MetricsQuery> metrics_query(const HttpRequest& request) {
  MetricsQuery query{.keys = words_of(query_text(request, "keys"))};
  if (query.keys.size() > runs::kMetricKeysMax)
    return Error{ErrorCode::kInvalid,
                 "keys= names more than " + std::to_string(runs::kMetricKeysMax)};
  const auto from = query_number(request, "from", {runs::kVersionMin, kNumberMax});
  const auto to = query_number(request, "to", {runs::kVersionMin, kNumberMax});
  const auto points =
      query_number(request, "points", {1, static_cast<std::int64_t>(runs::kPointsMax)});
  // The first wrong number is the answer.
  for (const auto* number : {&from, &to, &points})
    if (!*number) return number->error();
  query.range = {from->value_or(runs::kVersionMin), to->value_or(kNumberMax)};
  query.points = static_cast<std::size_t>(points->value_or(runs::kPointsDefault));
  return query;
}

Result<runs::MetricsPageQuery> page_query(const HttpRequest& request) {
  const auto query = metrics_query(request);  // the same keys and range, without points
  if (!query) return query.error();
  return runs::MetricsPageQuery{query->keys, query->range, query_text(request, "after")};
}

json series_json(const runs::MetricsIndex& index, const MetricsQuery& query) {
  const auto range = index.steps();
  json series = json::object();
  for (const std::string& key : query.keys) {
    runs::MetricSeries found = index.series(key, query.range, query.points);
    series[key] = {{"steps", std::move(found.steps)},
                   {"min", std::move(found.min)},
                   {"max", std::move(found.max)},
                   {"mean", std::move(found.mean)}};
  }
  return {{"step_min", range ? json(range->first) : json()},
          {"step_max", range ? json(range->last) : json()},
          {"keys", index.keys()},
          {"series", std::move(series)},
          {"complete", index.complete()}};
}

// eval=1: samples of evaluations alone; eval=any: both kinds; otherwise those of training alone.
Result<runs::SampleQuery> sample_query(const HttpRequest& request) {
  const auto step = query_number(request, "step", {-1, kNumberMax});
  const auto limit =
      query_number(request, "limit", {1, static_cast<std::int64_t>(runs::kSamplePageMax)});
  const auto before = query_number(request, "before", {0, kNumberMax});
  for (const auto* number : {&step, &limit, &before})
    if (!*number) return number->error();
  runs::SampleQuery query{
      .step = *step, .failed = query_flag(request, "failed"), .before = *before};
  if (query_text(request, "eval") != "any") query.evaluation = query_flag(request, "eval");
  query.limit = static_cast<std::size_t>(limit->value_or(runs::kSamplePageDefault));
  return query;
}

Result<runs::EventQuery> event_query(const HttpRequest& request) {
  const auto since = query_number(request, "since", {0, kNumberMax});
  const auto limit =
      query_number(request, "limit", {1, static_cast<std::int64_t>(runs::kEventsMax)});
  for (const auto* number : {&since, &limit})
    if (!*number) return number->error();
  return runs::EventQuery{
      .since = *since,
      .limit = static_cast<std::size_t>(limit->value_or(std::int64_t{runs::kEventsDefault}))};
}

json events_json(const std::vector<runs::ClusterEvent>& events) {
  json array = json::array();
  for (const runs::ClusterEvent& event : events) array.push_back(event_json(event));
  return array;
}

Error no_controller() {
  return {ErrorCode::kUnreachable, "no controller runs here", "", "`tandem up` starts a cluster"};
}

// Whether that incarnation of an actor can write no more, by the controller's records.
bool is_over(const controller::ClusterView& cluster, const std::string& id, const NamedLog& log) {
  const std::string actor = id + "/" + log.actor.substr(0, log.actor.find('@'));  // "learner/0@1"
  for (const controller::JobRecord& job : cluster.jobs) {
    if (job.id != id) continue;
    const auto it = job.actors.find(actor);
    return it == job.actors.end() || it->second.incarnation != log.incarnation ||
           std::ranges::none_of(it->second.ranks,
                                [](const controller::RankRecord& r) { return r.alive; });
  }
  return true;
}

}  // namespace

RunsApi::RunsApi(std::optional<ServingController> controller, fs::path home,
                 runs::JobReaders read_job)
    : serving_(std::move(controller)),
      home_(std::move(home)),
      catalogue_(home_, std::move(read_job)) {}

Result<Picture> RunsApi::picture() const {
  if (!serving_) return no_controller();
  return take_picture(serving_->controller);
}

Result<controller::ClusterView> RunsApi::cluster() const {
  if (!serving_) return no_controller();
  return ask_and_wait(serving_->controller, controller::GetCluster{}, kApiAskTimeout);
}

Result<std::vector<runs::ClusterEvent>> RunsApi::held_events(std::int64_t after) const {
  if (!serving_) return no_controller();
  return ask_and_wait(serving_->controller, controller::GetEvents{after}, kApiAskTimeout);
}

// The controller's record gives the words if this controller has worked on the run, and the figures
// as well while the run is live.
json RunsApi::shown(const runs::Run& run, const Picture* picture) const {
  json object = run_json(run, unix_ms());
  const controller::JobRecord* record = nullptr;
  if (picture)
    for (const controller::JobRecord& job : picture->cluster.jobs)
      if (job.id == run.id) record = &job;
  // Another process may have resumed the run after it was over here, and a job that ended before it
  // resumed the run has left its outcome beside the run's.
  if (!record || (run.live && scheduler::is_final(record->status.state)) ||
      (ended_unresumed(*record) && scheduler::is_final(record->status.state)))
    return object;
  const bool over = scheduler::is_final(record->status.state);
  const json job = picture->shown(*record);
  for (const char* const key : {"state", "reason", "message", "total_steps"})
    object[key] = job[key];
  object["live"] = !over;
  if (over && object["ended"].is_null()) object["ended"] = job["ended"];
  if (over) return object;
  for (const char* const key : {"step", "policy_version", "reward_mean"}) object[key] = job[key];
  object["ended"] = nullptr;
  return object;
}

HttpAnswer RunsApi::list() {
  const auto picture = this->picture();
  json array = json::array();
  for (const runs::Run& run : catalogue_.list())
    array.push_back(shown(run, picture ? &*picture : nullptr));
  return ok(array);
}

HttpAnswer RunsApi::one(const runs::Run& run) {
  const auto picture = this->picture();
  json object = shown(run, picture ? &*picture : nullptr);
  // Logs may have been deleted, and an actor without groups is in no journal: both are asked.
  auto incarnations = runs::journal_holders(run.run_dir);
  for (const node::ActorLogs& logs : node::logs_in(run.run_dir / "logs"))
    for (const Incarnation incarnation : logs.incarnations)
      incarnations[logs.actor].insert(incarnation.value);
  object["actors"] = json::array();
  for (const auto& [actor, numbers] : incarnations)
    object["actors"].push_back({{"name", actor}, {"incarnations", numbers}});
  object["result"] = run.result;
  if (object["message"]
          .get_ref<const std::string&>()
          .empty())  // the last event about the run takes its place
    if (const auto events = events_of(run.id, {}))
      for (const runs::ClusterEvent& event : *events)
        if (event.subject == run.id) object["message"] = event.message;
  return ok(object);
}

HttpAnswer RunsApi::config(const runs::Run& run) {
  const auto keys = catalogue_.keys_of(run);
  if (!keys) return refuse(keys.error());
  json config = json::array();
  for (const auto& [key, value] : *keys) config.push_back({{"key", key}, {"value", value}});
  return ok(json{{"id", run.id}, {"config", std::move(config)}});
}

HttpAnswer RunsApi::metrics(const runs::Run& run, const HttpRequest& request) {
  const auto query = metrics_query(request);
  if (!query) return refuse(query.error());
  return answer_of(indexes_.metrics({run.run_dir, run.live}, [&](const runs::MetricsIndex& index) {
    json body = series_json(index, *query);
    body["id"] = run.id;
    body["live"] = run.live;
    return body;
  }));
}

HttpAnswer RunsApi::samples(const runs::Run& run, const HttpRequest& request) {
  const auto query = sample_query(request);
  if (!query) return refuse(query.error());
  return answer_of(indexes_.samples({run.run_dir, run.live}, *query));
}

Result<runs::IndexedRun> RunsApi::files_of(const std::string& job) {
  const auto picture = this->picture();
  if (const controller::JobRecord* record = picture ? picture->job(job) : nullptr)
    return runs::IndexedRun{record->run_dir, !scheduler::is_final(record->status.state)};
  // Over HTTP a path would let a client read outside the runs.
  if (!serving_ && fs::path(job).is_absolute())
    return runs::IndexedRun{job, FileLock::held(fs::path(job) / "run.lock")};
  const auto found = catalogue_.find(job);
  if (found) return runs::IndexedRun{found->run_dir, found->live};
  return found.error().code == ErrorCode::kNotFound ? no_such("job", job) : found.error();
}

HttpAnswer RunsApi::job_samples(const HttpRequest& request, const std::string& job) {
  const auto query = sample_query(request);
  if (!query) return refuse(query.error());
  const auto run = files_of(job);
  if (!run) return refuse(run.error());
  if (query_flag(request, "steps")) return answer_of(indexes_.sample_steps(*run, *query));
  auto page = indexes_.samples(*run, *query);
  // A page is newest first; this target answers oldest first.
  if (page) std::reverse(page->begin(), page->end());
  return answer_of(page);
}

HttpAnswer RunsApi::job_metrics(const HttpRequest& request, const std::string& job) {
  const auto query = page_query(request);
  if (!query) return refuse(query.error());
  const auto run = files_of(job);
  if (!run) return refuse(run.error());
  return answer_of(runs::metrics_page(run->run_dir, *query));
}

// Announced events are those of the state folder's journal, and of the controller's memory, which
// has the newest. A process without a state folder of its own, `tandem run`, announces to itself
// alone: the run's journal tells of its time. Numbers of both are not comparable, so `since` means
// those of the announced ones wherever there are any.
Result<std::vector<runs::ClusterEvent>> RunsApi::announced(const std::string& job,
                                                           const runs::EventQuery& query) {
  auto kept = announced_events(home_, job, query);
  if (!kept || !serving_) return kept;
  auto held = held_events(query.since.value_or(0));
  if (!held) return held.error();
  std::erase_if(*held, [&](const runs::ClusterEvent& event) { return !is_of_job(event, job); });
  return merged(std::move(*kept), std::move(*held), query);
}

Result<std::vector<runs::ClusterEvent>> RunsApi::events_of(const std::string& job,
                                                           const runs::EventQuery& query) {
  auto events = announced(job, query);
  const auto run = catalogue_.find(job);
  if (!events || !run) return events;
  if (query.since) {
    const auto any = events->empty() ? announced(job, {.since = {}, .limit = 1}) : events;
    if (!any || !any->empty()) return events;
  }
  auto told = journal_events(run->run_dir, run->id, query);
  if (!told) return told.error();
  const std::int64_t first = events->empty() ? kNumberMax : events->front().time_ms;
  std::erase_if(*told, [&](const runs::ClusterEvent& event) { return event.time_ms >= first; });
  return merged(std::move(*told), std::move(*events), query);
}

HttpAnswer RunsApi::run_events(const runs::Run& run, const HttpRequest& request) {
  const auto query = event_query(request);
  if (!query) return refuse(query.error());
  if (query_flag(request, "watch")) return watch_events(query->since.value_or(0), run.id);
  const auto events = events_of(run.id, *query);
  return events ? ok(events_json(*events)) : refuse(events.error());
}

HttpAnswer RunsApi::watch_events(std::int64_t after, const std::string& job) {
  if (!serving_) return refuse(no_controller());
  // The number of the last event that was written, kept between two turns of the feed.
  const auto seen = std::make_shared<std::int64_t>(after);
  return serving_->streams.stream(
      [controller = serving_->controller, seen, job](HttpStream& out, Time) {
        const auto events = ask_and_wait(controller, controller::GetEvents{*seen}, kApiAskTimeout);
        if (!events) return false;
        for (const runs::ClusterEvent& event : *events) {
          *seen = event.seq;
          if ((job.empty() || is_of_job(event, job)) && !out.write(dump_json(event_json(event))))
            return false;
        }
        return true;
      });
}

HttpAnswer RunsApi::events(const HttpRequest& request) {
  const auto query = event_query(request);
  if (!query) return refuse(query.error());
  std::string job = query_text(request, "job");
  if (!job.empty()) {
    const auto picture = this->picture();
    if (const controller::JobRecord* record = picture ? picture->job(job) : nullptr)
      job = record->id;
    else if (const auto run = catalogue_.find(job))
      job = run->id;
  }
  if (query_flag(request, "watch")) return watch_events(query->since.value_or(0), job);
  auto events = job.empty() ? held_events(query->since.value_or(0)) : events_of(job, *query);
  if (!events) return refuse(events.error());
  return ok(events_json(merged(std::move(*events), {}, *query)));
}

HttpAnswer RunsApi::logs(const std::string& id, const std::string& run_dir, const NamedLog& log,
                         const LogQuery& query) {
  const auto path = node::log_path(run_dir + "/logs", log.actor, log.incarnation);
  const HttpStreams* const streams = serving_ ? &serving_->streams : nullptr;
  const auto controller =
      serving_ ? serving_->controller : actor::Ref<controller::Controller::Inbox>();
  return log_answer(streams, path, query, [controller, id, run_dir, log] {
    const auto cluster = ask_and_wait(controller, controller::GetCluster{}, kApiAskTimeout);
    // A run of another process is over when that process has released the lock.
    const bool ours =
        cluster && std::ranges::any_of(cluster->jobs, [&](const controller::JobRecord& job) {
          return job.id == id && !scheduler::is_final(job.status.state);
        });
    return ours ? is_over(*cluster, id, log) : !FileLock::held(run_dir + "/run.lock");
  });
}

HttpAnswer RunsApi::actor_logs(const HttpRequest& request, const std::string& wanted) {
  const auto query = log_query(request);
  if (!query) return refuse(query.error());
  const auto picture = this->picture();
  if (!picture) return refuse(picture.error());
  const auto actor = find_actor(*picture, wanted);
  if (actor) {
    const controller::JobRecord& job = *actor->job;
    NamedLog log{actor->actor->name.substr(job.id.size() + 1), actor->actor->incarnation};
    if (query->previous) {
      const auto before = node::previous_log(job.run_dir + "/logs", log.actor, log.incarnation);
      if (!before)
        return refuse({ErrorCode::kNotFound, wanted + " has had no earlier incarnation"});
      log.incarnation = *before;
    }
    return logs(job.id, job.run_dir, log, *query);
  }
  // An actor of a run that ended before this controller began: "arith-1/rollout/0".
  const std::size_t slash = wanted.find('/');
  const auto run = catalogue_.find(wanted.substr(0, slash));
  if (!run || slash == std::string::npos) return refuse(actor.error());
  const auto log = find_log(run->run_dir / "logs", wanted.substr(slash + 1), query->previous);
  if (!log) return refuse(log.error());
  return logs(run->id, run->run_dir.string(), *log, *query);
}

std::optional<HttpAnswer> RunsApi::get(const HttpRequest& request) {
  const auto& path = request.segments;  // {"api", "v1", KIND, NAME…}
  if (path.size() < 3) return std::nullopt;
  const std::string& kind = path[2];
  if (kind == "events" && path.size() == 3) return events(request);
  if (kind == "runs") return get_runs(request);
  if (kind == "actors" && path.size() > 4 && path.back() == "logs")
    return actor_logs(request, joined(path, 3, path.size() - 1));
  if (kind == "jobs" && path.size() == 5 && path[4] == "samples")
    return job_samples(request, path[3]);
  if (kind == "jobs" && path.size() == 5 && path[4] == "metrics")
    return job_metrics(request, path[3]);
  return std::nullopt;
}

HttpAnswer RunsApi::get_runs(const HttpRequest& request) {
  const auto& path = request.segments;  // {"api", "v1", "runs", ID, WHAT, …}
  // A watch would read the files of every run several times a second.
  if (path.size() <= 4 && query_flag(request, "watch"))
    return refuse({ErrorCode::kInvalid, "runs cannot be watched", "",
                   "/api/v1/jobs?watch=1 follows those that live"});
  if (path.size() == 3) return list();
  const auto run = catalogue_.find(path[3]);
  if (!run) return refuse(run.error());
  if (path.size() == 4) return one(*run);
  if (path.size() == 5 && path[4] == "config") return config(*run);
  if (path.size() == 5 && path[4] == "metrics") return metrics(*run, request);
  if (path.size() == 5 && path[4] == "samples") return samples(*run, request);
  if (path.size() == 5 && path[4] == "events") return run_events(*run, request);
  if (path.size() > 5 && path[4] == "logs") {
    const auto query = log_query(request);
    if (!query) return refuse(query.error());
    const auto log = find_log(run->run_dir / "logs", joined(path, 5, path.size()), query->previous);
    return log ? logs(run->id, run->run_dir.string(), *log, *query) : refuse(log.error());
  }
  return refuse({ErrorCode::kNotFound, "there is no " + request.target, "",
                 "a run has config, metrics, samples, events and logs/ACTOR"});
}

HttpAnswer RunsApi::remove(const std::string& wanted) {
  const auto run = catalogue_.find(wanted);
  if (!run) return refuse(run.error());
  const auto cluster = this->cluster();
  if (!cluster) return refuse(cluster.error());
  for (const controller::JobRecord& job : cluster->jobs)  // a queued job may hold no lock yet
    if (job.id == run->id && !scheduler::is_final(job.status.state))
      return http::error_response(
          409, {ErrorCode::kInvalid,
                run->id + " is " + scheduler::name(job.status.state) + " and cannot be deleted",
                run->run_dir.string(), "cancel it first: tandem cancel " + run->id});
  // The lock decides in the end: the job may have begun since the look above.
  if (const auto removed = catalogue_.remove(run->id); !removed)
    return removed.error().code == ErrorCode::kInvalid ? http::error_response(409, removed.error())
                                                       : refuse(removed.error());
  indexes_.forget(run->run_dir);
  if (const auto gone =
          ask_and_wait(serving_->controller, controller::Forget{run->id}, kApiAskTimeout);
      !gone)
    return refuse(gone.error());
  return ok(json{{"id", run->id}});
}

}  // namespace tandem::api
