// A server that speaks as SGLang 0.5.23 does to whoever drives it for reinforcement learning, with
// a tiny model inside (fake_model.h): the routes, bodies and refusals that were recorded from the
// real one. Requests draw by their sampling_seed only where it was started with
// --enable-deterministic-inference, as there; else by a number of its own.
//
// Its faults (Faults in fake_server.h):
//
//   die             the process ends when a request for completions comes
//   error           such a request is answered with 500
//   garbage         … with a text that is no JSON
//   other-answer    … with the answer of another request
//   stall           … never
//   logprob         one log-probability is null
//   foreign-label   tokens are told to be of weights that nobody pushed
//   break-update    an update is answered with 400, and the weights stay as they are
//   die-in-update   the process ends in the middle of an update
//   stall-update    an update is never answered
//   late-answers    all answers wait (LateAnswers in fake_server.h)
//   wait-for-update what runs waits for an update once --fault-at completions are whole
//   no-pause        a pause is answered with 500
//   stale-update    an update is answered as done, and the weights stay as they are
//   wrong-update    … and the weights are others
//   unflushed       … with 400, as the cache could not be emptied; the weights are the new ones
//   wrong-order     (nccl) it takes the tensors in another order
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "tests/actors/rollout/external/fake_nccl_worker.h"
#include "tests/actors/rollout/external/fake_server.h"
#include "tests/runtime/weights/store_client.h"

namespace tandem::rollout {
namespace {

using http::HttpAnswer;
using http::HttpLater;
using http::HttpRequest;
using http::HttpResponse;
using nlohmann::json;

constexpr const char* kValues[] = {"--model-path",
                                   "--host",
                                   "--port",
                                   "--served-model-name",
                                   "--load-format",
                                   "--dtype",
                                   "--context-length",
                                   "--max-running-requests",
                                   "--max-prefill-tokens",
                                   "--max-total-tokens",
                                   "--mem-fraction-static",
                                   "--sampling-defaults",
                                   "--log-level-http",
                                   "--device",
                                   "--tp-size"};
constexpr const char* kFlags[] = {"--enable-metrics", "--skip-server-warmup",
                                  "--enable-deterministic-inference"};

const std::set<std::string> kPosts{"/generate",
                                   "/abort_request",
                                   "/pause_generation",
                                   "/continue_generation",
                                   "/update_weights_from_disk",
                                   "/init_weights_update_group",
                                   "/begin_weight_update",
                                   "/update_weights_from_distributed",
                                   "/end_weight_update"};

HttpResponse refusal(int status, const std::string& message) {
  return {.status = status, .body = dump_json({{"error", {{"message", message}}}})};
}

HttpResponse updated(bool success, const std::string& message) {
  return {
      .status = success ? 200 : 400,
      .body = dump_json({{"success", success}, {"message", message}, {"num_paused_requests", 0}})};
}

// The completions of one call, which is answered once all are there.
struct Group {
  std::vector<FakeRequest> requests;
  std::vector<std::optional<ServedCompletion>> completions;
  std::size_t open = 0;
};

class FakeSglang {
 public:
  FakeSglang(const FakeOptions& options, model::ModelInfo info)
      : options_(options),
        faults_(options),
        model_(std::move(info), std::stol(options_.value("--max-running-requests", "256"))),
        manifest_(model::published_manifest(model_.info().config)) {
    if (faults_.is("wait-for-update")) model_.wait_for_update(faults_.at());
  }

  HttpAnswer handle(const HttpRequest& request) {
    const std::string route = request.target.substr(0, request.target.find('?'));
    if (route == "/health") return HttpResponse{};
    if (route == "/v1/models")
      return answer({{"object", "list"},
                     {"data",
                      {{{"id", options_.value("--served-model-name", options_.model)},
                        {"root", options_.model},
                        {"owned_by", "sglang"},
                        {"max_model_len", positions()}}}}});
    if (route == "/server_info")
      return answer({{"version", "0.5.23"},
                     {"tp_size", 1},
                     {"dp_size", 1},
                     {"pp_size", 1},
                     {"enable_dp_attention", false}});
    if (route == "/metrics")
      return options_.flags.contains("--enable-metrics") ? metrics() : refusal(404, "Not Found");
    if (!kPosts.contains(route)) return refusal(404, "Not Found");
    if (request.method != "POST") return refusal(405, "Method Not Allowed");
    const json body = parse_json(request.body);
    if (!body.is_object()) return refusal(422, "the body is not a JSON object");
    if (route == "/generate") return generate(body);
    if (route == "/abort_request") {
      model_.abort(body.value("rid", ""));
      return HttpResponse{};
    }
    if (route == "/update_weights_from_disk") return update(body);
    if (route == "/init_weights_update_group") return join_group(body);
    if (route == "/update_weights_from_distributed") return take_broadcasts(body);
    if (route == "/begin_weight_update" || route == "/end_weight_update")
      return bracket(route == "/begin_weight_update");
    if (route == "/continue_generation") {
      model_.resume();
      return answer({{"message", "Generation continued successfully."}, {"status", "ok"}});
    }
    return pause(body);
  }

