// A request of the queue becomes one call, or two where an evaluation wants a greedy completion
// beside sampled ones. The answers of calls come on a thread of the HTTP client, which puts them
// into an inbox; step() alone reads it, so that nothing else here is shared. An update pauses the
// server, and what it computes goes on afterwards by the new version. Which tokens are of which
// version is told by the server's spans, never guessed.
#include "actors/rollout/external/served_engine.h"

#include <algorithm>
#include <map>
#include <utility>

#include "actors/model/probe.h"
#include "actors/rollout/answers.h"
#include "actors/rollout/external/served_answer.h"
#include "actors/rollout/external/served_update.h"
#include "actors/rollout/external/served_versions.h"
#include "actors/rollout/sequence_times.h"
#include "actors/rollout/work_queue.h"
#include "runtime/base/check.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/device/memory.h"

namespace tandem::rollout {
namespace {

// How often the engine looks for answers while it waits for some.
constexpr Duration kLookEvery = std::chrono::milliseconds(2);
constexpr Duration kPauseMin = std::chrono::milliseconds(250);  // before the second ask; it doubles
constexpr Duration kAsideTimeout = std::chrono::seconds(10);    // of aborts and figures
// Completions of one call draw with seed + index, which must not overflow 63 bits.
constexpr std::uint64_t kSeedMask = (std::uint64_t{1} << 62) - 1;

// A request under way, with the completions that have come.
struct OpenWork {
  Request request;
  std::vector<messages::Trajectory> trajectories;  // [n]
  int calls_left = 0;
};

// Some completions of a request, which are asked for together.
struct OpenCall {
  std::shared_ptr<OpenWork> work;
  std::size_t first = 0;  // of the request's completions
  std::int32_t n = 1;
  std::string id;
  int asks = 0;
  PolicyVersion sent_under;  // the version that was installed then
  Time sent;
  Time due;           // when it is sent
  bool waits = true;  // for that
};

struct Arrived {
  std::uint64_t call = 0;  // kPushCall: a phase of the update; kMetricsCall: the server's figures
  Result<http::HttpResponse> response;
};
constexpr std::uint64_t kPushCall = 0;
constexpr std::uint64_t kMetricsCall = 1;
using Inbox = Guarded<std::vector<Arrived>>;

}  // namespace

struct ServedEngine::State {
  ServedModel model;
  ServedConfig config;
  ServerLink server;
  std::function<Time()> clock;
  StopRules rules;
  WorkQueue queue;
  Answers answers;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();

  std::map<std::uint64_t, OpenCall> calls;  // by number; an answer to another number is not heard
  std::uint64_t call_last = kMetricsCall;
  std::vector<Arrived> held = {};  // answers that came while weights were pushed
  std::optional<ServedUpdate> update;
  ServedVersions versions;
  std::vector<std::int32_t> probe;  // the tokens that the server scores
  Time heard{};                     // when the server last answered well, or computed tokens
  struct Figures {
    bool asked = false;
    Time due{};
    std::optional<ServerMetrics> first, newest;
  };
  Figures figures = {};
  bool failed = false;
  device::Buffer sink = {};
  TokenCounts counts = {};
  messages::Latencies latencies = {};  // what can be seen from here: `queue` and `request`

