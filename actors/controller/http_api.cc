#include "actors/controller/http_api.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "actors/controller/api_json.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/node/log_files.h"

namespace tandem::actors {
namespace {

using nlohmann::json;
using runtime::HttpAnswer;
using runtime::HttpRequest;
using runtime::HttpResponse;
using runtime::HttpStream;

HttpResponse ok(const json& body) {
  return {.status = 200,
          .content_type = "application/json",
          .body = body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"};
}

Error no_such(const std::string& kind, const std::string& name) {
  return {ErrorCode::kNotFound, "there is no " + kind + " " + name, "",
          "tandem get " + kind + "s lists them"};
}

std::string joined(const std::vector<std::string>& parts, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += (i > from ? "/" : "") + parts[i];
  return text;
}

// Everything that one answer needs, asked for at one moment.
struct Picture {
  ClusterView cluster;
  ExchangeReports reports;

  const ExchangeReport* report(const std::string& job) const {
    const auto it = reports.find(job);
    return it == reports.end() ? nullptr : &it->second;
  }
  // An id, or a name that one job alone has (the newest of those still running, else the newest).
  const JobRecord* job(const std::string& wanted) const {
    const JobRecord* found = nullptr;
    for (const JobRecord& job : cluster.jobs) {
      if (job.id == wanted) return &job;
      if (job.shape.name != wanted) continue;
      const bool better = !found || !scheduler::is_final(job.status.state) ||
                          scheduler::is_final(found->status.state);
      if (better) found = &job;
    }
    return found;
  }
};

Result<Picture> take_picture(const HttpApi& api) {
  auto cluster = ask_and_wait(api.controller, GetCluster{}, kApiAskTimeout);
  if (!cluster) return cluster.error();
  Picture picture{.cluster = std::move(*cluster), .reports = {}};
  for (const auto& [job, exchange] : picture.cluster.exchanges)
    if (auto report = ask_and_wait(exchange, GetExchangeReport{}, kApiAskTimeout))
      picture.reports.emplace(job, std::move(*report));
  return picture;
}

json job_of(const Picture& picture, const JobRecord& job) {
  return shown_job(job, picture.report(job.id), picture.cluster.now);
}

json actor_of(const Picture& picture, const JobRecord& job, const ActorRecord& actor) {
  return actor_json(actor, picture.report(job.id), job.ladder.restarts_of(actor.name),
                    picture.cluster.now);
}

json list(const Picture& picture, const std::string& kind) {
  json array = json::array();
  if (kind == "jobs")
    for (const JobRecord& job : picture.cluster.jobs) array.push_back(job_of(picture, job));
  if (kind == "actors")
    for (const JobRecord& job : picture.cluster.jobs)
      for (const auto& [id, actor] : job.actors) array.push_back(actor_of(picture, job, actor));
  if (kind == "nodes")
    for (const NodeRecord& node : picture.cluster.nodes) array.push_back(node_json(node));
  if (kind == "groups")
    for (const auto& [job, exchange] : picture.cluster.exchanges)
      if (const auto groups = ask_and_wait(exchange, GetGroups{}, kApiAskTimeout))
        for (const GroupView& group : *groups) array.push_back(group_json(group, job));
  return array;
}

// "JOB/rollout/0" is one actor; "rollout/0" is one if a single job has it.
Result<json> find_actor(const Picture& picture, const std::string& wanted) {
  std::vector<json> found;
  for (const JobRecord& job : picture.cluster.jobs)
    for (const auto& [id, actor] : job.actors) {
      if (id == wanted) return actor_of(picture, job, actor);
      if (id.substr(job.id.size() + 1) == wanted && !scheduler::is_final(job.status.state))
        found.push_back(actor_of(picture, job, actor));
    }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty()) return no_such("actor", wanted);
  return Error{ErrorCode::kInvalid, std::to_string(found.size()) + " jobs have an actor " + wanted,
               "", "name the job as well: -j JOB, or JOB/" + wanted};
}

Result<json> find_one(const Picture& picture, const std::string& kind, const std::string& name) {
  if (kind == "actors") return find_actor(picture, name);
  if (kind == "jobs") {
    const JobRecord* job = picture.job(name);
    if (!job) return no_such("job", name);
    return job_of(picture, *job);
  }
  for (json& item : list(picture, kind))
    if (item.value("name", "") == name || std::to_string(item.value("group", 0)) == name)
      return std::move(item);
  return no_such(kind.substr(0, kind.size() - 1), name);
}

// ---- streams

struct AddStream {
  std::shared_ptr<HttpStream> stream;
  // Writes what is new; false ends the stream.
  std::function<bool(HttpStream&)> feed;
};

// Feeds all open streams, one look each kWatchInterval.
class StreamFeeder {
 public:
  using Inbox = std::variant<AddStream>;
  void handle(runtime::Context& cx, AddStream add) {
    streams_.push_back(std::move(add));
    if (streams_.size() == 1) feed(cx);
  }