 private:
  std::int64_t positions() const { return std::stol(options_.value("--context-length", "128")); }

  HttpAnswer pause(const json& body) {
    if (faults_.now("no-pause")) return refusal(500, "pause failed");
    // The default of the real one aborts what runs.
    const std::string mode = body.value("mode", "abort");
    if (mode != "in_place" && mode != "retract")
      return refusal(400, "this fake keeps what runs in every pause");
    retracted_ = mode == "retract";
    model_.pause();
    return answer({{"message", "Generation paused successfully."}, {"status", "ok"}});
  }

  FakeRequest request_of(const json& prompt, const json& sampling, const json& name) {
    FakeRequest request;
    request.id = name.is_string() ? name.get<std::string>() : "none";
    request.prompt = prompt.get<std::vector<std::int32_t>>();
    const bool seeded = options_.flags.contains("--enable-deterministic-inference");
    request.seed = seeded ? sampling.value("sampling_seed", std::uint64_t{42}) : ++unseeded_;
    request.temperature = sampling.value("temperature", 1.0);
    request.top_p = sampling.value("top_p", 1.0);
    request.top_k = std::max(0, sampling.value("top_k", -1));
    request.min_p = sampling.value("min_p", 0.0);
    request.min_tokens = sampling.value("min_new_tokens", 0);
    request.max_tokens = sampling.value("max_new_tokens", 128);
    request.stop_token_ids = sampling.value("stop_token_ids", std::vector<std::int64_t>{});
    request.stop = sampling.value("stop", std::vector<std::string>{});
    return request;
  }

  HttpAnswer generate(const json& body) {
    if (faults_.now("die")) stop(options_, 1, "Scheduler hit an exception");
    if (faults_.now("error")) return refusal(500, "Internal Server Error");
    if (faults_.now("garbage")) return HttpResponse{.body = "<html>Bad Gateway</html>"};
    if (faults_.now("stall")) return never();
    const json prompts = body.value("input_ids", json::array());
    const json sampling = body.value("sampling_params", json::object());
    if (!body.value("return_logprob", false)) return refusal(400, "this fake wants return_logprob");
    if (body.value("logprob_start_len", -1) == 0)
      return scored(request_of(prompts, sampling, body.value("rid", json())));
    const json names = body.value("rid", json::array());
    if (!prompts.is_array() || prompts.size() != sampling.size() || prompts.size() != names.size())
      return refusal(400, "prompts, sampling_params and rid differ in number");
    auto group = std::make_shared<Group>();
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      group->requests.push_back(request_of(prompts[i], sampling[i], names[i]));
      FakeRequest& one = group->requests.back();
      const std::int64_t prompt = std::ssize(one.prompt);
      if (prompt > positions() - 6)
        return refusal(400, "Input length (" + std::to_string(prompt) +
                                " tokens) exceeds the maximum allowed length (" +
                                std::to_string(positions() - 6) + " tokens).");
      if (!fits(one, positions()))
        return refusal(400, "Requested token count exceeds the model's maximum context length of " +
                                std::to_string(positions()) + " tokens.");
      one.max_tokens = std::min(one.max_tokens, positions() - 2 - prompt);
    }
    group->completions.resize(prompts.size());
    group->open = prompts.size();
    const Broken broken{.id = faults_.now("other-answer"),
                        .logprob = faults_.now("logprob"),
                        .label = faults_.now("foreign-label")};
    return HttpLater{
        .start = [this, group, broken](auto respond) { start(group, broken, respond); }};
  }

