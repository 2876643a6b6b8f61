// Routes by path segments: {"api", "v1", KIND, NAME…}. An answer about jobs, actors, nodes or
// groups is made from one picture of the cluster, taken for it, so that its parts agree. A watch is
// a stream that looks every kWatchInterval and writes the objects that have changed; all watches
// share one picture (watches.h).
#include "actors/api/http_api.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "actors/api/cluster_picture.h"
#include "actors/api/http_answers.h"
#include "actors/api/prometheus.h"
#include "actors/api/runs_api.h"
#include "actors/api/wait_graph.h"
#include "actors/api/watches.h"
#include "actors/api/web_page.h"
#include "actors/controller/requests.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::api {
namespace {

constexpr std::size_t kQuotedBytesMax = 100;  // how much of a foreign word an error quotes
// How long a question to an actor may wait: at least, at most and by default, in seconds.
constexpr Bounds kAskSeconds{1, 600};
constexpr std::int64_t kAskSecondsUsual = 10;

using http::HttpAnswer;
using http::HttpRequest;
using http::HttpResponse;
using http::HttpStream;
using nlohmann::json;

// Shared by all copies of the handler: both exist as long as the server that holds it.
struct HandlerState {
  explicit HandlerState(const HttpApi& api)
      : streams(api.system),
        runs(ServingController{api.controller, streams}, api.home, api.read_job),
        watched([controller = api.controller] { return take_picture(controller); }) {}
  HttpStreams streams;
  RunsApi runs;
  WatchedRound watched;  // used by feeds of streams alone
};

struct Handler {
  HttpApi api;
  std::shared_ptr<HandlerState> state;

