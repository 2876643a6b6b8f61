// SGLang's server, from version 0.5.20 on: token ids in and out by /generate, and weights by
// /update_weights_from_disk or /update_weights_from_distributed (docs of SGLang, "SGLang for RL
// Systems"; bodies as recorded from 0.5.23).
//
// A group is one call with its prompt once for each completion: `n` of a call is discouraged, and
// its completions could not be aborted. Each has a name, "ID.0.", "ID.1.", …: the server aborts all
// requests whose names begin with the one it is told, so that none may begin as another does. A
// `sampling_seed` counts only with --enable-deterministic-inference.
//
// A pause with mode=in_place freezes what runs, mode=retract lets it compute its keys and values
// anew. An update with flush_cache fails while anything holds the cache, and may then have new
// weights and old keys: the answer 400 counts as failed, whatever it has changed. Prefix caches
// need no emptying, as each request carries the version's label as its extra_key.
//
// By NCCL the server's ranks join a process group of PyTorch at a store of the rollout's, and take
// one broadcast for each tensor between /begin_weight_update and /end_weight_update; outside of
// these an update is refused. The last of its calls names the version.
//
// Log-probabilities are of softmax(logits / temperature), before top_k, top_p and min_p, as the
// native engine's are; those of a prompt are at temperature 1.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "actors/rollout/external/dialect.h"
#include "actors/rollout/external/server_json.h"
#include "runtime/base/check.h"

