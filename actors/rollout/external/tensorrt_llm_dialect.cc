// TensorRT-LLM, by a server of Tandem's own around its AsyncLLM (tandem_trtllm.py): `trtllm-serve`
// cannot be driven for reinforcement learning. That server has the routes and bodies of vLLM's that
// Tandem uses, so that this dialect is vLLM's but for how it is started.
//
// A pause ends what runs at the engine; the server goes on with each completion from its last token
// once it is resumed, under the next version and with keys and values of that version.
#include <algorithm>

#include "actors/rollout/external/dialect.h"
#include "runtime/base/json.h"

namespace tandem::rollout {
namespace tensorrt_llm {
namespace {

constexpr const char* kOurServer =
    "start it with `python -m tandem_trtllm`, which a run leaves in RUN_DIR/engine";
constexpr auto kRoutes = std::to_array<NeededRoute>({{"/inference/v1/generate", kOurServer},
                                                     {"/inference/v1/abort_requests", kOurServer},
                                                     {"/start_weight_update", kOurServer}});

bool loads_module(WeightTransfer) { return true; }

std::span<const NeededRoute> routes(WeightTransfer) { return kRoutes; }

std::vector<std::string> program(const std::string& python) {
  return {python.empty() ? "python3" : python, "-m", "tandem_trtllm"};
}

// The settings of the LLM, by its names.
nlohmann::json llm_kwargs(const LaunchSpec& spec) {
  nlohmann::json kwargs{
      {"model", spec.model},
      {"dtype", spec.dtype},
      {"load_format", spec.load_format},
      {"max_seq_len", spec.positions_max},
      {"max_batch_size", spec.max_num_seqs},
      {"max_num_tokens", std::max<std::int64_t>(spec.max_num_batched_tokens, spec.positions_max)},
      {"tensor_parallel_size", spec.tensor_parallel},
      {"kv_cache_config", {{"free_gpu_memory_fraction", spec.gpu_memory_utilization}}}};
  // Members of members are kept, too, where the job does not name them. (A patch of null removes.)
  kwargs.merge_patch(parse_json(spec.kwargs));
  if (spec.enforce_eager) kwargs["cuda_graph_config"] = nullptr;
  return kwargs;
}

std::vector<std::string> arguments(const LaunchSpec& spec) {
  return {"--host",
          link::kLoopback,
          "--port",
          std::to_string(spec.port),
          "--served-model-name",
          spec.name,
          "--llm",
          dump_json(llm_kwargs(spec))};
}

std::map<std::string, std::string> environment(const LaunchSpec&) {
  // As verl sets it: weights that are loaded again and again must not be loaded by several threads.
  return {{"TRT_LLM_DISABLE_LOAD_WEIGHTS_IN_PARALLEL", "1"},
          {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "1"},
          // Else it would join the Ray of another rollout on this host, which has other GPUs.
          {"TLLM_RAY_FORCE_LOCAL_CLUSTER", "1"},
          {"HF_HUB_OFFLINE", "1"}};
}

std::string_view weight_backend(WeightTransfer) { return {}; }

}  // namespace
}  // namespace tensorrt_llm

const Dialect& tensorrt_llm_dialect() {
  static const Dialect kDialect = [] {
    Dialect dialect = vllm_dialect();
    dialect.name = EngineName::kTensorrtLlm;
    dialect.program = tensorrt_llm::program;
    dialect.arguments = tensorrt_llm::arguments;
    dialect.environment = tensorrt_llm::environment;
    dialect.routes = tensorrt_llm::routes;
    dialect.loads_module = tensorrt_llm::loads_module;
    dialect.weight_backend = tensorrt_llm::weight_backend;
    dialect.recomputes = true;
    dialect.positions_option = "max_seq_len of --llm";
    return dialect;
  }();
  return kDialect;
}

}  // namespace tandem::rollout
