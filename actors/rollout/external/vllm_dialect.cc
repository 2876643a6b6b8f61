// vLLM's server, from version 0.30 on: token ids in and out by /inference/v1/generate, and the
// four-phase weight transfer of its routes for reinforcement learning (docs of vLLM, "Weight
// transfer"; bodies as recorded from 0.32).
//
// A pause with mode=keep freezes what runs. Prefix caches are not emptied by an update: each
// request carries the version's label as its cache_salt, so that no prefix of another version is
// found. With clear_cache=true frozen requests compute their keys and values anew.
//
// By ipc the module that Tandem gives the server opens a block of the rollout's GPU memory.
//
// By disk a version is loaded by the workers' reload_weights, as a collective call of theirs, after
// one that gives them a loader of files; it gets its label by a call of its own.
//
// Two observations of the real server shaped this file. An update that breaks off leaves weights
// that end the server at its next forward pass; so the server stays paused until a whole push has
// come (weight_push.h). And the server refuses a second start until the first one was finished; so
// a second push begins with kAbandon.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "actors/rollout/external/dialect.h"
#include "actors/rollout/external/server_json.h"
#include "runtime/base/base64.h"
#include "runtime/base/check.h"

namespace tandem::rollout {
namespace vllm {
namespace {

using nlohmann::json;

constexpr std::int64_t kRanksMax = 1024;
// The server puts this before the id of a request.
constexpr std::string_view kIdPrefix = "generate-tokens-";

constexpr const char* kScaleOut = "start it with --enable-scale-out (vLLM 0.30 or later)";
constexpr const char* kDevMode = "set VLLM_SERVER_DEV_MODE=1 in its environment";
constexpr const char* kTransfer =
    "start it with --weight-transfer-config, and VLLM_SERVER_DEV_MODE=1 in its environment";
constexpr auto kRoutes = std::to_array<NeededRoute>({{"/inference/v1/generate", kScaleOut},
                                                     {"/inference/v1/abort_requests", kScaleOut},
                                                     {"/is_paused", kDevMode},
                                                     {"/start_weight_update", kTransfer}});
constexpr auto kRoutesOfNccl =
    std::to_array<NeededRoute>({{"/inference/v1/generate", kScaleOut},
                                {"/inference/v1/abort_requests", kScaleOut},
                                {"/is_paused", kDevMode},
                                {"/get_world_size", kDevMode},
                                {"/start_weight_update", kTransfer}});
constexpr auto kRoutesOfDisk =
    std::to_array<NeededRoute>({{"/inference/v1/generate", kScaleOut},
                                {"/inference/v1/abort_requests", kScaleOut},
                                {"/is_paused", kDevMode},
                                {"/collective_rpc", kDevMode},
                                {"/update_weight_version", kDevMode}});

constexpr auto kPhases = std::to_array<PushPhase>(
    {PushPhase::kPause, PushPhase::kAbandon, PushPhase::kConnect, PushPhase::kStart,
     PushPhase::kSend, PushPhase::kFinish, PushPhase::kResume, PushPhase::kProbe});
constexpr auto kPhasesOfNccl = std::to_array<PushPhase>(
    {PushPhase::kPause, PushPhase::kAbandon, PushPhase::kRanks, PushPhase::kMeet,
     PushPhase::kConnect, PushPhase::kStart, PushPhase::kSend, PushPhase::kFinish,
     PushPhase::kResume, PushPhase::kProbe});
constexpr auto kPhasesOfDisk =
    std::to_array<PushPhase>({PushPhase::kPause, PushPhase::kConnect, PushPhase::kSend,
                              PushPhase::kFinish, PushPhase::kResume, PushPhase::kProbe});

constexpr auto kMetrics = std::to_array<MetricName>({
    {.name = "vllm:generation_tokens_total", .field = &ServerMetrics::generation_tokens},
    {.name = "vllm:prompt_tokens_total", .field = &ServerMetrics::prompt_tokens},
    {.name = "vllm:prefix_cache_queries_total", .field = &ServerMetrics::prefix_cache_queries},
    {.name = "vllm:prefix_cache_hits_total", .field = &ServerMetrics::prefix_cache_hits},
    {.name = "vllm:num_preemptions_total", .field = &ServerMetrics::preemptions},
    {.name = "vllm:num_requests_waiting", .field = &ServerMetrics::waiting},
    {.name = "vllm:kv_cache_usage_perc", .field = &ServerMetrics::kv_cache_usage},
});

bool loads_module(WeightTransfer transfer) {
  return transfer == WeightTransfer::kTcp || transfer == WeightTransfer::kIpc;
}
std::string_view weight_backend(WeightTransfer transfer) {
  if (transfer == WeightTransfer::kTcp) return "tandem_tcp";
  if (transfer == WeightTransfer::kIpc) return "tandem_ipc";
  if (transfer == WeightTransfer::kNccl) return "nccl";
  return {};
}

std::span<const NeededRoute> routes(WeightTransfer transfer) {
  if (transfer == WeightTransfer::kDisk) return kRoutesOfDisk;
  if (transfer == WeightTransfer::kNccl) return kRoutesOfNccl;
  return kRoutes;
}

std::vector<std::string> program(const std::string& python) {
  if (python.empty()) return {"vllm", "serve"};
  return {python, "-m", "vllm.entrypoints.cli.main", "serve"};
}

std::vector<std::string> arguments(const LaunchSpec& spec) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::vector<std::string> arguments{
      spec.model,
      "--host",
      link::kLoopback,
      "--port",
      number(spec.port),
      "--served-model-name",
      spec.name,
      "--load-format",
      spec.load_format,
      "--dtype",
      spec.dtype,
      "--max-model-len",
      number(spec.positions_max),
      "--max-num-seqs",
      number(spec.max_num_seqs),
      "--max-num-batched-tokens",
      number(std::max<std::int64_t>(spec.max_num_batched_tokens, spec.positions_max)),
      "--enable-scale-out",
      "--disable-uvicorn-access-log",
      "--logprobs-mode",
      "processed_logprobs"};
  if (const auto backend = weight_backend(spec.transfer); !backend.empty())
    arguments.insert(arguments.end(),
                     {"--weight-transfer-config", dump_json({{"backend", backend}})});
  const auto add = [&](std::initializer_list<std::string> words) {
    arguments.insert(arguments.end(), words);
  };
  if (spec.on_cpu || spec.enforce_eager) add({"--enforce-eager"});
  if (!spec.on_cpu) add({"--gpu-memory-utilization", number(spec.gpu_memory_utilization)});
  if (spec.tensor_parallel > 1) add({"--tensor-parallel-size", number(spec.tensor_parallel)});
  if (spec.data_parallel > 1) add({"--data-parallel-size", number(spec.data_parallel)});
  if (!spec.quantization.empty()) add({"--quantization", spec.quantization});
  std::ranges::copy(arguments_of(spec.kwargs, FalseIs::kNo), std::back_inserter(arguments));
  return arguments;
}

std::map<std::string, std::string> environment(const LaunchSpec&) {
  return {{"VLLM_SERVER_DEV_MODE", "1"}, {"VLLM_NO_USAGE_STATS", "1"}, {"HF_HUB_OFFLINE", "1"}};
}

ServerCall generate(const GenerateCall& call) {
  json sampling{{"n", call.n},
                {"max_tokens", call.rules->tokens_max},
                {"min_tokens", call.rules->tokens_min},
                {"temperature", call.temperature},
                {"top_p", call.top_p},
                {"top_k", call.top_k},
                {"min_p", call.min_p},
                {"seed", call.seed},
                {"logprobs", 1},
                {"stop_token_ids", call.rules->stop_tokens},
                {"detokenize", !call.rules->stop.empty()}};
  if (!call.rules->stop.empty()) sampling["stop"] = call.rules->stop;
  return {.target = "/inference/v1/generate",
          .body = dump_json({{"request_id", call.id},
                             {"token_ids", call.prompt},
                             {"sampling_params", std::move(sampling)},
                             {"return_token_ids", true},
                             {"cache_salt", call.salt}})};
}

ServedCompletion completion_of(JsonReader& choice) {
  ServedCompletion completion;
  completion.tokens = choice.integers("token_ids");
  completion.end = read_end(choice, "finish_reason");
  choice.object("logprobs", [&](JsonReader& logprobs) {
    logprobs.each("content", [&](JsonReader& token) {
      const std::size_t at = completion.logprobs.size();
      if (at < completion.tokens.size() && token.integer("token_id") != completion.tokens[at])
        token.wrong("token_id", "it differs from token_ids");
      completion.logprobs.push_back(static_cast<float>(token.number("logprob")));
    });
  });
  choice.each("weight_versions",
              [&](JsonReader& span) { completion.versions.push_back(read_span(span)); });
  return completion;
}

Result<ServedAnswer> read_generated(const std::string& body) {
  return read_server_json<ServedAnswer>(body, [](JsonReader& root) {
    ServedAnswer answer{.id = root.text("request_id")};
    if (answer.id.starts_with(kIdPrefix)) answer.id.erase(0, kIdPrefix.size());
    answer.prompt = root.integers("prompt_token_ids");
    root.each("choices", [&](JsonReader& choice) {
      if (choice.integer("index") != std::ssize(answer.completions))
        choice.wrong("index", "the choices are not in order");
      answer.completions.push_back(completion_of(choice));
    });
    return answer;
  });
}

std::vector<ServerCall> abort_request(const std::string& id, std::int32_t) {
  return {{.target = "/inference/v1/abort_requests",
           .body = dump_json({{"request_ids", {std::string(kIdPrefix) + id}}})}};
}

ServerCall score(std::span<const std::int32_t> tokens, const std::string& salt) {
  return {.target = "/inference/v1/generate",
          .body = dump_json({{"token_ids", tokens},
                             {"cache_salt", salt},
                             {"sampling_params",
                              {{"max_tokens", 1}, {"temperature", 0}, {"prompt_logprobs", 0}}}})};
}

Result<std::vector<float>> read_scores(const std::string& body,
                                       std::span<const std::int32_t> tokens) {
  return read_server_json<std::vector<float>>(body, [&](JsonReader& root) {
    std::vector<float> scores;
    std::size_t at = 0;
    root.each("prompt_logprobs", [&](JsonReader& entry) {
      if (at > 0 && at < tokens.size())
        entry.object(std::to_string(tokens[at]), [&](JsonReader& token) {
          scores.push_back(static_cast<float>(token.number("logprob")));
        });
      ++at;
    });
    if (at != tokens.size()) root.wrong("prompt_logprobs", "it has another length than the prompt");
    return scores;
  });
}

// Tensors by their names, and where each begins in a block.
json update_info(const PushFacts& facts) {
  json info = tensors_by_name(facts, "dtype_names");
  if (facts.transfer != WeightTransfer::kIpc) return info;
  info["offsets"] = json::array();
  for (const device::ParameterSpec& spec : facts.manifest->parameters)
    info["offsets"].push_back(spec.offset_bytes);
  return info;
}

// The rollout is rank 0, and the server's ranks follow.
json nccl_info(const PushFacts& facts) {
  return {{"nccl_unique_id_b64", base64(facts.from.unique_id)},
          {"rank_offset", 1},
          {"world_size", 1 + facts.ranks},
          {"packed", facts.from.packed},
          {"packed_buffer_size_bytes", facts.from.chunk_bytes}};
}

Result<int> read_ranks(const std::string& body) {
  return read_server_json<int>(body, [](JsonReader& root) {
    const std::int64_t ranks = root.integer("world_size");
    if (ranks < 1 || ranks > kRanksMax) root.wrong("world_size", "it is no number of ranks");
    return static_cast<int>(ranks);
  });
}

ServerCall push(PushPhase phase, const PushFacts& facts) {
  switch (phase) {
    case PushPhase::kPause:
      return {.target = std::string("/pause?mode=keep&clear_cache=") +
                        (facts.recompute ? "true" : "false")};
    case PushPhase::kAbandon:
      return {.target = "/finish_weight_update"};
    case PushPhase::kRanks:
      return {.method = CallMethod::kGet, .target = "/get_world_size?include_dp=true"};
    case PushPhase::kMeet:
      return {};
    case PushPhase::kConnect:
      if (facts.transfer == WeightTransfer::kDisk)  // it was started with none
        return {.target = "/collective_rpc",
                .body = dump_json({{"method", "update_config"},
                                   {"args", {{{"load_config", {{"load_format", "auto"}}}}}}})};
      if (facts.transfer == WeightTransfer::kNccl)
        return {.target = "/init_weight_transfer_engine",
                .body = dump_json({{"init_info", nccl_info(facts)}})};
      if (facts.transfer == WeightTransfer::kIpc)
        return {.target = "/init_weight_transfer_engine",
                .body = dump_json(
                    {{"init_info",
                      {{"block", base64(facts.from.block)}, {"bytes", facts.from.block_bytes}}}})};
      return {.target = "/init_weight_transfer_engine",
              .body = dump_json({{"init_info",
                                  {{"host", facts.from.feed.host},
                                   {"port", facts.from.feed.port},
                                   {"token", facts.from.feed_token}}}})};
    case PushPhase::kStart:
      return {.target = "/start_weight_update"};
    case PushPhase::kSend:
      if (facts.transfer == WeightTransfer::kDisk)
        return {.target = "/collective_rpc",
                .body = dump_json({{"method", "reload_weights"},
                                   {"kwargs", {{"weights_path", facts.from.folder.string()}}}})};
      return {.target = "/update_weights",
              .body = dump_json({{"update_info", update_info(facts)}})};
    case PushPhase::kFinish:
      if (facts.transfer == WeightTransfer::kDisk)
        return {.target = "/update_weight_version",
                .body = dump_json({{"new_version", facts.label}})};
      return {.target = "/finish_weight_update",
              .body = dump_json({{"weight_version", facts.label}})};
    case PushPhase::kResume:
      return {.target = "/resume"};
    case PushPhase::kProbe:
      return score(facts.probe, facts.label);
  }
  CHECK(false);
  return {};
}

std::span<const PushPhase> phases(WeightTransfer transfer) {
  if (transfer == WeightTransfer::kDisk) return kPhasesOfDisk;
  if (transfer == WeightTransfer::kNccl) return kPhasesOfNccl;
  return kPhases;
}

}  // namespace
}  // namespace vllm

const Dialect& vllm_dialect() {
  using namespace vllm;
  static constexpr Dialect kDialect{.name = EngineName::kVllm,
                                    .program = program,
                                    .arguments = arguments,
                                    .environment = environment,
                                    .routes = routes,
                                    .loads_module = loads_module,
                                    .weight_backend = weight_backend,
                                    .positions_option = "--max-model-len",
                                    .generate = generate,
                                    .read_generated = read_generated,
                                    .abort = abort_request,
                                    .read_scores = read_scores,
                                    .metrics = kMetrics,
                                    .phases = phases,
                                    .push = push,
                                    .read_ranks = read_ranks};
  return kDialect;
}

}  // namespace tandem::rollout
