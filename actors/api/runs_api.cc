// The work is done by the catalogue, the indexes, and the readers of events and logs; the routes
// are in runs_routes.cc, their queries in run_queries.cc. Nothing here holds a lock, or waits for
// anything but the controller's answer and the disk.
//
// A run has two sources, the files of its directory and the controller's record, and they may
// disagree: another process may have resumed a run that is over here. A live lock with a final
// record therefore means that the files are right.
#include "actors/api/runs_api.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "actors/api/run_queries.h"
#include "actors/runs/cluster_journal.h"
#include "actors/runs/metrics_page.h"
#include "actors/runs/run_disk.h"
#include "actors/runs/run_events.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::api {

namespace fs = std::filesystem;
using http::HttpAnswer;
using http::HttpStream;
using nlohmann::json;

namespace {

HttpAnswer refuse(const Error& error) { return http::error_response(error); }

HttpAnswer answer_of(const Result<json>& body) { return body ? ok(*body) : refuse(body.error()); }

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

json events_json(const std::vector<runs::ClusterEvent>& events) {
  json array = json::array();
  for (const runs::ClusterEvent& event : events) array.push_back(event_json(event));
  return array;
}

// A watch would read the files of every run several times a second.
HttpAnswer not_watched() {
  return refuse({ErrorCode::kInvalid, "runs cannot be watched", "",
                 "/api/v1/jobs?watch=1 follows those that live"});
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
  return take_picture({serving_->controller});
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

HttpAnswer RunsApi::list(const Call& call) {
  if (query_flag(call.request, kWatch)) return not_watched();
  const auto picture = this->picture();
  json array = json::array();
  for (const runs::Run& run : catalogue_.list())
    array.push_back(shown(run, picture ? &*picture : nullptr));
  return ok(array);
}

HttpAnswer RunsApi::one(const runs::Run& run, const Call& call) {
  if (query_flag(call.request, kWatch)) return not_watched();
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
  object["disk"] = runs::disk_json(run.run_dir);
  if (object["message"]
          .get_ref<const std::string&>()
          .empty())  // the last event about the run takes its place
    if (const auto events = events_of(run.id, {}))
      for (const runs::ClusterEvent& event : *events)
        if (event.subject == run.id) object["message"] = event.message;
  return ok(object);
}

HttpAnswer RunsApi::config(const runs::Run& run, const Call&) {
  const auto keys = catalogue_.keys_of(run);
  if (!keys) return refuse(keys.error());
  json config = json::array();
  for (const auto& [key, value] : *keys) config.push_back({{"key", key}, {"value", value}});
  return ok(json{{"id", run.id}, {"config", std::move(config)}});
}

HttpAnswer RunsApi::metrics(const runs::Run& run, const Call& call) {
  const auto query = metrics_query(call.request);
  if (!query) return refuse(query.error());
  return answer_of(indexes_.metrics({run.run_dir, run.live}, [&](const runs::MetricsIndex& index) {
    json body = series_json(index, *query);
    body["id"] = run.id;
    body["live"] = run.live;
    return body;
  }));
}

HttpAnswer RunsApi::samples(const runs::Run& run, const Call& call) {
  const auto query = sample_query(call.request);
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

HttpAnswer RunsApi::job_samples(const Call& call) {
  const auto query = sample_query(call.request);
  if (!query) return refuse(query.error());
  const auto run = files_of(call.at("job"));
  if (!run) return refuse(run.error());
  if (query_flag(call.request, kSampleSteps)) return answer_of(indexes_.sample_steps(*run, *query));
  auto page = indexes_.samples(*run, *query);
  // A page is newest first; this target answers oldest first.
  if (page) std::reverse(page->begin(), page->end());
  return answer_of(page);
}

HttpAnswer RunsApi::job_metrics(const Call& call) {
  const auto query = page_query(call.request);
  if (!query) return refuse(query.error());
  const auto run = files_of(call.at("job"));
  if (!run) return refuse(run.error());
  return answer_of(runs::metrics_page(run->run_dir, *query));
}

// Announced events are those of the state folder's journal, those that `tandem run`s have left in
// the run's directory, and those of the controller's memory, which has the newest; an event may be
// in several of them. Of a time for which none is left the run's journal tells. Its numbers are
// others, so `since` means those of the announced ones wherever there are any.
Result<std::vector<runs::ClusterEvent>> RunsApi::announced(const std::string& job,
                                                           const runs::Run* run,
                                                           const runs::EventQuery& query) {
  auto kept = announced_events(home_, job, query);
  if (!kept) return kept;
  if (run) {
    auto left = announced_events(run->run_dir, job, query);
    if (!left) return left;
    kept = merged(*std::move(kept), *std::move(left), query);
  }
  if (!serving_) return kept;
  auto held = held_events(query.since.value_or(0));
  if (!held) return held.error();
  std::erase_if(*held, [&](const runs::ClusterEvent& event) { return !is_of_job(event, job); });
  return merged(*std::move(kept), *std::move(held), query);
}

Result<std::vector<runs::ClusterEvent>> RunsApi::events_of(const std::string& job,
                                                           const runs::EventQuery& query) {
  const auto run = catalogue_.find(job);
  auto events = announced(job, run ? &*run : nullptr, query);
  if (!events || !run) return events;
  if (query.since) {
    const auto any = events->empty() ? announced(job, &*run, {.since = {}, .limit = 1}) : events;
    if (!any || !any->empty()) return events;
  }
  auto told = journal_events(run->run_dir, run->id, query);
  if (!told) return told.error();
  const std::int64_t first = events->empty() ? runs::kStepMax : events->front().time_ms;
  std::erase_if(*told, [&](const runs::ClusterEvent& event) { return event.time_ms >= first; });
  return merged(*std::move(told), *std::move(events), query);
}

HttpAnswer RunsApi::run_events(const runs::Run& run, const Call& call) {
  const auto query = event_query(call.request);
  if (!query) return refuse(query.error());
  if (query_flag(call.request, kWatch)) return watch_events(query->since.value_or(0), run.id);
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

HttpAnswer RunsApi::events(const Call& call) {
  const auto query = event_query(call.request);
  if (!query) return refuse(query.error());
  std::string job = query_text(call.request, kEventsJob);
  if (!job.empty()) {
    const auto picture = this->picture();
    if (const controller::JobRecord* record = picture ? picture->job(job) : nullptr)
      job = record->id;
    else if (const auto run = catalogue_.find(job))
      job = run->id;
  }
  if (query_flag(call.request, kWatch)) return watch_events(query->since.value_or(0), job);
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
  return log_answer(streams, path, log.incarnation, query, [controller, id, run_dir, log] {
    const auto cluster = ask_and_wait(controller, controller::GetCluster{}, kApiAskTimeout);
    // A run of another process is over when that process has released the lock.
    const bool ours =
        cluster && std::ranges::any_of(cluster->jobs, [&](const controller::JobRecord& job) {
          return job.id == id && !scheduler::is_final(job.status.state);
        });
    return ours ? is_over(*cluster, id, log) : !FileLock::held(run_dir + "/run.lock");
  });
}

HttpAnswer RunsApi::actor_logs(const Call& call) {
  const std::string& wanted = call.at("actor");
  const auto query = log_query(call.request);
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

HttpAnswer RunsApi::run_logs(const runs::Run& run, const Call& call) {
  const auto query = log_query(call.request);
  if (!query) return refuse(query.error());
  const auto log = find_log(run.run_dir / "logs", call.at("log"), query->previous);
  return log ? logs(run.id, run.run_dir.string(), *log, *query) : refuse(log.error());
}

HttpAnswer RunsApi::remove(const runs::Run& run, const Call&) {
  const auto cluster = this->cluster();
  if (!cluster) return refuse(cluster.error());
  for (const controller::JobRecord& job : cluster->jobs)  // a queued job may hold no lock yet
    if (job.id == run.id && !scheduler::is_final(job.status.state))
      return http::error_response(
          409, {ErrorCode::kInvalid,
                run.id + " is " + scheduler::name(job.status.state) + " and cannot be deleted",
                run.run_dir.string(), "cancel it first: tandem cancel " + run.id});
  // The lock decides in the end: the job may have begun since the look above.
  if (const auto removed = catalogue_.remove(run.id); !removed)
    return removed.error().code == ErrorCode::kInvalid ? http::error_response(409, removed.error())
                                                       : refuse(removed.error());
  indexes_.forget(run.run_dir);
  if (const auto gone =
          ask_and_wait(serving_->controller, controller::Forget{run.id}, kApiAskTimeout);
      !gone)
    return refuse(gone.error());
  return ok(json{{"id", run.id}});
}

}  // namespace tandem::api