 private:
  void feed(runtime::Context& cx) {
    std::erase_if(streams_, [](AddStream& s) {
      if (s.stream->open() && s.feed(*s.stream)) return false;
      s.stream->close();
      return true;
    });
    if (!streams_.empty()) cx.after(kWatchInterval, [this](runtime::Context& then) { feed(then); });
  }
  std::vector<AddStream> streams_;
};
static_assert(runtime::Actor<StreamFeeder>);

struct Handler {
  HttpApi api;
  runtime::Ref<StreamFeeder::Inbox> feeder;

  HttpAnswer operator()(const HttpRequest& request) const;
  HttpAnswer get(const HttpRequest& request) const;
  HttpAnswer post(const HttpRequest& request) const;
  HttpAnswer events(const HttpRequest& request) const;
  HttpAnswer logs(const HttpRequest& request, const std::string& actor) const;
  HttpAnswer samples(const HttpRequest& request, const std::string& job) const;
  HttpAnswer watch(const std::string& kind, const std::string& name) const;
  runtime::HttpStreaming stream(std::function<bool(HttpStream&)> feed) const;
};

runtime::HttpStreaming Handler::stream(std::function<bool(HttpStream&)> feed) const {
  runtime::HttpStreaming streaming;
  streaming.start = [feeder = feeder, feed = std::move(feed)](std::shared_ptr<HttpStream> stream) {
    if (feeder.tell(AddStream{stream, feed}) != runtime::Delivery::kAccepted) stream->close();
  };
  return streaming;
}

// One line per object that has changed since the last look.
HttpAnswer Handler::watch(const std::string& kind, const std::string& name) const {
  auto seen = std::make_shared<std::map<std::string, std::string>>();
  // The feeder is an actor on the executor that runs the controller: it asks without waiting long,
  // and the executor has a thread more than it.
  return stream([api = api, kind, name, seen](HttpStream& out) {
    const auto picture = take_picture(api);
    if (!picture) return false;
    json items = json::array();
    if (name.empty()) {
      items = list(*picture, kind);
    } else {
      auto one = find_one(*picture, kind, name);
      if (!one) return false;
      items.push_back(std::move(*one));
    }
    for (const json& item : items) {
      std::string line = item.dump(-1, ' ', false, json::error_handler_t::replace);
      const std::string key = item.contains("id")     ? item["id"].get<std::string>()
                              : item.contains("name") ? item["name"].get<std::string>()
                                                      : std::to_string(item.value("group", 0));
      if ((*seen)[key] == line) continue;
      (*seen)[key] = line;
      if (!out.write(std::move(line))) return false;
    }
    return true;
  });
}

HttpAnswer Handler::events(const HttpRequest& request) const {
  const auto after = std::make_shared<std::int64_t>(0);
  const auto job = request.query.find("job");
  const std::string subject = job == request.query.end() ? "" : job->second;
  const auto matches = [subject](const ClusterEvent& event) {
    return subject.empty() || event.subject.starts_with(subject);
  };
  if (request.query.contains("watch"))
    return stream([api = api, after, matches](HttpStream& out) {
      const auto events = ask_and_wait(api.controller, GetEvents{*after}, kApiAskTimeout);
      if (!events) return false;
      for (const ClusterEvent& event : *events) {
        *after = event.seq;
        if (matches(event) && !out.write(event_json(event).dump())) return false;
      }
      return true;
    });
  const auto events = ask_and_wait(api.controller, GetEvents{0}, kApiAskTimeout);
  if (!events) return runtime::error_response(events.error());
  json array = json::array();
  for (const ClusterEvent& event : *events)
    if (matches(event)) array.push_back(event_json(event));
  return ok(array);
}

HttpAnswer Handler::logs(const HttpRequest& request, const std::string& actor) const {
  const auto picture = take_picture(api);
  if (!picture) return runtime::error_response(picture.error());
  const auto found = find_actor(*picture, actor);
  if (!found) return runtime::error_response(found.error());
  const JobRecord* job = picture->job((*found)["job"].get<std::string>());
  const std::filesystem::path logs = job->run_dir + "/logs";
  const std::string name = (*found)["name"].get<std::string>().substr(job->id.size() + 1);
  std::uint64_t incarnation = (*found)["incarnation"].get<std::uint64_t>();
  if (request.query.contains("previous")) {
    const auto previous = runtime::previous_log(logs, name, Incarnation{incarnation});
    if (!previous)
      return runtime::error_response(
          Error{ErrorCode::kNotFound, actor + " has had no earlier life"});
    incarnation = previous->value;
  }
  const auto path = runtime::log_path(logs, name, Incarnation{incarnation});
  if (!request.query.contains("follow")) {
    auto text = read_file(path);
    if (!text) return runtime::error_response(Error{ErrorCode::kNotFound, text.error().message});
    return HttpResponse{.content_type = "text/plain; charset=utf-8", .body = std::move(*text)};
  }
  auto file = std::make_shared<std::ifstream>(path);
  auto partial = std::make_shared<std::string>();
  auto streaming = stream([file, partial](HttpStream& out) {
    char piece[16384];
    for (;;) {
      file->clear();
      file->read(piece, sizeof piece);
      if (file->gcount() == 0) return true;
      partial->append(piece, static_cast<std::size_t>(file->gcount()));
      for (std::size_t end; (end = partial->find('\n')) != std::string::npos;) {
        if (!out.write(partial->substr(0, end))) return false;
        partial->erase(0, end + 1);
      }
    }
  });
  streaming.content_type = "text/plain; charset=utf-8";
  return streaming;
}

HttpAnswer Handler::samples(const HttpRequest& request, const std::string& wanted) const {
  const auto picture = take_picture(api);
  if (!picture) return runtime::error_response(picture.error());
  const JobRecord* job = picture->job(wanted);
  if (!job) return runtime::error_response(no_such("job", wanted));
  std::ifstream file(job->run_dir + "/samples.jsonl");
  const auto value = [&](const char* key) {
    const auto it = request.query.find(key);
    return it == request.query.end() ? std::string() : it->second;
  };
  constexpr std::size_t kSamplesShown = 64;
  std::deque<json> chosen;  // the newest
  for (std::string line; std::getline(file, line);) {
    json sample = parse_json(line);
    if (sample.is_discarded()) continue;
    const bool evaluation = sample.contains("eval"), failed = sample.contains("error");
    if (evaluation != (value("eval") == "1") || (value("failed") == "1" && !failed)) continue;
    if (!value("step").empty() && std::to_string(sample.value("step", -1)) != value("step"))
      continue;
    chosen.push_back(std::move(sample));
    if (chosen.size() > kSamplesShown) chosen.pop_front();
  }
  return ok(json(chosen));
}

HttpAnswer Handler::get(const HttpRequest& request) const {
  const auto& path = request.segments;  // {"api", "v1", KIND, NAME…}
  const std::string& kind = path[2];
  if (kind == "events") return events(request);
  if (kind != "jobs" && kind != "actors" && kind != "nodes" && kind != "groups")
    return runtime::error_response(Error{ErrorCode::kNotFound, "there is no " + request.target, "",
                                         "jobs, actors, nodes, groups and events are served"});
  const bool logs_asked = kind == "actors" && path.size() > 3 && path.back() == "logs";
  if (logs_asked) return logs(request, joined(path, 3, path.size() - 1));
  if (kind == "jobs" && path.size() == 5 && path[4] == "samples") return samples(request, path[3]);
  const std::string name = joined(path, 3, path.size());
  if (request.query.contains("watch")) return watch(kind, name);
  const auto picture = take_picture(api);
  if (!picture) return runtime::error_response(picture.error());
  if (name.empty()) return ok(list(*picture, kind));
  const auto one = find_one(*picture, kind, name);
  return one ? ok(*one) : runtime::error_response(one.error());
}

HttpAnswer Handler::post(const HttpRequest& request) const {
  const auto& path = request.segments;
  if (path.size() == 3 && path[2] == "jobs") {
    auto shape = api.shape_of(request.body);
    if (!shape) return runtime::error_response(shape.error());
    const auto id = ask_and_wait(api.controller, Submit{std::move(*shape)}, kApiAskTimeout);
    if (!id) return runtime::error_response(id.error());
    const auto picture = take_picture(api);
    const JobRecord* job = picture ? picture->job(*id) : nullptr;
    return job ? ok(job_of(*picture, *job)) : ok(json{{"id", *id}});
  }
  if (path.size() != 5 || path[2] != "jobs" || (path[4] != "scale" && path[4] != "cancel"))
    return runtime::error_response(Error{ErrorCode::kNotFound, "there is no " + request.target});
  const auto picture = take_picture(api);
  if (!picture) return runtime::error_response(picture.error());
  const JobRecord* job = picture->job(path[3]);
  if (!job) return runtime::error_response(no_such("job", path[3]));
  if (path[4] == "cancel") {
    const auto done = ask_and_wait(api.controller, Cancel{job->id}, kApiAskTimeout);
    return done ? ok(json{{"id", job->id}}) : runtime::error_response(done.error());
  }
  const json body = parse_json(request.body);
  if (!body.is_object() || body.empty())
    return runtime::error_response(Error{ErrorCode::kInvalid, "scale wants {\"ROLE\": N, …}"});
  for (const auto& [role_name, count] : body.items()) {
    const auto role = std::find_if(std::begin(kRoles), std::end(kRoles),
                                   [&](Role r) { return role_name == name(r); });
    if (role == std::end(kRoles) || !count.is_number_integer())
      return runtime::error_response(Error{ErrorCode::kInvalid,
                                           "cannot scale " + role_name + " to " + count.dump(), "",
                                           "rollout=N and reward=N are possible"});
    const auto done = ask_and_wait(
        api.controller, Scale{{job->id, *role, count.get<std::int32_t>()}}, kApiAskTimeout);
    if (!done) return runtime::error_response(done.error());
  }
  return ok(json{{"id", job->id}});
}

HttpAnswer Handler::operator()(const HttpRequest& request) const {
  const auto& path = request.segments;
  if (request.method == "GET" && path == std::vector<std::string>{"metrics"}) {
    const auto picture = take_picture(api);
    if (!picture) return runtime::error_response(picture.error());
    return HttpResponse{.content_type = "text/plain; version=0.0.4",
                        .body = prometheus_text(picture->cluster, picture->reports)};
  }
  if (path.size() < 3 || path[0] != "api" || path[1] != "v1")
    return runtime::error_response(Error{ErrorCode::kNotFound, "there is no " + request.target, "",
                                         "the API is below /api/v1; metrics are at /metrics"});
  if (request.method == "GET") return get(request);
  if (request.method == "POST") return post(request);
  return runtime::error_response(
      405, Error{ErrorCode::kInvalid, request.method + " is not possible here"});
}

}  // namespace

runtime::HttpHandler make_http_handler(const HttpApi& api) {
  auto feeder = api.system.spawn<StreamFeeder>("http_streams",
                                               [] { return std::make_unique<StreamFeeder>(); });
  return Handler{api, std::move(feeder)};
}

}  // namespace tandem::actors
