// A server that speaks as vLLM 0.32 does to whoever drives it for reinforcement learning, with a
// tiny model inside (fake_model.h): the routes, bodies, refusals and deaths that were recorded from
// the real one. It refuses arguments that vLLM does not have, lacks the routes for which it was not
// started, and ends as vLLM does where an update is wrong.
//
// Its faults (Faults in fake_server.h):
//
//   die             the process ends when a request for completions comes
//   error           such a request is answered with 500
//   garbage         … with a text that is no JSON
//   other-answer    … with the answer of another request
//   stall           … never
//   logprob         one log-probability is NaN
//   foreign-label   tokens are told to be of weights that nobody pushed
//   break-update    the transfer of weights breaks off in the middle, with 500
//   die-in-update   the process ends in the middle of a transfer
//   stall-update    the transfer is never answered
//   late-answers    all answers wait (LateAnswers in fake_server.h)
//   wait-for-update what runs waits for an update once --fault-at completions are whole
//   no-pause        a pause is answered with 500
//   stale-update    an update is answered as done, and the weights stay as they are
//   wrong-update    … and the weights are others
//   wrong-order     (nccl) a worker takes the tensors in another order
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "runtime/base/base64.h"
#include "runtime/device/queue.h"
#include "runtime/device/shared_block.h"
#include "tests/actors/rollout/external/fake_nccl_worker.h"
#include "tests/actors/rollout/external/fake_server.h"
#include "tests/runtime/weights/feed_reader.h"

namespace tandem::rollout {
namespace {

using http::HttpAnswer;
using http::HttpLater;
using http::HttpRequest;
using http::HttpResponse;
using nlohmann::json;

constexpr const char* kValues[] = {"--host",
                                   "--port",
                                   "--served-model-name",
                                   "--load-format",
                                   "--dtype",
                                   "--max-model-len",
                                   "--max-num-seqs",
                                   "--max-num-batched-tokens",
                                   "--logprobs-mode",
                                   "--weight-transfer-config",
                                   "--gpu-memory-utilization",
                                   "--tensor-parallel-size",
                                   "--uvicorn-log-level"};
constexpr const char* kFlags[] = {"--enable-scale-out", "--enforce-eager",
                                  "--disable-uvicorn-access-log"};

HttpResponse refusal(int status, const std::string& message) {
  return {.status = status,
          .body = dump_json(
              {{"error",
                {{"message", message}, {"type", "Error"}, {"param", nullptr}, {"code", status}}}})};
}
HttpResponse worker_failed(const std::string& why) {
  return refusal(500, "Call to collective_rpc method failed: Worker failed with error '" + why +
                          "', please check the stack trace above for the root cause");
}

class FakeVllm {
 public:
  FakeVllm(const FakeOptions& options, model::ModelInfo info)
      : options_(options),
        faults_(options),
        dev_(std::getenv("VLLM_SERVER_DEV_MODE") != nullptr),
        model_(std::move(info), std::stol(options_.value("--max-num-seqs", "256"))),
        manifest_(model::published_manifest(model_.info().config)) {
    if (faults_.is("wait-for-update")) model_.wait_for_update(faults_.at());
  }

  HttpAnswer handle(const HttpRequest& request) {
    const std::string route = request.target.substr(0, request.target.find('?'));
    if (route == "/health") return HttpResponse{};
    if (route == "/version") return answer({{"version", "0.32.0"}});
    if (route == "/v1/models")
      return answer({{"object", "list"},
                     {"data",
                      {{{"id", options_.value("--served-model-name", options_.model)},
                        {"root", options_.model},
                        {"owned_by", "vllm"},
                        {"max_model_len", positions()}}}}});
    if (route == "/metrics") return metrics();
    const bool generation = route.starts_with("/inference/v1/");
    if (generation ? !options_.flags.contains("--enable-scale-out") : !dev_)
      return refusal(404, "Not Found");
    if (route == "/server_info")
      return answer({{"vllm_config",
                      {{"model_config",
                        {{"logprobs_mode", options_.value("--logprobs-mode", "raw_logprobs")}}},
                       {"weight_transfer_config",
                        parse_json(options_.value("--weight-transfer-config", "null"))}}}});
    if (route == "/get_world_size") return answer({{"world_size", 1}});
    if (route == "/is_paused") return answer({{"is_paused", model_.paused()}});
    if (!posts_.contains(route)) return refusal(404, "Not Found");
    if (request.method != "POST") return refusal(405, "Method Not Allowed");
    const json body = request.body.empty() ? json::object() : parse_json(request.body);
    if (!body.is_object()) return refusal(400, "the body is not a JSON object");
    if (route == "/inference/v1/generate") return generate(body);
    if (route == "/inference/v1/abort_requests") return abort(body);
    return control(route, request, body);
  }