  HttpAnswer operator()(const HttpRequest& request) const;
  HttpAnswer get(const HttpRequest& request) const;
  HttpAnswer get_object(const HttpRequest& request) const;
  HttpAnswer post(const HttpRequest& request) const;
  HttpAnswer scale(const controller::JobRecord& job, const std::string& body) const;
  HttpAnswer ask(const HttpRequest& request) const;
  HttpAnswer watch(const std::string& kind, const std::string& name) const;
  HttpAnswer status() const;
  HttpAnswer waits(const HttpRequest& request) const;
};

// Streams one line per object that has changed since the last round.
HttpAnswer Handler::watch(const std::string& kind, const std::string& name) const {
  // The feeding actor runs on the executor that also runs the controller, and blocks one of its
  // threads while it asks. The executor has at least one more, for the controller.
  const auto watch = std::make_shared<Watch>();
  return state->streams.stream([shared = state, watch, kind, name](HttpStream& out, Time round) {
    const auto* objects = shared->watched.objects(round, kind, name);
    return objects && watch->tell(*objects, out);
  });
}

HttpAnswer Handler::status() const {
  const auto cluster = ask_and_wait(api.controller, controller::GetCluster{}, kApiAskTimeout);
  if (!cluster) return http::error_response(cluster.error());
  json body = status_json(*cluster);
  const ClusterIdentity self = api.identity();
  body["version"] = self.version;
  body["epoch"] = self.epoch;
  body["pid"] = self.pid;
  body["home"] = api.home.string();
  body["http"] = self.http;
  body["started"] = self.started_ms;
  body["runs"] = state->runs.count();
  return ok(body);
}

HttpAnswer Handler::waits(const HttpRequest& request) const {
  const auto picture = take_picture(api.controller);
  if (!picture) return http::error_response(picture.error());
  const std::string wanted = query_text(request, "job");
  const controller::JobRecord* job = wanted.empty() ? nullptr : picture->job(wanted);
  if (!wanted.empty() && !job) return http::error_response(no_such("job", wanted));
  return ok(wait_graph(*picture, job ? job->id : "", unix_ms()));
}

HttpAnswer Handler::get(const HttpRequest& request) const {
  const auto& path = request.segments;  // {"api", "v1", KIND, NAME…}
  const std::string& kind = path[2];
  if (auto answer = state->runs.get(request)) return std::move(*answer);
  if (kind == "status" && path.size() == 3) return status();
  if (kind == "wait_graph" && path.size() == 3) return waits(request);
  if (kind == "jobs" || kind == "actors" || kind == "nodes" || kind == "groups")
    return get_object(request);
  return http::error_response(
      Error{ErrorCode::kNotFound, "there is no " + request.target, "",
            "jobs, runs, actors, nodes, groups, events, status and wait_graph are served"});
}

HttpAnswer Handler::get_object(const HttpRequest& request) const {
  const auto& path = request.segments;
  const std::string& kind = path[2];
  const std::string name = joined(path, 3, path.size());
  if (request.query.contains("watch")) return watch(kind, name);
  const auto picture = take_picture(api.controller);
  if (!picture) return http::error_response(picture.error());
  if (name.empty()) return ok(list(*picture, kind));
  const auto one = find_one(*picture, kind, name);
  return one ? ok(*one) : http::error_response(one.error());
}

HttpAnswer Handler::post(const HttpRequest& request) const {
  const auto& path = request.segments;
  if (path.size() == 3 && path[2] == "jobs") {
    const std::string folder = query_text(request, "folder");
    if (!folder.empty() && folder.front() != '/')
      return http::error_response(
          Error{ErrorCode::kInvalid, "`folder` must be an absolute path, found " + folder});
    auto shape = api.shape_of({request.body, query_text(request, "resume"), folder});
    if (!shape) return http::error_response(shape.error());
    const auto id =
        ask_and_wait(api.controller, controller::Submit{std::move(*shape)}, kApiAskTimeout);
    if (!id) return http::error_response(id.error());
    const auto picture = take_picture(api.controller);
    const controller::JobRecord* job = picture ? picture->job(*id) : nullptr;
    json answer = job ? picture->shown(*job) : json{{"id", *id}};
    if (job) answer["warnings"] = job->shape.warnings;
    return ok(answer);
  }
  if (path.size() == 5 && path[2] == "runs" && path[4] == "delete")
    return state->runs.remove(path[3]);
  if (path.size() > 4 && path[2] == "actors" && path.back() == "ask") return ask(request);
  if (path.size() != 5 || path[2] != "jobs" || (path[4] != "scale" && path[4] != "cancel"))
    return http::error_response(Error{ErrorCode::kNotFound, "there is no " + request.target});
  const auto picture = take_picture(api.controller);
  if (!picture) return http::error_response(picture.error());
  const controller::JobRecord* job = picture->job(path[3]);
  if (!job) return http::error_response(no_such("job", path[3]));
  if (path[4] == "cancel") {
    const auto done = ask_and_wait(api.controller, controller::Cancel{job->id}, kApiAskTimeout);
    return done ? ok(json{{"id", job->id}}) : http::error_response(done.error());
  }
  return scale(*job, request.body);
}

// The answer comes later, and no thread of the server waits for it.
HttpAnswer Handler::ask(const HttpRequest& request) const {
  const auto timeout = query_number(request, "timeout_s", kAskSeconds);
  if (!timeout) return http::error_response(timeout.error());
  if (!parse_json(request.body).is_object())
    return http::error_response(
        Error{ErrorCode::kInvalid, "a question is one JSON object, as in {\"add\": 2}"});
  const auto& path = request.segments;
  controller::AskProgram question{
      .actor = joined(path, 3, path.size() - 1),
      .body = request.body,
      .timeout = std::chrono::seconds(timeout->value_or(kAskSecondsUsual))};
  return http::HttpLater{[controller = api.controller, question](auto respond) {
    const actor::ReplyTo<messages::AskedJson> reply(
        [respond](const Result<messages::AskedJson>& answer) {
          respond(answer ? HttpResponse{.body = answer->body + "\n"}
                         : http::error_response(answer.error()));
        });
    const auto sent = controller.tell(actor::Ask<controller::AskProgram>{question, reply});
    if (sent != actor::Delivery::kAccepted) reply(actor::undelivered("the controller", sent));
  }};
}

HttpAnswer Handler::scale(const controller::JobRecord& job, const std::string& text) const {
  // A body beyond the parser's limits parses to nothing; the answer then says so.
  const auto over = json_over_limit(text);
  const json body = parse_json(text);
  if (!body.is_object() || body.empty())
    return http::error_response(
        Error{ErrorCode::kInvalid,
              "scale wants {\"ROLE\": N, …}" + (over ? ", and this is " + *over : std::string())});
  std::vector<controller::ScaleRole> wanted;  // all are checked before the first is carried out
  for (const auto& [role_name, count] : body.items()) {
    // The count may be any JSON value: replicas_asked() takes its text and says what is wrong.
    const messages::Role role{cut_utf8(role_name, kQuotedBytesMax)};
    const auto replicas =
        replicas_asked(job.shape, role, cut_utf8(dump_json(count), kQuotedBytesMax));
    if (!replicas) return http::error_response(replicas.error());
    wanted.push_back({job.id, role, *replicas});
  }
  for (const controller::ScaleRole& scale : wanted)
    if (const auto done = ask_and_wait(api.controller, controller::Scale{scale}, kApiAskTimeout);
        !done)
      return http::error_response(done.error());
  return ok(json{{"id", job.id}});
}

HttpAnswer Handler::operator()(const HttpRequest& request) const {
  const auto& path = request.segments;
  const auto asked_for = [&](const char* name) {
    return request.method == "GET" && path == std::vector<std::string>{name};
  };
  if (asked_for("healthz")) return HttpResponse{.content_type = "text/plain", .body = "ok\n"};
  if (asked_for("readyz")) {  // the controller's actor answers
    const controller::GetEvents none{
        std::numeric_limits<std::int64_t>::max()};  // the cheapest question
    const auto answer = ask_and_wait(api.controller, none, kApiAskTimeout);
    if (!answer) return http::error_response(503, answer.error());
    return HttpResponse{.content_type = "text/plain", .body = "ready\n"};
  }
  if (asked_for("metrics")) {
    const auto picture = take_picture(api.controller);
    if (!picture) return http::error_response(picture.error());
    return HttpResponse{.content_type = kPrometheusContentType,
                        .body = prometheus_text(picture->cluster, picture->reports)};
  }
  // The page's paths and the API's do not meet.
  if (auto file = web_file(request)) return std::move(*file);
  if (path.size() < 3 || path[0] != "api" || path[1] != "v1")
    return http::error_response(Error{ErrorCode::kNotFound, "there is no " + request.target, "",
                                      "the API is below /api/v1; metrics are at /metrics"});
  if (request.method == "GET") return get(request);
  if (request.method == "POST") return post(request);
  if (request.method == "DELETE" && path.size() == 4 && path[2] == "runs")
    return state->runs.remove(path[3]);
  return http::error_response(405,
                              Error{ErrorCode::kInvalid, request.method + " is not possible here"});
}

}  // namespace

http::HttpHandler make_http_handler(const HttpApi& api) {
  return Handler{api, std::make_shared<HandlerState>(api)};
}

}  // namespace tandem::api