  void push(Request request);
  void start_requests();
  void open_call(const std::shared_ptr<OpenWork>& work, std::size_t first, std::int32_t n);
  void send_due();
  void send(std::uint64_t number, OpenCall& call);
  void ask(std::uint64_t number, const ServerCall& call, Duration timeout);
  void take_arrived();
  void answered(std::uint64_t number, const Result<http::HttpResponse>& response);
  Result<std::vector<messages::Trajectory>> read(const OpenCall& call,
                                                 const Result<http::HttpResponse>& response) const;
  void ask_again(std::uint64_t number, const Error& why);
  void abort(const OpenCall& call) const;
  void begin_anew();
  void finish(OpenWork& work);
  void look_at_figures();
  void figures_answered(const Result<http::HttpResponse>& response);
  void look_at_update();
  void finish_update();
  void cancel(const std::function<bool(const Request&)>& which);
  void fail(Error error);
  std::int64_t running() const;
};

void ServedEngine::State::ask(std::uint64_t number, const ServerCall& call, Duration timeout) {
  server.ask(call, timeout, [inbox = inbox, number](Result<http::HttpResponse> response) {
    inbox->with([&](auto& arrived) { arrived.push_back({number, std::move(response)}); });
  });
}

void ServedEngine::State::start_requests() {
  while (running() < config.engine.args.max_num_seqs && queue.next() != nullptr) {
    Request request = queue.take();
    observe(latencies.queue, messages::kRequestBounds, seconds(clock() - request.submitted),
            static_cast<std::uint64_t>(request.n));
    auto work = std::make_shared<OpenWork>();
    const std::int32_t n = request.n;
    work->trajectories.resize(static_cast<std::size_t>(n));
    std::int32_t sampled = n;
    if (request.of_evaluation())
      for (sampled = 0; sampled < n && !is_greedy(request.sampling, sampled);) ++sampled;
    work->request = std::move(request);
    if (sampled > 0) open_call(work, 0, sampled);
    // A server refuses several greedy completions in one call.
    for (std::int32_t i = sampled; i < n; ++i) open_call(work, static_cast<std::size_t>(i), 1);
  }
}

void ServedEngine::State::open_call(const std::shared_ptr<OpenWork>& work, std::size_t first,
                                    std::int32_t n) {
  ++work->calls_left;
  calls.emplace(++call_last, OpenCall{.work = work, .first = first, .n = n, .due = clock()});
}

void ServedEngine::State::send_due() {
  const Time now = clock();
  for (auto& [number, call] : calls)
    if (call.waits && call.due <= now) send(number, call);
}

void ServedEngine::State::send(std::uint64_t number, OpenCall& call) {
  const Request& request = call.work->request;
  call.id = config.label_prefix + "-" + std::to_string(number);
  call.waits = false;
  call.sent_under = *queue.version();
  call.sent = clock();
  ++call.asks;
  GenerateCall generate{.id = call.id,
                        .prompt = request.prompt_tokens,
                        .n = call.n,
                        .seed = request.trajectory_seed(call.first) & kSeedMask,
                        .temperature = static_cast<float>(config.engine.sampling.temperature),
                        .top_p = static_cast<float>(config.engine.sampling.top_p),
                        .min_p = static_cast<float>(config.engine.sampling.min_p),
                        .top_k = static_cast<std::int32_t>(config.engine.sampling.top_k),
                        .rules = &rules,
                        .salt = versions.label()};
  if (request.of_evaluation()) {
    const bool greedy = is_greedy(request.sampling, static_cast<std::int32_t>(call.first));
    generate.temperature = greedy ? 0 : request.sampling.temperature;
    generate.top_p = greedy ? 1 : request.sampling.top_p;
    generate.top_k = greedy ? 0 : request.sampling.top_k;
    generate.min_p = 0;
  }
  ask(number, config.dialect->generate(generate), config.request_timeout);
}

void ServedEngine::State::take_arrived() {
  for (Arrived& one : inbox->with([](auto& waiting) { return std::exchange(waiting, {}); }))
    if (one.call == kMetricsCall)
      figures_answered(one.response);
    else if (one.call != kPushCall)
      held.push_back(std::move(one));
    else if (update)
      update->take(std::move(one.response));
  // Tokens of a version may come before the server has said that it goes on with it (EV-2).
  if (update || failed) return;
  for (const Arrived& one : std::exchange(held, {}))
    if (!failed) answered(one.call, one.response);
}

Result<std::vector<messages::Trajectory>> ServedEngine::State::read(
    const OpenCall& call, const Result<http::HttpResponse>& response) const {
  if (!response) return response.error();
  const Request& request = call.work->request;
  if (const auto fine = succeeded({.target = "its request for completions"}, *response); !fine)
    return fine.error();
  const auto answer = config.dialect->read_generated(response->body);
  if (!answer) return answer.error();
  return trajectories_of(
      *answer,
      {.id = call.id,
       .prompt = request.prompt_tokens,
       .n = call.n,
       .sent_under = call.sent_under,
       .keeps_kv = config.engine.kv_on_update == KvOnUpdate::kKeep && !config.dialect->recomputes,
       .needs_logprobs = !request.of_evaluation()},
      {.stop = rules,
       .tokenizer = *model.tokenizer,
       .vocabulary = static_cast<std::int32_t>(model.config.vocab_size),
       .versions = versions.labels()});
}

void ServedEngine::State::answered(std::uint64_t number,
                                   const Result<http::HttpResponse>& response) {
  const auto found = calls.find(number);
  if (found == calls.end()) return;
  auto trajectories = read(found->second, response);
  if (!trajectories) return ask_again(number, trajectories.error());
  heard = clock();
  OpenWork& work = *found->second.work;
  observe(latencies.request, messages::kRequestBounds, seconds(heard - work.request.submitted),
          trajectories->size());
  for (std::size_t i = 0; i < trajectories->size(); ++i) {
    counts.generation_tokens += (*trajectories)[i].tokens.size();
    work.trajectories[found->second.first + i] = std::move((*trajectories)[i]);
  }
  if (found->second.first == 0) counts.prompt_tokens += work.request.prompt_tokens.size();
  if (--work.calls_left == 0) finish(work);
  calls.erase(found);
}

// The call gets another number, so that an answer to the former one, which may still come, is not
// heard (EV-1).
void ServedEngine::State::ask_again(std::uint64_t number, const Error& why) {
  auto node = calls.extract(number);
  OpenCall& call = node.mapped();
  log::warn("event=ask_failed request={} asks={} error=\"{}\"", call.id, call.asks, why.message);
  if (why.code == ErrorCode::kTimedOut && heard < call.sent)
    return fail({why.code,
                 "the server has answered nothing and computed no token for the whole of "
                 "rollout.engine.request_timeout_s",
                 why.where, "is it hung, or is the timeout too short for its prompts?"});
  if (call.asks >= kAsksMax)
    return fail(
        {at_work(why).code,
         "the server failed one request " + std::to_string(call.asks) + " times: " + why.message,
         why.where, why.help});
  if (why.code == ErrorCode::kTimedOut) abort(call);
  call.waits = true;
  call.due = clock() + kPauseMin * (1 << (call.asks - 1));
  node.key() = ++call_last;
  calls.insert(std::move(node));
}

// Calls that were sent are sent once more, which counts as no ask; their answers are not heard.
void ServedEngine::State::begin_anew() {
  std::vector<std::uint64_t> sent;
  for (const auto& [number, call] : calls)
    if (!call.waits) sent.push_back(number);
  for (const std::uint64_t number : sent) {
    auto node = calls.extract(number);
    OpenCall& call = node.mapped();
    abort(call);
    --call.asks;
    call.waits = true;
    call.due = clock();
    node.key() = ++call_last;
    calls.insert(std::move(node));
  }
}

void ServedEngine::State::abort(const OpenCall& call) const {
  for (const ServerCall& one : config.dialect->abort(call.id, call.n))
    server.ask(one, kAsideTimeout, [](const auto&) {});
}

void ServedEngine::State::finish(OpenWork& work) {
  queue.ended(work.request);
  answers.complete(std::move(work.request), std::move(work.trajectories));
}

void ServedEngine::State::look_at_figures() {
  if (figures.asked || clock() < figures.due) return;
  figures.asked = true;
  figures.due = clock() + config.metrics_every;
  ask(kMetricsCall, {.method = CallMethod::kGet, .target = "/metrics"}, kAsideTimeout);
}

// A server without figures, or one that is busy, is judged by its answers alone.
void ServedEngine::State::figures_answered(const Result<http::HttpResponse>& response) {
  figures.asked = false;
  if (!response || response->status != 200) return;
  const auto read = read_metrics(response->body, config.dialect->metrics);
  if (!read) return;
  if (!figures.first) figures.first = read;
  figures.newest = read;
  // A counter that goes back is that of a server that was started anew by somebody.
  const auto since_first = [this](double ServerMetrics::*counter) {
    return static_cast<std::uint64_t>(
        std::max(0.0, (*figures.newest).*counter - (*figures.first).*counter));
  };
  const std::uint64_t generated = since_first(&ServerMetrics::generation_tokens);
  if (generated > counts.generation_tokens) heard = clock();
  counts.generation_tokens = std::max(counts.generation_tokens, generated);
  counts.prompt_tokens = std::max(counts.prompt_tokens, since_first(&ServerMetrics::prompt_tokens));
}

void ServedEngine::State::look_at_update() {
  if (!update) return;
  const ServedUpdate::Step step = update->step();
  if (step.heard) heard = clock();
  // Keys and values of what runs may be of weights that are no version's.
  if (step.refuted) begin_anew();
  if (const auto failure = update->failure()) return fail(*failure);
  if (update->done()) finish_update();
}

void ServedEngine::State::finish_update() {
  update.reset();
  // No open call may have tokens of an older version than the one under which it was sent.
  PolicyVersion oldest = *queue.version();
  if (!versions.proven())
    log::warn("event=version_unproven version={}: the learner's probe of it is not known",
              oldest.value);
  for (const auto& [number, call] : calls)
    if (!call.waits) oldest = std::min(oldest, call.sent_under);
  versions.installed(oldest);
}

void ServedEngine::State::cancel(const std::function<bool(const Request&)>& which) {
  queue.remove(which);
  std::vector<std::shared_ptr<OpenWork>> cancelled;
  std::erase_if(calls, [&](const auto& entry) {
    const OpenCall& call = entry.second;
    if (!which(call.work->request)) return false;
    if (std::ranges::find(cancelled, call.work) == cancelled.end()) cancelled.push_back(call.work);
    if (!call.waits) abort(call);
    return true;
  });
  for (const auto& work : cancelled) queue.ended(work->request);
}

void ServedEngine::State::fail(Error error) {
  if (std::exchange(failed, true)) return;
  cancel([](const Request&) { return true; });
  answers.forget_evaluations();
  answers.fail(std::move(error));
}

std::int64_t ServedEngine::State::running() const {
  std::int64_t sequences = 0;
  for (const auto& [number, call] : calls) sequences += call.n;
  return sequences;
}

ServedEngine::ServedEngine(std::unique_ptr<State> state) : state_(std::move(state)) {}

// An update reads the sink until it is over.
ServedEngine::~ServedEngine() { state_->update.reset(); }

Result<std::unique_ptr<ServedEngine>> ServedEngine::make(ServedModel model, ServedConfig config,
                                                         ServerLink server,
                                                         std::function<Time()> clock) {
  CHECK(config.dialect != nullptr && config.engine.args.max_num_seqs > 0);
  Result<StopRules> rules = make_stop_rules(config.engine, model.config);
  if (!rules) return rules.error();
  WorkQueue queue(config.engine.partial_rollout, evaluation_seqs(config.engine));
  ServedVersions versions(config.label_prefix, config.logprob_tolerance);
  auto probe =
      model::probe_tokens(model.config.vocab_size, std::int64_t{config.engine.max_prompt_length} +
                                                       config.engine.max_response_length);
  return std::unique_ptr<ServedEngine>(
      new ServedEngine(std::unique_ptr<State>(new State{.model = std::move(model),
                                                        .config = std::move(config),
                                                        .server = std::move(server),
                                                        .clock = std::move(clock),
                                                        .rules = *std::move(rules),
                                                        .queue = std::move(queue),
                                                        .answers = {},
                                                        .calls = {},
                                                        .update = {},
                                                        .versions = std::move(versions),
                                                        .probe = std::move(probe)})));
}

void ServedEngine::State::push(Request request) {
  if (!encode_prompt(request, *model.tokenizer, config.engine, answers)) return;
  request.submitted = clock();
  queue.push(std::move(request));
}

void ServedEngine::submit(messages::GroupWork work) { state_->push(request_of(std::move(work))); }

void ServedEngine::submit(messages::Evaluate evaluation) {
  state_->answers.open(std::move(evaluation),
                       [this](Request request) { state_->push(std::move(request)); });
}

void ServedEngine::cancel(std::span<const GroupId> groups) { state_->cancel(is_of(groups)); }

void ServedEngine::cancel_evaluations() {
  state_->cancel([](const Request& request) { return request.of_evaluation(); });
  state_->answers.forget_evaluations();
}

void ServedEngine::cancel_all() {
  state_->cancel([](const Request&) { return true; });
  state_->answers.forget_evaluations();
}

bool ServedEngine::can_step() const {
  if (state_->failed) return false;
  if (state_->server.ended()) return true;
  return state_->update || !state_->calls.empty() || state_->queue.next() != nullptr;
}

Duration ServedEngine::step() {
  CHECK(can_step());
  state_->take_arrived();
  if (const auto why = state_->server.ended(); why && !state_->failed)
    state_->fail({ErrorCode::kFailed, "the engine's server " + *why, "rollout.engine",
                  "its last lines are in this rollout's log"});
  if (state_->failed) return {};
  state_->look_at_figures();
  state_->look_at_update();
  if (!state_->update) {
    state_->start_requests();
    state_->send_due();
  }
  return can_step() ? kLookEvery : Duration{};
}

std::vector<EngineEvent> ServedEngine::poll() { return state_->answers.take(); }

EngineStats ServedEngine::stats() const {
  EngineStats stats{.generation_tokens = state_->counts.generation_tokens,
                    .prompt_tokens = state_->counts.prompt_tokens,
                    .latencies = state_->latencies};
  std::int64_t running = state_->running();
  std::int64_t waiting = state_->queue.sequences();
  if (const auto& figures = state_->figures.newest) {
    stats.prefix_cache_queries = static_cast<std::uint64_t>(figures->prefix_cache_queries);
    stats.prefix_cache_hits = static_cast<std::uint64_t>(figures->prefix_cache_hits);
    stats.preemptions = static_cast<std::uint64_t>(figures->preemptions);
    stats.kv_cache_usage = std::min(1.0, figures->kv_cache_usage);
    // Of what was sent some may wait in the server.
    const auto waits_there = std::min(running, static_cast<std::int64_t>(figures->waiting));
    running -= waits_there;
    waiting += waits_there;
  }
  stats.sequences_running = static_cast<std::int32_t>(running);
  stats.sequences_waiting = static_cast<std::int32_t>(waiting);
  return stats;
}

TokenCounts ServedEngine::tokens() const { return state_->counts; }

std::optional<PolicyVersion> ServedEngine::version() const { return state_->versions.version(); }

std::optional<PolicyVersion> ServedEngine::wants(const VersionOffer& offer) {
  return state_->queue.wants(offer);
}

Result<std::span<std::byte>> ServedEngine::weight_sink() {
  device::Buffer& sink = state_->sink;
  if (sink.size() == 0) {
    auto made =
        device::Buffer::allocate(state_->config.manifest.bytes_total, "the weights that arrive",
                                 device::staging_memory(device::DeviceKind::kCpu));
    if (!made) return made.error();
    sink = *std::move(made);
  }
  return std::span(sink.data(), sink.size());
}

void ServedEngine::begin_update(PolicyVersion version) { state_->queue.begin_update(version); }

bool ServedEngine::may_finish_update() const {
  return !state_->update && state_->queue.may_finish_update();
}

Duration ServedEngine::finish_update(std::span<const std::byte> arena) {
  CHECK(may_finish_update());
  State& state = *state_;
  // The queue changes at once, and starts nothing before the server has: a request for the version
  // before may come meanwhile, and waits for that version.
  const PolicyVersion version = state.queue.finish_update();
  const ServedConfig& config = state.config;
  PushFacts facts{.label = state.versions.begin(version),
                  .manifest = &config.manifest,
                  .recompute = config.engine.kv_on_update == KvOnUpdate::kRecompute,
                  .probe = state.probe,
                  .transfer = config.transfer};
  const auto ask = [&state](const ServerCall& call) {
    state.ask(kPushCall, call, state.config.update_timeout);
  };
  state.update.emplace(ServedUpdate::Parts{.dialect = config.dialect,
                                           .weights = state.server.weights.get(),
                                           .versions = &state.versions,
                                           .ask = ask,
                                           .call_bytes = config.call_bytes},
                       std::move(facts), arena);
  return {};
}

bool ServedEngine::installing() const { return state_->update.has_value(); }

void ServedEngine::expect(PolicyVersion version, std::vector<float> probe) {
  state_->versions.expect(version, std::move(probe));
}

void ServedEngine::version_gone(PolicyVersion version) {
  refuse_pinned(state_->queue, version, state_->answers);
}

}  // namespace tandem::rollout