 private:
  std::int64_t positions() const { return std::stol(options_.value("--max-model-len", "128")); }

  HttpAnswer generate(const json& body) {
    // The real one ends at its first forward pass with weights that are not whole, paused or not.
    if (faults_.now("die")) stop(options_, 1, "EngineCore encountered a fatal error");
    if (poisoned_ && !model_.paused())
      stop(options_, 1, "Tensor on device meta is not on the expected device");
    if (faults_.now("error")) return refusal(500, "EngineCore encountered an issue");
    if (faults_.now("garbage")) return HttpResponse{.body = "<html>Bad Gateway</html>"};
    if (faults_.now("stall")) return never();
    FakeRequest request;
    request.id = "generate-tokens-" + body.value("request_id", "none");
    request.prompt = body.value("token_ids", std::vector<std::int32_t>{});
    const json sampling = body.value("sampling_params", json::object());
    request.n = sampling.value("n", 1);
    request.seed = sampling.value("seed", std::uint64_t{0});
    request.temperature = sampling.value("temperature", 1.0);
    request.top_p = sampling.value("top_p", 1.0);
    request.top_k = sampling.value("top_k", 0);
    request.min_p = sampling.value("min_p", 0.0);
    request.min_tokens = sampling.value("min_tokens", 0);
    request.max_tokens = sampling.value("max_tokens", 16);
    request.stop_token_ids = sampling.value("stop_token_ids", std::vector<std::int64_t>{});
    request.stop = sampling.value("stop", std::vector<std::string>{});
    if (sampling.contains("prompt_logprobs")) return scored(request);
    if (!sampling.contains("logprobs") || !body.value("return_token_ids", false))
      return refusal(400, "this fake wants log-probabilities and the prompt's tokens");
    if (request.temperature == 0 && request.n > 1)
      return refusal(
          400, "n must be 1 when using greedy sampling, got " + std::to_string(request.n) + ".");
    if (!fits(request, positions()))
      return refusal(400, "This model's maximum context length is " + std::to_string(positions()) +
                              " tokens.");
    const Broken broken{.id = faults_.now("other-answer"),
                        .logprob = faults_.now("logprob"),
                        .label = faults_.now("foreign-label")};
    return HttpLater{.start = [this, request, broken](auto respond) {
      const auto why = model_.generate(request, [=, this](const auto& completions) {
        if (!faults_.is("late-answers")) return respond(generated(request, completions, broken));
        late_.hold([=] { respond(generated(request, completions, broken)); });
      });
      if (why) respond(refusal(400, *why));
    }};
  }

  HttpAnswer metrics() {
    late_.figures_asked();
    const TokenCounts tokens = model_.tokens();
    const auto line = [](const std::string& name, std::uint64_t value) {
      return name + "{engine=\"0\",model_name=\"tandem\"} " + std::to_string(value) + ".0\n";
    };
    return HttpResponse{
        .content_type = "text/plain",
        .body = "# HELP vllm:generation_tokens_total Number of generation tokens processed.\n" +
                line("vllm:generation_tokens_total", tokens.generation_tokens) +
                line("vllm:prompt_tokens_total", tokens.prompt_tokens) +
                line("vllm:num_requests_running",
                     static_cast<std::uint64_t>(model_.sequences_running()))};
  }

  HttpAnswer scored(const FakeRequest& request) {
    json prompt = json::array({nullptr});
    const std::vector<float> scores = model_.score(request.prompt);
    for (std::size_t i = 0; i < scores.size(); ++i)
      prompt.push_back({{std::to_string(request.prompt[i + 1]),
                         {{"logprob", scores[i]}, {"rank", 1}, {"decoded_token", "x"}}}});
    return answer({{"request_id", request.id}, {"prompt_logprobs", prompt}});
  }

  struct Broken {
    bool id = false, logprob = false, label = false;
  };
  static HttpResponse generated(const FakeRequest& request,
                                const std::optional<std::vector<ServedCompletion>>& completions,
                                const Broken& broken) {
    json choices = json::array();
    for (std::int32_t i = 0; i < request.n; ++i) {
      const ServedCompletion none{.end = ServedEnd::kAborted};
      choices.push_back(
          choice_of(completions ? (*completions)[static_cast<std::size_t>(i)] : none, i, broken));
    }
    return answer({{"request_id", broken.id ? "generate-tokens-x" : request.id},
                   {"prompt_token_ids", request.prompt},
                   {"output_mode", "tokens"},
                   {"usage", {{"prompt_tokens", request.prompt.size()}}},
                   {"choices", choices}});
  }
  static json choice_of(const ServedCompletion& completion, std::int32_t index,
                        const Broken& broken) {
    json content = json::array(), versions = json::array();
    for (std::size_t t = 0; t < completion.tokens.size(); ++t) {
      const json entry{
          {"token_id", completion.tokens[t]},
          {"logprob", broken.logprob && t == 0 ? json() : json(completion.logprobs[t])},
          {"rank", 1}};
      json with_top = entry;
      with_top["top_logprobs"] = {entry};
      content.push_back(with_top);
    }
    for (const LabelSpan& span : completion.versions)
      versions.push_back({{"version", broken.label ? "somebody-7" : span.label},
                          {"start", span.begin},
                          {"end", span.end}});
    const char* const ends[] = {"stop", "length", "abort"};
    return {{"index", index},
            {"finish_reason", ends[static_cast<int>(completion.end)]},
            {"stop_reason", nullptr},
            {"token_ids", completion.tokens},
            {"weight_versions", versions},
            {"logprobs", {{"content", content}}}};
  }