namespace tandem::rollout {
namespace sglang {
namespace {

using nlohmann::json;

constexpr const char* kOldVersion = "SGLang 0.5.20 or later is needed";
constexpr auto kRoutes = std::to_array<NeededRoute>({{"/generate", kOldVersion},
                                                     {"/abort_request", kOldVersion},
                                                     {"/pause_generation", kOldVersion},
                                                     {"/continue_generation", kOldVersion},
                                                     {"/update_weights_from_disk", kOldVersion}});

constexpr auto kRoutesOfNccl =
    std::to_array<NeededRoute>({{"/generate", kOldVersion},
                                {"/abort_request", kOldVersion},
                                {"/pause_generation", kOldVersion},
                                {"/continue_generation", kOldVersion},
                                {"/server_info", kOldVersion},
                                {"/init_weights_update_group", kOldVersion},
                                {"/begin_weight_update", kOldVersion},
                                {"/update_weights_from_distributed", kOldVersion}});

constexpr auto kPhases = std::to_array<PushPhase>(
    {PushPhase::kPause, PushPhase::kSend, PushPhase::kResume, PushPhase::kProbe});
constexpr auto kPhasesOfNccl = std::to_array<PushPhase>(
    {PushPhase::kPause, PushPhase::kAbandon, PushPhase::kRanks, PushPhase::kMeet,
     PushPhase::kConnect, PushPhase::kStart, PushPhase::kSend, PushPhase::kFinish,
     PushPhase::kResume, PushPhase::kProbe});
constexpr std::int64_t kRanksMax = 1024;

// The tokens of requests that run are counted by realtime_tokens alone.
constexpr std::string_view kRealtime = "sglang:realtime_tokens_total";
constexpr auto kMetrics = std::to_array<MetricName>({
    {kRealtime, "mode=\"decode\"", &ServerMetrics::generation_tokens},
    {kRealtime, "mode=\"prefill_compute\"", &ServerMetrics::prompt_tokens},
    {kRealtime, "mode=\"prefill_cache\"", &ServerMetrics::prompt_tokens},
    {kRealtime, "mode=\"prefill_compute\"", &ServerMetrics::prefix_cache_queries},
    {kRealtime, "mode=\"prefill_cache\"", &ServerMetrics::prefix_cache_queries},
    {kRealtime, "mode=\"prefill_cache\"", &ServerMetrics::prefix_cache_hits},
    {"sglang:num_retracted_requests_total", "", &ServerMetrics::preemptions},
    {"sglang:num_queue_reqs", "", &ServerMetrics::waiting},
    {"sglang:token_usage", "", &ServerMetrics::kv_cache_usage},
});

// Of its positions the server keeps some back: prompts may have 6 fewer, and completions are cut 2
// before the end.
constexpr std::int32_t kPositionsKeptBack = 6;

bool loads_module(WeightTransfer) { return false; }
std::string_view weight_backend(WeightTransfer) { return {}; }

std::span<const NeededRoute> routes(WeightTransfer transfer) {
  if (transfer == WeightTransfer::kNccl) return kRoutesOfNccl;
  return kRoutes;
}

std::vector<std::string> program(const std::string& python) {
  return {python.empty() ? "python3" : python, "-m", "sglang.launch_server"};
}

std::vector<std::string> arguments(const LaunchSpec& spec) {
  const auto number = [](auto value) { return std::to_string(value); };
  const std::int32_t positions = spec.positions_max + kPositionsKeptBack;
  std::vector<std::string> arguments{
      "--model-path",
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
      "--context-length",
      number(positions),
      "--max-running-requests",
      number(spec.max_num_seqs),
      "--max-prefill-tokens",
      number(std::max<std::int64_t>(spec.max_num_batched_tokens, positions)),
      "--sampling-defaults",
      "openai",
      "--enable-metrics",
      "--skip-server-warmup",
      "--log-level-http",
      "warning"};
  const auto add = [&](std::initializer_list<std::string> words) {
    arguments.insert(arguments.end(), words);
  };
  if (spec.on_cpu)
    // Else the cache of keys and values would take a share of the host's memory.
    add({"--device", "cpu", "--max-total-tokens", number(spec.max_num_seqs * positions)});
  else
    add({"--mem-fraction-static", number(spec.gpu_memory_utilization)});
  if (spec.enforce_eager) add({"--disable-cuda-graph"});
  if (spec.tensor_parallel > 1) add({"--tp-size", number(spec.tensor_parallel)});
  if (spec.data_parallel > 1) add({"--dp-size", number(spec.data_parallel)});
  if (!spec.quantization.empty()) add({"--quantization", spec.quantization});
  std::ranges::copy(arguments_of(spec.kwargs, FalseIs::kLeftOut), std::back_inserter(arguments));
  return arguments;
}

std::map<std::string, std::string> environment(const LaunchSpec& spec) {
  std::map<std::string, std::string> variables{
      {"HF_HUB_OFFLINE", "1"},
      // Also where the model has no more positions than the job needs.
      {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "1"},
      // Ranks of one server whose GPUs are shared differ in what is free on them.
      {"SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "false"},
      {"SGLANG_RETURN_ORIGINAL_LOGPROB", "false"}};
  if (spec.on_cpu) variables["SGLANG_USE_CPU_ENGINE"] = "1";
  return variables;
}

std::string name_of(const std::string& id, std::int64_t completion) {
  return id + "." + std::to_string(completion) + ".";
}

ServerCall generate(const GenerateCall& call) {
  json prompts = json::array(), sampling = json::array(), names = json::array();
  for (std::int32_t i = 0; i < call.n; ++i) {
    prompts.push_back(call.prompt);
    names.push_back(name_of(call.id, i));
    json one{{"max_new_tokens", call.rules->tokens_max},
             {"min_new_tokens", call.rules->tokens_min},
             {"temperature", call.temperature},
             {"top_p", call.top_p},
             {"top_k", call.top_k > 0 ? call.top_k : -1},
             {"min_p", call.min_p},
             {"sampling_seed", call.seed + static_cast<std::uint64_t>(i)},
             {"stop_token_ids", call.rules->stop_tokens},
             {"skip_special_tokens", false},
             {"no_stop_trim", true}};
    // Texts would end a completion also before its fewest tokens; then it is cut here alone.
    if (!call.rules->stop.empty() && call.rules->tokens_min == 0) one["stop"] = call.rules->stop;
    sampling.push_back(std::move(one));
  }
  return {.target = "/generate",
          .body = dump_json({{"input_ids", std::move(prompts)},
                             {"sampling_params", std::move(sampling)},
                             {"rid", std::move(names)},
                             {"return_logprob", true},
                             {"return_prompt_token_ids", true},
                             {"extra_key", call.salt}})};
}

ServedCompletion completion_of(JsonReader& entry, std::string& name) {
  ServedCompletion completion;
  completion.tokens = entry.integers("output_ids");
  entry.object("meta_info", [&](JsonReader& about) {
    name = about.text("id");
    about.object("finish_reason",
                 [&](JsonReader& reason) { completion.end = read_end(reason, "type"); });
    // One that was aborted before its first token has neither.
    if (completion.tokens.empty()) return;
    about.each_pair("output_token_logprobs", [&](double logprob, std::int64_t token) {
      const std::size_t at = completion.logprobs.size();
      if (at < completion.tokens.size() && token != completion.tokens[at])
        about.wrong("output_token_logprobs", "its tokens differ from output_ids");
      completion.logprobs.push_back(static_cast<float>(logprob));
    });
    about.each("weight_versions",
               [&](JsonReader& span) { completion.versions.push_back(read_span(span)); });
  });
  return completion;
}

Result<ServedAnswer> read_generated(const std::string& body) {
  const auto read = [](JsonReader& root) {
    ServedAnswer answer;
    root.each("answers", [&](JsonReader& entry) {
      std::string name;
      answer.completions.push_back(completion_of(entry, name));
      const std::int64_t index = std::ssize(answer.completions) - 1;
      std::vector<std::int32_t> prompt = entry.integers("prompt_token_ids");
      if (index == 0) {
        answer.id = name.substr(0, name.size() - std::min(name.size(), name_of("", 0).size()));
        answer.prompt = std::move(prompt);
      } else if (prompt != answer.prompt) {
        entry.wrong("prompt_token_ids", "it differs from the first one's");
      }
      if (name != name_of(answer.id, index))
        entry.wrong("meta_info.id", "`" + name + "` is not completion " + std::to_string(index) +
                                        " of `" + answer.id + "`");
    });
    return answer;
  };
  return read_server_json<ServedAnswer>(body, read, "answers");
}

std::vector<ServerCall> abort_request(const std::string& id, std::int32_t n) {
  std::vector<ServerCall> calls;
  for (std::int32_t i = 0; i < n; ++i)
    calls.push_back({.target = "/abort_request", .body = dump_json({{"rid", name_of(id, i)}})});
  return calls;
}

ServerCall score(std::span<const std::int32_t> tokens, const std::string& salt) {
  return {.target = "/generate",
          .body = dump_json({{"input_ids", tokens},
                             {"sampling_params", {{"max_new_tokens", 1}, {"temperature", 0}}},
                             {"return_logprob", true},
                             {"logprob_start_len", 0},
                             {"extra_key", salt}})};
}

Result<std::vector<float>> read_scores(const std::string& body,
                                       std::span<const std::int32_t> tokens) {
  return read_server_json<std::vector<float>>(body, [&](JsonReader& root) {
    std::vector<float> scores;
    root.object("meta_info", [&](JsonReader& about) {
      std::size_t at = 0;
      about.each_pair("input_token_logprobs", [&](double logprob, std::int64_t token) {
        // SGLang writes 0 for the vocabulary's last token; its log-probability is right.
        if (at < tokens.size() && token != tokens[at] && token != 0)
          about.wrong("input_token_logprobs", "its tokens are not the prompt's");
        if (at++ > 0) scores.push_back(static_cast<float>(logprob));
      });
      if (at != tokens.size())
        about.wrong("input_token_logprobs", "it has another length than the prompt");
    });
    return scores;
  });
}

// Makes the server's ranks join the group, in which the rollout is rank 0 and theirs begin at 1.
ServerCall join_group(const PushFacts& facts) {
  return {.target = "/init_weights_update_group",
          .body = dump_json({{"master_address", facts.from.store.host},
                             {"master_port", facts.from.store.port},
                             {"rank_offset", 1},
                             {"world_size", 1 + facts.ranks},
                             {"group_name", facts.from.group},
                             {"backend", "nccl"}})};
}

ServerCall take_broadcasts(const PushFacts& facts) {
  const bool last = facts.tensors.behind == facts.manifest->parameters.size();
  json update = tensors_by_name(facts, "dtypes");
  update.update({{"group_name", facts.from.group},
                 {"abort_all_requests", false},
                 {"flush_cache", last && facts.recompute}});
  if (last) update["weight_version"] = facts.label;
  return {.target = "/update_weights_from_distributed", .body = dump_json(update)};
}

Result<int> read_ranks(const std::string& body) {
  return read_server_json<int>(body, [](JsonReader& root) {
    const std::int64_t ranks = root.integer("tp_size");
    // Ranks of the group are those of tensor parallelism alone.
    if (root.integer_or("dp_size", 1) > 1 && !root.flag("enable_dp_attention"))
      root.wrong("dp_size", "`nccl` reaches one copy of the model in a server; use `disk`");
    if (root.integer_or("pp_size", 1) > 1)
      root.wrong("pp_size", "`nccl` does not reach stages of a pipeline; use `disk`");
    if (ranks < 1 || ranks > kRanksMax) root.wrong("tp_size", "it is no number of ranks");
    return static_cast<int>(ranks);
  });
}

ServerCall push(PushPhase phase, const PushFacts& facts) {
  switch (phase) {
    case PushPhase::kPause:
      return {.target = "/pause_generation",
              .body = dump_json({{"mode", facts.recompute ? "retract" : "in_place"}})};
    case PushPhase::kAbandon:
    case PushPhase::kFinish:
      return {.target = "/end_weight_update", .body = "{}"};
    case PushPhase::kRanks:
      return {.method = CallMethod::kGet, .target = "/server_info"};
    case PushPhase::kMeet:
      return {};
    case PushPhase::kConnect:
      return join_group(facts);
    case PushPhase::kStart:
      return {.target = "/begin_weight_update", .body = dump_json({{"selector", "all"}})};
    case PushPhase::kSend:
      if (facts.transfer == WeightTransfer::kNccl) return take_broadcasts(facts);
      return {.target = "/update_weights_from_disk",
              .body = dump_json({{"model_path", facts.from.folder.string()},
                                 {"load_format", "auto"},  // it was started with none
                                 {"weight_version", facts.label},
                                 {"abort_all_requests", false},
                                 {"flush_cache", facts.recompute}})};
    case PushPhase::kResume:
      return {.target = "/continue_generation", .body = "{}"};
    case PushPhase::kProbe:
      return score(facts.probe, facts.label);
  }
  CHECK(false);
  return {};
}

std::span<const PushPhase> phases(WeightTransfer transfer) {
  if (transfer == WeightTransfer::kNccl) return kPhasesOfNccl;
  return kPhases;
}

}  // namespace
}  // namespace sglang

const Dialect& sglang_dialect() {
  using namespace sglang;
  static constexpr Dialect kDialect{.name = EngineName::kSglang,
                                    .program = program,
                                    .arguments = arguments,
                                    .environment = environment,
                                    .routes = routes,
                                    .loads_module = loads_module,
                                    .weight_backend = weight_backend,
                                    .positions_kept_back = kPositionsKeptBack,
                                    .positions_option = "--context-length",
                                    .generate = generate,
                                    .read_generated = read_generated,
                                    .abort = abort_request,
                                    .read_scores = read_scores,
                                    .metrics = kMetrics,
                                    .phases = phases,
                                    .push = push,
                                    .read_ranks = read_ranks,
                                    .meeting = NcclMeeting::kTorchStore,
                                    .packs = false,
                                    .sends_by_parts = true};
  return kDialect;
}

}  // namespace tandem::rollout
