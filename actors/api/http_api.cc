// The routes of the cluster, and their handlers. An answer about jobs, actors, nodes or groups is
// made from one picture of the cluster, taken for it, so that its parts agree. A watch is a stream
// that looks every kWatchInterval and writes the objects that have changed; all watches share one
// picture (watches.h).
#include "actors/api/http_api.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "actors/api/cluster_picture.h"
#include "actors/api/http_answers.h"
#include "actors/api/http_auth.h"
#include "actors/api/openapi.h"
#include "actors/api/prometheus.h"
#include "actors/api/route.h"
#include "actors/api/run_queries.h"
#include "actors/api/runs_api.h"
#include "actors/api/scale_roles.h"
#include "actors/api/schema.h"
#include "actors/api/wait_graph.h"
#include "actors/api/watches.h"
#include "actors/api/web_page.h"
#include "actors/controller/allocation.h"
#include "actors/controller/autoscaling.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::api {
namespace {

constexpr std::size_t kQuotedBytesMax = 100;  // how much of a foreign word an error quotes

constexpr QueryParameter kResume{.name = "resume",
                                 .about = "The run to resume, by its id or directory."};
constexpr QueryParameter kFolder{
    .name = "folder",
    .about =
        "An absolute path, at which the relative paths of the job file start; without it, they "
        "start where the controller was started."};
constexpr QueryParameter kAskSeconds{.name = "timeout_s",
                                     .kind = QueryKind::kNumber,
                                     .about = "How many seconds the answer may take.",
                                     .bounds = {1, 600},
                                     .usual = 10};
constexpr QueryParameter kCordonReason{.name = "reason",
                                       .about = "Why, for people: shown wherever the node is."};
constexpr std::size_t kCordonReasonBytesMax = 200;
constexpr const char* kAboutPages =
    "Without `limit`, all of them. The next page is `after` the last one's name; of jobs, their "
    "id, and of groups JOB/NUMBER. A watch has all.";
constexpr QueryParameter kPageLimit{.name = "limit",
                                    .kind = QueryKind::kNumber,
                                    .about = "So many at most.",
                                    .bounds = {1, 100'000}};
constexpr QueryParameter kPageAfter{.name = "after", .about = "Those behind this one alone."};
constexpr QueryParameter kPageJob{.name = "job", .about = "Those of the job of this id alone."};
constexpr QueryParameter kGraphJob{.name = "job", .about = "The graph of this job alone."};

using http::HttpAnswer;
using http::HttpRequest;
using http::HttpResponse;
using http::HttpStream;
using nlohmann::json;

// The routes refer to this object, so it stays where it is.
class ClusterApi {
 public:
  explicit ClusterApi(const HttpApi& api);
  ClusterApi(const ClusterApi&) = delete;
  ClusterApi& operator=(const ClusterApi&) = delete;

  HttpAnswer answer(const HttpRequest& request) const;  // any thread

 private:
  using Member = HttpAnswer (ClusterApi::*)(const Call&) const;
  RouteHandler by(Member handler) const;
  std::vector<Route> routes();
  std::vector<Route> process_routes() const;
  std::vector<Route> object_routes() const;
  std::vector<Route> action_routes() const;
  std::vector<Route> node_action_routes() const;

  HttpAnswer ready(const Call& call) const;
  HttpAnswer prometheus(const Call& call) const;
  HttpAnswer document(const Call& call) const;
  HttpAnswer status(const Call& call) const;
  HttpAnswer waits(const Call& call) const;
  HttpAnswer open_page(const Call& call) const;
  HttpAnswer submit(const Call& call) const;
  HttpAnswer cancel(const Call& call) const;
  HttpAnswer scale(const Call& call) const;
  HttpAnswer scaled(const controller::JobRecord& job, const std::string& body) const;
  HttpAnswer ask(const Call& call) const;
  HttpAnswer cordon(const Call& call, bool drain) const;
  HttpAnswer uncordon(const Call& call) const;
  // Has the controller carry out the request, and answers with the node.
  HttpAnswer change_node(const std::string& node, controller::Cordon request) const;
  // The objects of `kind`, or the one of this name.
  HttpAnswer objects(const HttpRequest& request, const std::string& kind,
                     const std::string& name) const;
  HttpAnswer watch(const std::string& kind, const std::string& name) const;
  HttpAnswer page(const HttpRequest& request, const std::string& kind) const;
  Result<Picture> picture_of_one(const std::string& kind, const std::string& name) const;
  PictureSources sources() const { return {api_.controller, api_.watchdog, api_.alerts}; }

  const HttpApi api_;
  const HttpStreams streams_;
  RunsApi runs_;
  // Used by feeds of streams alone, which may outlive this object.
  const std::shared_ptr<WatchedRound> watched_;
  const RouteTable table_;
};

ClusterApi::ClusterApi(const HttpApi& api)
    : api_(api),
      streams_(api.system),
      runs_(ServingController{api.controller, streams_}, api.home, api.read_job),
      watched_(std::make_shared<WatchedRound>(
          [from = PictureSources{api.controller, api.watchdog, api.alerts}] {
            return take_picture(from);
          })),
      table_(routes()) {}

RouteHandler ClusterApi::by(Member handler) const {
  return [this, handler](const Call& call) { return (this->*handler)(call); };
}

// Those of objects come last, since {actor...} takes any parts that follow.
std::vector<Route> ClusterApi::routes() {
  std::vector<Route> routes = process_routes();
  std::ranges::move(runs_.routes(), std::back_inserter(routes));
  std::ranges::move(action_routes(), std::back_inserter(routes));
  std::ranges::move(node_action_routes(), std::back_inserter(routes));
  std::ranges::move(object_routes(), std::back_inserter(routes));
  return routes;
}

std::vector<Route> ClusterApi::process_routes() const {
  return {
      {.method = "GET",
       .path = "/healthz",
       .id = "health",
       .summary = "Whether the process lives",
       .answers = {text_body("It does: `ok`.")},
       .open = true,
       .handler =
           [](const Call&) { return HttpResponse{.content_type = "text/plain", .body = "ok\n"}; }},
      {.method = "GET",
       .path = "/readyz",
       .id = "readiness",
       .summary = "Whether the controller answers",
       .answers = {text_body("It does: `ready`.")},
       .open = true,
       .handler = by(&ClusterApi::ready)},
      {.method = "GET",
       .path = "/metrics",
       .id = "prometheus_metrics",
       .summary = "Metrics for Prometheus",
       .about = "Needs no token where the controller was started with --metrics-without-token.",
       .answers = {text_body("Prometheus' text format, version 0.0.4 (docs/metrics.md).")},
       .handler = by(&ClusterApi::prometheus)},
      {.method = "GET",
       .path = "/api/v1/openapi.json",
       .id = "openapi",
       .summary = "This document",
       .answers = {json_body(schema::map_of(schema::any()), "A document of OpenAPI 3.1.")},
       .handler = by(&ClusterApi::document)},
      {.method = "GET",
       .path = "/api/v1/status",
       .id = "status",
       .summary = "The controller",
       .answers = {json_body(schema::ref("Status"), "The controller.")},
       .handler = by(&ClusterApi::status)},
      {.method = "GET",
       .path = "/api/v1/wait_graph",
       .id = "wait_graph",
       .summary = "Who waits for whom",
       .query = {kGraphJob},
       .answers = {json_body(schema::ref("WaitGraph"), "Of the jobs that are not over.")},
       .errors = {{404, "There is no such job."}},
       .handler = by(&ClusterApi::waits)},
      {.method = "POST",
       .path = "/api/v1/dashboard",
       .id = "open_dashboard",
       .summary = "An address that opens the web page once",
       .answers = {json_body(schema::ref("PageKey"), "The address.")},
       .handler = by(&ClusterApi::open_page)},
  };
}

std::vector<Route> ClusterApi::object_routes() const {
  struct Kind {
    std::string all, one;   // "jobs", "job"
    const char* parameter;  // in the path of one
    const char* schema;
    std::vector<RouteError> errors;  // of one
  };
  const RouteError none{404, "There is none of this name."};
  const Kind kinds[] = {
      {"jobs", "job", "{job}", "Job", {none}},
      {"actors", "actor", "{actor...}", "Actor", {none, {400, "Several jobs have the name."}}},
      {"nodes", "node", "{node}", "Node", {none}},
      {"groups", "group", "{group}", "Group", {none}}};
  std::vector<Route> routes;
  for (const Kind& kind : kinds) {
    const json schema = schema::ref(kind.schema);
    const Body lines = json_lines_body(schema, "With `watch`, one for each line.");
    routes.push_back(
        {.method = "GET",
         .path = "/api/v1/" + kind.all,
         .id = "list_" + kind.all,
         .summary = "All " + kind.all,
         .about = kAboutPages,
         .query = kind.all == "nodes" ? std::vector{kPageLimit, kPageAfter, kWatch}
                                      : std::vector{kPageLimit, kPageAfter, kPageJob, kWatch},
         .answers = {json_body(schema::list_of(schema), "All of them, or a page."), lines},
         .errors = {{400, "A value of the query is wrong."}},
         .handler = [this, all = kind.all](const Call& call) {
           return objects(call.request, all, "");
         }});
    routes.push_back({.method = "GET",
                      .path = "/api/v1/" + kind.all + "/" + kind.parameter,
                      .id = "get_" + kind.one,
                      .summary = "One " + kind.one,
                      .query = {kWatch},
                      .answers = {json_body(schema, "The " + kind.one + "."), lines},
                      .errors = kind.errors,
                      .handler = [this, all = kind.all, one = kind.one](const Call& call) {
                        return objects(call.request, all, call.at(one));
                      }});
  }
  return routes;
}

std::vector<Route> ClusterApi::action_routes() const {
  const RouteError no_job{404, "There is no such job."};
  return {
      {.method = "POST",
       .path = "/api/v1/jobs",
       .id = "submit_job",
       .summary = "Submits a job",
       .query = {kResume, kFolder},
       .body = Body{"application/yaml", schema::text(), "A job file (docs/job-file.md)."},
       .answers = {json_body(
           schema::any_of({schema::ref("Job"), schema::ref("Id")}),
           "The job, with `warnings`; its `id` alone where the controller did not "
           "answer again.")},
       .errors = {{400, "The job file, or the query, is wrong."},
                  {404, "There is no such run to resume."},
                  {409, "It can never be placed on this cluster."}},
       .handler = by(&ClusterApi::submit)},
      {.method = "POST",
       .path = "/api/v1/jobs/{job}/scale",
       .id = "scale_job",
       .summary = "Changes how many actors roles have",
       .about = "\"auto\" lets `pools.rollout.autoscale` of the job decide; {\"rollback\": true} "
                "gives back the numbers from before the newest change.",
       .body = json_body(
           schema::map_of(schema::any_of({schema::integer(), schema::text(), schema::boolean()})),
           "As {\"rollout\": 2}, {\"rollout\": \"auto\"} or {\"rollback\": true}."),
       .answers = {json_body(schema::ref("Id"), "All roles of the body are scaled.")},
       .errors = {{400, "A role or a number is wrong; nothing is scaled."},
                  no_job,
                  {409, "So many never fit the cluster."}},
       .handler = by(&ClusterApi::scale)},
      {.method = "POST",
       .path = "/api/v1/jobs/{job}/cancel",
       .id = "cancel_job",
       .summary = "Ends a job",
       .answers = {json_body(schema::ref("Id"), "It begins to end, or has ended before.")},
       .errors = {no_job},
       .handler = by(&ClusterApi::cancel)},
      {.method = "POST",
       .path = "/api/v1/actors/{actor...}/ask",
       .id = "ask_actor",
       .summary = "Asks an actor of the job's section `actors`, at most once",
       .query = {kAskSeconds},
       .body = json_body(schema::map_of(schema::any()), "The question."),
       .answers = {json_body(schema::any(), "The actor's answer.")},
       .errors = {{400, "The question is no JSON object, or the actor refuses it."},
                  {404, "There is no such actor."}},
       .handler = by(&ClusterApi::ask)},
  };
}

std::vector<Route> ClusterApi::node_action_routes() const {
  const RouteError no_node{404, "There is no such node."};
  return {
      {.method = "POST",
       .path = "/api/v1/nodes/{node}/cordon",
       .id = "cordon_node",
       .summary = "Gives a node no new actors",
       .about = "Until it is uncordoned, also if its agent or the controller starts again.",
       .query = {kCordonReason},
       .answers = {json_body(schema::ref("Node"), "The node.")},
       .errors = {{400, "`reason` is too long."}, no_node},
       .handler = [this](const Call& call) { return cordon(call, false); }},
      {.method = "POST",
       .path = "/api/v1/nodes/{node}/drain",
       .id = "drain_node",
       .summary = "Cordons a node and moves its actors to other nodes",
       .about = "Actors finish their work first, a learner its step and a checkpoint. The node is "
                "empty when `reserved` of it is.",
       .query = {kCordonReason},
       .answers = {json_body(schema::ref("Node"), "The node; its actors begin to leave.")},
       .errors = {{400, "`reason` is too long."}, no_node},
       .handler = [this](const Call& call) { return cordon(call, true); }},
      {.method = "POST",
       .path = "/api/v1/nodes/{node}/uncordon",
       .id = "uncordon_node",
       .summary = "Gives a node new actors again",
       .answers = {json_body(schema::ref("Node"), "The node.")},
       .errors = {no_node},
       .handler = by(&ClusterApi::uncordon)},
  };
}

// Streams one line per object that has changed since the last round.
HttpAnswer ClusterApi::watch(const std::string& kind, const std::string& name) const {
  // The feeding actor runs on the executor that also runs the controller, and blocks one of its
  // threads while it asks. The executor has at least one more, for the controller.
  const auto watch = std::make_shared<Watch>();
  return streams_.stream([watched = watched_, watch, kind, name](HttpStream& out, Time round) {
    const auto* objects = watched->objects(round, kind, name);
    return objects && watch->tell(*objects, out);
  });
}

HttpAnswer ClusterApi::status(const Call&) const {
  const auto counts = ask_and_wait(api_.controller, controller::GetCounts{}, kApiAskTimeout);
  if (!counts) return http::error_response(counts.error());
  json body = status_json(*counts);
  const ClusterIdentity self = api_.identity();
  body["version"] = self.version;
  body["epoch"] = self.epoch;
  body["pid"] = self.pid;
  body["home"] = api_.home.string();
  body["http"] = self.http;
  body["started"] = self.started_ms;
  body["runs"] = runs_.count();
  body["alerts"] = json::array();
  if (api_.alerts)
    if (const auto firing = ask_and_wait(api_.alerts, GetAlerts{}, kApiAskTimeout))
      body["alerts"] = alerts_json(*firing);
  return ok(body);
}

HttpAnswer ClusterApi::waits(const Call& call) const {
  const std::string wanted = query_text(call.request, kGraphJob);
  const auto picture = wanted.empty() ? take_picture(sources()) : picture_of(sources(), wanted);
  if (!picture) return http::error_response(picture.error());
  const controller::JobRecord* job = wanted.empty() ? nullptr : picture->job(wanted);
  if (!wanted.empty() && !job) return http::error_response(no_such("job", wanted));
  return ok(wait_graph(*picture, job ? job->id : "", unix_ms()));
}

HttpAnswer ClusterApi::objects(const HttpRequest& request, const std::string& kind,
                               const std::string& name) const {
  if (query_flag(request, kWatch)) {
    for (const QueryParameter& of_pages : {kPageLimit, kPageAfter, kPageJob})
      if (!query_text(request, of_pages).empty())
        return http::error_response(
            Error{ErrorCode::kInvalid,
                  std::string("a watch has all objects, and takes no `") + of_pages.name + "`"});
    return watch(kind, name);
  }
  if (name.empty()) return page(request, kind);
  const auto picture = picture_of_one(kind, name);
  if (!picture) return http::error_response(picture.error());
  const auto one = find_one(*picture, kind, name);
  return one ? ok(*one) : http::error_response(one.error());
}

// Where it takes a look at all jobs to find the object, the picture has all.
Result<Picture> ClusterApi::picture_of_one(const std::string& kind, const std::string& name) const {
  using controller::ViewOf;
  if (kind == "jobs") return picture_of(sources(), name);
  if (kind == "nodes") return take_picture(sources(), {.of = ViewOf::kNodes, .name = name});
  if (kind == "groups") return take_picture(sources(), {.of = ViewOf::kExchanges});
  return picture_of(sources(), name.substr(0, name.find('/')));  // "JOB/rollout/0"
}

HttpAnswer ClusterApi::page(const HttpRequest& request, const std::string& kind) const {
  using controller::ViewOf;
  const auto limit = query_number(request, kPageLimit);
  if (!limit) return http::error_response(limit.error());
  controller::ViewPage page{.job = kind == "nodes" ? "" : query_text(request, kPageJob),
                            .after = query_text(request, kPageAfter)};
  if (*limit) page.limit = static_cast<std::size_t>(**limit);
  page.of = kind == "jobs"     ? ViewOf::kJobs
            : kind == "actors" ? ViewOf::kActors
            : kind == "nodes"  ? ViewOf::kNodes
                               : ViewOf::kExchanges;
  GroupsPage groups{.limit = page.limit};
  if (page.of == ViewOf::kExchanges && !page.after.empty()) {
    const auto slash = page.after.find('/');
    groups.job = slash == std::string::npos ? page.job : page.after.substr(0, slash);
    const char* const end = page.after.data() + page.after.size();
    const char* const begin =
        slash == std::string::npos ? page.after.data() : page.after.data() + slash + 1;
    const bool other_job = !page.job.empty() && groups.job != page.job;
    if (groups.job.empty() || other_job ||
        std::from_chars(begin, end, groups.after) != std::from_chars_result{end, {}})
      return http::error_response(
          Error{ErrorCode::kInvalid,
                "`after` of groups is JOB/NUMBER, or NUMBER beside `job`, and both name one job; "
                "found " +
                    cut_utf8(page.after, kQuotedBytesMax)});
  }
  const auto picture = take_picture(sources(), page);
  if (!picture) return http::error_response(picture.error());
  return ok(list(*picture, kind, groups));
}

HttpAnswer ClusterApi::submit(const Call& call) const {
  const std::string folder = query_text(call.request, kFolder);
  if (!folder.empty() && folder.front() != '/')
    return http::error_response(
        Error{ErrorCode::kInvalid, "`folder` must be an absolute path, found " + folder});
  auto shape = api_.shape_of({call.request.body, query_text(call.request, kResume), folder});
  if (!shape) return http::error_response(shape.error());
  const auto id =
      ask_and_wait(api_.controller, controller::Submit{std::move(*shape)}, kApiAskTimeout);
  if (!id) return http::error_response(id.error());
  const auto picture = picture_of(sources(), *id);
  const controller::JobRecord* job = picture ? picture->job(*id) : nullptr;
  json answer = job ? picture->shown(*job) : json{{"id", *id}};
  if (job) answer["warnings"] = job->shape.warnings;
  return ok(answer);
}

HttpAnswer ClusterApi::cancel(const Call& call) const {
  const auto picture = picture_of(sources(), call.at("job"));
  if (!picture) return http::error_response(picture.error());
  const controller::JobRecord* job = picture->job(call.at("job"));
  if (!job) return http::error_response(no_such("job", call.at("job")));
  const auto done = ask_and_wait(api_.controller, controller::Cancel{job->id}, kApiAskTimeout);
  return done ? ok(json{{"id", job->id}}) : http::error_response(done.error());
}

HttpAnswer ClusterApi::scale(const Call& call) const {
  const auto picture = picture_of(sources(), call.at("job"));
  if (!picture) return http::error_response(picture.error());
  const controller::JobRecord* job = picture->job(call.at("job"));
  if (!job) return http::error_response(no_such("job", call.at("job")));
  return scaled(*job, call.request.body);
}

HttpAnswer ClusterApi::cordon(const Call& call, bool drain) const {
  std::string why = query_text(call.request, kCordonReason);
  if (why.size() > kCordonReasonBytesMax)
    return http::error_response(
        Error{ErrorCode::kInvalid, "`reason` may have " + std::to_string(kCordonReasonBytesMax) +
                                       " bytes, found " + std::to_string(why.size())});
  if (why.empty()) why = drain ? "drained by a user" : "cordoned by a user";
  const std::string& node = call.at("node");
  return change_node(node, {controller::CordonNode{node, valid_utf8(why), drain}});
}

HttpAnswer ClusterApi::uncordon(const Call& call) const {
  const std::string& node = call.at("node");
  return change_node(node, {controller::UncordonNode{node}});
}

HttpAnswer ClusterApi::change_node(const std::string& node, controller::Cordon request) const {
  const auto done = ask_and_wait(api_.controller, std::move(request), kApiAskTimeout);
  if (!done) return http::error_response(done.error());
  const auto picture = picture_of_one("nodes", node);
  if (!picture) return http::error_response(picture.error());
  const auto one = find_one(*picture, "nodes", node);
  return one ? ok(*one) : http::error_response(one.error());
}

// The answer comes later, and no thread of the server waits for it.
HttpAnswer ClusterApi::ask(const Call& call) const {
  const auto timeout = query_number(call.request, kAskSeconds);
  if (!timeout) return http::error_response(timeout.error());
  if (!parse_json(call.request.body).is_object())
    return http::error_response(
        Error{ErrorCode::kInvalid, "a question is one JSON object, as in {\"add\": 2}"});
  controller::AskProgram question{.actor = call.at("actor"),
                                  .body = call.request.body,
                                  .timeout = std::chrono::seconds(timeout->value())};
  return http::HttpLater{[controller = api_.controller, question](auto respond) {
    const actor::ReplyTo<messages::AskedJson> reply(
        [respond](const Result<messages::AskedJson>& answer) {
          respond(answer ? HttpResponse{.body = answer->body + "\n"}
                         : http::error_response(answer.error()));
        });
    const auto sent = controller.tell(actor::Ask<controller::AskProgram>{question, reply});
    if (sent != actor::Delivery::kAccepted) reply(actor::undelivered("the controller", sent));
  }};
}

HttpAnswer ClusterApi::scaled(const controller::JobRecord& job, const std::string& text) const {
  // A body beyond the parser's limits parses to nothing; the answer then says so.
  const auto over = json_over_limit(text);
  const json body = parse_json(text);
  if (!body.is_object() || body.empty())
    return http::error_response(
        Error{ErrorCode::kInvalid,
              "scale wants {\"ROLE\": N, …}, {\"rollout\": \"auto\"} or {\"rollback\": true}" +
                  (over ? ", and this is " + *over : std::string())});
  if (body == json{{"rollback", true}}) {
    const auto done =
        ask_and_wait(api_.controller, controller::RollBackScale{{job.id}}, kApiAskTimeout);
    if (!done) return http::error_response(done.error());
    return ok(json{{"id", job.id}});
  }
  std::vector<controller::ScaleRole> wanted;  // all are checked before the first is carried out
  for (const auto& [role_name, count] : body.items()) {
    // The count may be any JSON value: replicas_asked() takes its text and says what is wrong.
    const messages::Role role{cut_utf8(role_name, kQuotedBytesMax)};
    if (count == "auto") {
      if (const auto may = controller::may_autoscale(job, role); !may)
        return http::error_response(may.error());
      wanted.push_back(
          {.job = job.id, .role = role, .automatic = true, .continues = !wanted.empty()});
      continue;
    }
    const auto replicas =
        replicas_asked(job.shape, role, cut_utf8(dump_json(count), kQuotedBytesMax));
    if (!replicas) return http::error_response(replicas.error());
    wanted.push_back(
        {.job = job.id, .role = role, .replicas = *replicas, .continues = !wanted.empty()});
  }
  const auto done = scale_roles(wanted, [this](const controller::ScaleRole& scale) {
    return ask_and_wait(api_.controller, controller::Scale{scale}, kApiAskTimeout);
  });
  if (!done) return http::error_response(done.error());
  return ok(json{{"id", job.id}});
}

HttpAnswer ClusterApi::ready(const Call&) const {
  const controller::GetEvents none{
      std::numeric_limits<std::int64_t>::max()};  // the cheapest question
  const auto answer = ask_and_wait(api_.controller, none, kApiAskTimeout);
  if (!answer) return http::error_response(503, answer.error());
  return HttpResponse{.content_type = "text/plain", .body = "ready\n"};
}

HttpAnswer ClusterApi::prometheus(const Call&) const {
  const auto picture = take_picture({api_.controller});
  if (!picture) return http::error_response(picture.error());
  const auto disk = api_.disk ? api_.disk() : std::nullopt;
  return HttpResponse{.content_type = kPrometheusContentType,
                      .body = prometheus_text(picture->cluster, picture->reports, disk)};
}

HttpAnswer ClusterApi::document(const Call&) const {
  return ok(openapi_document(table_.routes(), api_.identity().version));
}

HttpAnswer ClusterApi::open_page(const Call&) const {
  return ok(
      json{{"path", "/?key=" + api_.make_page_key()}, {"expires_s", seconds(kPageKeyLifetime)}});
}

HttpAnswer ClusterApi::answer(const HttpRequest& request) const {
  if (auto answer = table_.answer(request)) return *std::move(answer);
  // The page's paths and the API's do not meet.
  if (auto file = web_file(request)) return std::move(*file);
  const auto& path = request.segments;
  const bool of_api = path.size() > 1 && path[0] == "api" && path[1] == "v1";
  return http::error_response(
      Error{ErrorCode::kNotFound, "there is no " + request.target, "",
            of_api ? table_.near(request) : "the API is below /api/v1; metrics are at /metrics"});
}

}  // namespace

http::HttpHandler make_http_handler(const HttpApi& api) {
  const auto served = std::make_shared<const ClusterApi>(api);
  return [served](const HttpRequest& request) { return served->answer(request); };
}

}  // namespace tandem::api