  HttpAnswer abort(const json& body) {
    for (const json& id : body.value("request_ids", json::array()))
      model_.abort(id.get<std::string>());
    return HttpResponse{};
  }

  HttpAnswer control(const std::string& route, const HttpRequest& request, const json& body) {
    if (route == "/pause") {
      if (faults_.now("no-pause")) return refusal(500, "pause failed");
      const auto mode = request.query.find("mode");
      if (mode == request.query.end() || mode->second != "keep")
        return refusal(400, "this fake keeps what runs in every pause");
      model_.pause();
      return answer({{"status", "paused"}});
    }
    if (route == "/resume") {
      if (poisoned_ && model_.busy()) stop(options_, 1, "EngineCore encountered a fatal error");
      model_.resume();
      return answer({{"status", "resumed"}});
    }
    if (route == "/init_weight_transfer_engine") {
      const json info = body.value("init_info", json::object());
      const std::lock_guard lock(mutex_);
      if (options_.value("--weight-transfer-config") == R"({"backend":"nccl"})") {
        if (!worker_) worker_ = std::make_unique<FakeNcclWorker>();
        if (const auto why = worker_->join(info)) return worker_failed(*why);
        return answer({{"message", "Weight transfer initialized"}});
      }
      if (info.contains("block")) {
        const auto name = decode_base64(info.value("block", ""));
        if (!name || name->size() != sizeof block_.handle) return refusal(400, "no block's name");
        std::memcpy(block_.handle.data(), name->data(), name->size());
        return answer({{"message", "Weight transfer initialized"}});
      }
      feed_ = {info.value("host", ""), info.value("port", std::uint16_t{0}),
               info.value("token", "")};
      return answer({{"message", "Weight transfer initialized"}});
    }
    if (route == "/collective_rpc") return reload(body);
    if (route == "/update_weight_version") {
      model_.relabel(body.value("new_version", ""));
      return answer({{"success", true}, {"new_version", body.value("new_version", "")}});
    }
    if (route == "/start_weight_update") return begin();
    if (route == "/update_weights") return receive(body.value("update_info", json::object()));
    return finish(body);
  }

  HttpAnswer begin() {
    const std::lock_guard lock(mutex_);
    if (active_)
      return worker_failed(
          "start_weight_update called while a weight update is already active. "
          "Call finish_weight_update first.");
    if (!model_.paused() && model_.busy())
      stop(options_, 1, "EngineCore encountered a fatal error");
    active_ = poisoned_ = true;  // layers wait for their tensors from here on
    arrived_.clear();
    return answer({{"message", "Weight update started"}});
  }

  // The workers' reload_weights: layers are without weights from its beginning to its end.
  HttpAnswer reload(const json& body) {
    const std::lock_guard lock(mutex_);
    if (body.value("method", "") == "update_config") {
      const json args = body.value("args", json::array());
      loads_files_ = args == json{{{"load_config", {{"load_format", "auto"}}}}};
      return answer({{"results", {nullptr}}});
    }
    if (body.value("method", "") != "reload_weights") return worker_failed("no such method");
    if (options_.value("--load-format") == "dummy" && !loads_files_)
      return worker_failed("Model reloading with `dummy` format");
    if (!model_.paused() && model_.busy())
      stop(options_, 1, "EngineCore encountered a fatal error");
    poisoned_ = true;
    if (faults_.now("stall-update")) return never();
    if (faults_.now("break-update")) return worker_failed("the folder is gone");
    if (faults_.now("die-in-update")) stop(options_, 1, "killed in the middle of an update");
    auto arena =
        read_folder(body.value("kwargs", json::object()).value("weights_path", ""), manifest_);
    if (!arena) return worker_failed(arena.error().message);
    install({arena->bytes().begin(), arena->bytes().end()}, model_.label());
    return answer({{"results", {nullptr}}});
  }
  void install(std::vector<std::byte> weights, const std::string& label) {
    poisoned_ = false;
    if (faults_.now("wrong-update")) spoil(weights);
    if (faults_.now("stale-update"))
      model_.relabel(label);
    else
      model_.update(weights, label);
  }