  struct Broken {
    bool id = false, logprob = false, label = false;
  };
  template <class Respond>
  void start(const std::shared_ptr<Group>& group, const Broken& broken, const Respond& respond) {
    for (std::size_t i = 0; i < group->requests.size(); ++i) {
      const auto why = model_.generate(group->requests[i], [=, this](const auto& completions) {
        const bool aborted = !completions;
        group->completions[i] =
            aborted ? ServedCompletion{.end = ServedEnd::kAborted} : completions->front();
        if (--group->open > 0) return;
        if (!faults_.is("late-answers")) return respond(generated(*group, broken));
        late_.hold([=] { respond(generated(*group, broken)); });
      });
      if (why) return respond(refusal(400, *why));
    }
  }

  static HttpResponse generated(const Group& group, const Broken& broken) {
    json answers = json::array();
    for (std::size_t i = 0; i < group.requests.size(); ++i) {
      const ServedCompletion& completion = *group.completions[i];
      json about = about_of(completion, broken);
      about["id"] = broken.id ? "x.0." : group.requests[i].id;
      about["prompt_tokens"] = group.requests[i].prompt.size();
      answers.push_back({{"output_ids", completion.tokens},
                         {"meta_info", about},
                         {"prompt_token_ids", group.requests[i].prompt}});
    }
    return answer(answers);
  }
  static json about_of(const ServedCompletion& completion, const Broken& broken) {
    json logprobs = json::array(), versions = json::array();
    for (std::size_t t = 0; t < completion.tokens.size(); ++t)
      logprobs.push_back({broken.logprob && t == 0 ? json() : json(completion.logprobs[t]),
                          completion.tokens[t], nullptr});
    for (const LabelSpan& span : completion.versions)
      versions.push_back({{"version", broken.label ? "somebody-7" : span.label},
                          {"start", span.begin},
                          {"end", span.end}});
    json reason{{"type", "stop"}, {"matched", 1}};
    if (completion.end == ServedEnd::kLength)
      reason = {{"type", "length"}, {"length", completion.tokens.size()}};
    if (completion.end == ServedEnd::kAborted)
      reason = {{"type", "abort"}, {"message", "Aborted"}, {"status_code", nullptr}};
    return {{"finish_reason", reason},
            {"output_token_logprobs", logprobs},
            {"completion_tokens", completion.tokens.size()},
            {"weight_versions", versions}};
  }

  HttpAnswer scored(const FakeRequest& request) {
    json prompt = json::array();
    prompt.push_back({nullptr, request.prompt[0], nullptr});
    const std::vector<float> scores = model_.score(request.prompt);
    const auto last = static_cast<std::int32_t>(model_.info().config.vocab_size) - 1;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::int32_t token = request.prompt[i + 1];
      prompt.push_back({scores[i], token == last ? 0 : token, nullptr});
    }
    return answer(
        {{"output_ids", {1}},
         {"meta_info", {{"id", request.id}, {"input_token_logprobs", std::move(prompt)}}}});
  }

  HttpAnswer metrics() {
    late_.figures_asked();
    const TokenCounts tokens = model_.tokens();
    const auto line = [](const std::string& series, std::uint64_t value) {
      return "sglang:" + series + ",model_name=\"tandem\"} " + std::to_string(value) + ".0\n";
    };
    return HttpResponse{
        .content_type = "text/plain",
        .body = line("realtime_tokens_total{mode=\"decode\"", tokens.generation_tokens) +
                line("realtime_tokens_total{mode=\"prefill_compute\"", tokens.prompt_tokens) +
                line("num_running_reqs{tp_rank=\"0\"",
                     static_cast<std::uint64_t>(model_.sequences_running()))};
  }