  HttpAnswer receive(const json& info) {
    const std::lock_guard lock(mutex_);
    if (!active_) return worker_failed("update_weights called without start_weight_update.");
    if (faults_.now("stall-update")) return never();
    std::vector<std::byte> arena(manifest_.bytes_total);
    std::vector<std::span<std::byte>> tensors;
    const json names = info.value("names", json::array());
    const json shapes = info.value("shapes", json::array());
    const json dtypes = info.value("dtype_names", json::array());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto* spec = manifest_.find(names[i].get<std::string>());
      if (!spec || shapes.at(i) != json(spec->shape) || dtypes.at(i) != "float32")
        return broken("the model has no parameter " + names[i].dump() + " of this shape and type");
      tensors.push_back(std::span(arena).subspan(spec->offset_bytes, spec->bytes));
    }
    if (worker_) return broadcast(std::move(arena), std::move(tensors));
    if (options_.value("--weight-transfer-config") == R"({"backend":"tandem_ipc"})")
      return read_block(info.value("offsets", json::array()), std::move(arena), tensors);
    const std::size_t breaks_at =
        faults_.now("break-update") || faults_.now("die-in-update") ? 1 : 0;
    if (const auto why = weights::read_feed(feed_, tensors, breaks_at)) {
      if (faults_.is("die-in-update")) stop(options_, 1, "killed in the middle of an update");
      return broken(*why);
    }
    arrived_ = std::move(arena);
    return answer({{"message", "Weights updated"}});
  }
  HttpAnswer broadcast(std::vector<std::byte> arena, std::vector<std::span<std::byte>> tensors) {
    if (faults_.now("wrong-order")) std::ranges::reverse(tensors);
    const bool breaks = faults_.now("break-update") || faults_.now("die-in-update");
    if (const auto why = worker_->receive(tensors, breaks)) {
      if (breaks && faults_.is("die-in-update"))
        stop(options_, 1, "killed in the middle of an update");
      return broken(*why);
    }
    arrived_ = std::move(arena);
    return answer({{"message", "Weights updated"}});
  }
  // Needs the CUDA module that the rollout has.
  HttpAnswer read_block(const json& offsets, std::vector<std::byte> arena,
                        const std::vector<std::span<std::byte>>& tensors) {
    const auto block = device::SharedBlock::open(block_);
    if (!block) return broken(block.error().message);
    if (faults_.now("break-update")) return broken("a worker has failed");
    const device::Queue copies(device::DeviceKind::kCuda);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      copy(copies.stream(), tensors[i].data(), block->data() + offsets.at(i).get<std::size_t>(),
           tensors[i].size());
    synchronize(copies.stream());
    arrived_ = std::move(arena);
    return answer({{"message", "Weights updated"}});
  }
  HttpAnswer broken(const std::string& why) {
    active_ = false;
    return worker_failed(why);
  }

  HttpAnswer finish(const json& body) {
    const std::lock_guard lock(mutex_);
    if (!active_)
      return worker_failed("finish_weight_update called without a matching start_weight_update.");
    active_ = false;
    if (arrived_.empty()) return answer({{"message", "Weight update finished"}});
    install(arrived_, body.value("weight_version", model_.label()));
    return answer({{"message", "Weight update finished"}});
  }

  const FakeOptions options_;
  Faults faults_;
  LateAnswers late_;
  const bool dev_;
  FakeModel model_;
  const device::Manifest manifest_;
  const std::set<std::string> posts_{"/inference/v1/generate",
                                     "/inference/v1/abort_requests",
                                     "/pause",
                                     "/resume",
                                     "/init_weight_transfer_engine",
                                     "/start_weight_update",
                                     "/update_weights",
                                     "/collective_rpc",
                                     "/update_weight_version",
                                     "/finish_weight_update"};
  std::mutex mutex_;  // guards what follows
  weights::FeedAddress feed_;
  device::BlockName block_{};               // of the backend tandem_ipc
  std::unique_ptr<FakeNcclWorker> worker_;  // of the backend nccl
  bool active_ = false;
  std::vector<std::byte> arrived_;
  bool loads_files_ = false;
  std::atomic<bool> poisoned_{false};  // the weights are not whole
};

}  // namespace
}  // namespace tandem::rollout

int main(int argc, char** argv) {
  using namespace tandem::rollout;
  return serve_fake(argc, argv, {.program = "vllm", .values = kValues, .flags = kFlags},
                    [](const FakeOptions& options, tandem::model::ModelInfo info) -> FakeHandler {
                      auto fake = std::make_shared<FakeVllm>(options, std::move(info));
                      return [fake](const auto& request) { return fake->handle(request); };
                    });
}