  // Its one rank joins the process group at the store, and connects with the first tensor.
  HttpAnswer join_group(const json& body) {
    const std::lock_guard lock(mutex_);
    if (body.value("backend", "") != "nccl" || body.value("rank_offset", 0) != 1 ||
        body.value("world_size", 0) != 2)
      return updated(false, "this fake is rank 1 of 2");
    store_ = std::make_unique<weights::StoreClient>(body.value("master_address", ""),
                                                    body.value("master_port", std::uint16_t{0}));
    group_ = body.value("group_name", "");
    if (worker_) worker_->leave();
    if (!store_->greeted() || !store_->add("init/", 1))
      return updated(false, "Failed to initialize custom process group: no store");
    return updated(true, "Succeeded to initialize custom process group.");
  }
  HttpAnswer bracket(bool begins) {
    const std::lock_guard lock(mutex_);
    if (begins == begun_) return updated(false, "it has begun, or has not");
    begun_ = begins;
    return updated(true, "Success");
  }
  HttpAnswer take_broadcasts(const json& body) {
    const std::lock_guard lock(mutex_);
    if (!begun_)
      return updated(false, "must run between begin_weight_update() and end_weight_update()");
    if (faults_.now("stall-update")) return never();
    if (!store_ || body.value("group_name", "") != group_)
      return updated(false, "Group " + body.value("group_name", "") + " not in list");
    std::vector<std::span<std::byte>> tensors;
    for (const json& name : body.value("names", json::array())) {
      const auto* spec = manifest_.find(name.get<std::string>());
      if (!spec || body["shapes"].at(tensors.size()) != json(spec->shape) ||
          body["dtypes"].at(tensors.size()) != "float32")
        return updated(false, "the model has no parameter " + name.dump());
      tensors.push_back(std::span(broadcast_).subspan(spec->offset_bytes, spec->bytes));
    }
    if (!worker_) worker_ = std::make_unique<FakeNcclWorker>();
    if (!worker_->joined()) {
      const auto id = store_->get("/" + group_ + "/" + group_ + "//cuda//0");
      if (const auto why = worker_->join_late(id.value_or(""))) return updated(false, *why);
    }
    if (faults_.now("wrong-order")) std::ranges::reverse(tensors);
    const bool dies = faults_.now("die-in-update");
    if (const auto why = worker_->receive(tensors, dies || faults_.now("break-update"))) {
      if (dies) stop(options_, 1, "killed in the middle of an update");
      return updated(false, *why);
    }
    // Real ones have mixed weights until the last call, which names the version.
    if (body.contains("weight_version")) return install(broadcast_, body);
    if (body.value("flush_cache", true) && model_.busy() && !retracted_)
      return updated(false, "The cache was not flushed: requests run.");
    return updated(true, "Succeeded to update parameter online.");
  }

  HttpAnswer update(const json& body) {
    const std::lock_guard lock(mutex_);
    if (faults_.now("stall-update")) return never();
    if (faults_.now("die-in-update")) stop(options_, 1, "killed in the middle of an update");
    // Started with --load-format dummy it has no loader for files, unless it is named.
    if (options_.value("--load-format") == "dummy" && body.value("load_format", "") != "auto")
      return updated(false, "Failed to get model loader: <DummyModelLoader object>.");
    if (body.value("abort_all_requests", false)) return refusal(400, "this fake aborts nothing");
    auto arena = read_folder(body.value("model_path", ""), manifest_);
    if (!arena) return updated(false, "Failed to get weights iterator: " + arena.error().message);
    if (faults_.now("break-update"))
      return updated(false, "Failed to update weights: 0. Rolling back to original weights.");
    return install({arena->bytes().begin(), arena->bytes().end()}, body);
  }
  HttpResponse install(std::vector<std::byte> bytes, const json& body) {
    if (faults_.now("wrong-update")) spoil(bytes);
    const std::string label = body.value("weight_version", model_.label());
    if (faults_.now("stale-update"))
      model_.relabel(label);
    else
      model_.update(bytes, label);
    const bool flushes = body.value("flush_cache", true);
    if ((flushes && !retracted_ && model_.busy()) || faults_.now("unflushed"))
      return updated(false, "Weights were updated, but the cache was not flushed: requests run.");
    return updated(true, "Succeeded to update model weights. Weight version updated to " + label);
  }

  const FakeOptions options_;
  Faults faults_;
  LateAnswers late_;
  FakeModel model_;
  const device::Manifest manifest_;
  std::atomic<std::uint64_t> unseeded_{0};
  std::atomic<bool> retracted_{false};
  std::mutex mutex_;                             // one update at a time; guards what follows
  std::unique_ptr<weights::StoreClient> store_;  // of the group that it has joined
  std::string group_;
  std::unique_ptr<FakeNcclWorker> worker_;
  std::vector<std::byte> broadcast_ = std::vector<std::byte>(manifest_.bytes_total);
  bool begun_ = false;
};

}  // namespace
}  // namespace tandem::rollout

int main(int argc, char** argv) {
  using namespace tandem::rollout;
  return serve_fake(
      argc, argv,
      {.program = "sglang", .values = kValues, .flags = kFlags, .model = "--model-path"},
      [](const FakeOptions& options, tandem::model::ModelInfo info) -> FakeHandler {
        auto fake = std::make_shared<FakeSglang>(options, std::move(info));
        return [fake](const auto& request) { return fake->handle(request); };
      });
}
