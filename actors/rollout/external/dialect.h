// How one kind of inference server is spoken to over HTTP: its routes, the bodies of requests, the
// reading of answers, and how it is started. A dialect is a value, and a new kind of server is one
// source with one. Pure: nothing here sends anything.
//
// Token ids go in and come out, never text. A dialect's readers check the form of an answer;
// whether the answer fits what was asked is checked once for all dialects (served_answer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/rollout/completion.h"
#include "actors/rollout/engine_name.h"
#include "actors/rollout/external/served_answer.h"
#include "actors/rollout/external/server_metrics.h"
#include "actors/rollout/external/weight_push.h"
#include "actors/rollout/external/weight_source.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/device/manifest.h"
#include "runtime/http/http.h"

namespace tandem::rollout {

enum class CallMethod : std::uint8_t { kGet, kPost };

struct ServerCall {
  CallMethod method = CallMethod::kPost;
  std::string target;     // path and query
  std::string body = {};  // JSON; empty: none
};

// n completions of one prompt. Views are borrowed for the call of Dialect::generate.
struct GenerateCall {
  std::string id;  // names the request in aborts, and comes back with its answer
  std::span<const std::int32_t> prompt;
  std::int32_t n = 1;      // 1 where the temperature is 0
  std::uint64_t seed = 0;  // completion i draws with seed + i, which has 63 bits at most
  float temperature = 1;   // 0: greedy
  float top_p = 1;
  float min_p = 0;
  std::int32_t top_k = 0;  // 0: off
  const StopRules* rules = nullptr;
  // The server may use the keys and values of a prefix again only for requests of the same salt.
  std::string salt;
};

// Tensors of a manifest, by their places in it.
struct TensorRange {
  std::size_t first = 0, behind = 0;
};

// What the calls of one update say. `manifest` is borrowed.
struct PushFacts {
  std::string label;  // the server's name of the version from kFinish on
  const device::Manifest* manifest = nullptr;
  // True: requests that run compute their keys and values anew by the new version.
  bool recompute = false;
  std::vector<std::int32_t> probe;  // the tokens that the server scores
  WeightTransfer transfer = WeightTransfer::kTcp;
  OfferedWeights from;
  int ranks = 0;        // of the server, after kRanks
  TensorRange tensors;  // that this call of kSend is about
};

// How a server is started.
struct LaunchSpec {
  std::string model;  // the Hugging Face directory
  std::string dtype;  // as model.dtype has it: "float32"
  std::string name;   // by which the server calls the model; nobody else knows it
  std::uint16_t port = 0;
  WeightTransfer transfer = WeightTransfer::kTcp;
  std::int32_t positions_max = 0;  // of prompt and completion together
  std::int64_t max_num_seqs = 0;
  std::int64_t max_num_batched_tokens = 0;
  double gpu_memory_utilization = 0;
  bool on_cpu = false;
  std::int64_t tensor_parallel = 1, data_parallel = 1;
  std::string quantization;  // as the server calls it; empty: as the model's configuration says
  bool enforce_eager = false;
  // "dummy": no weights until the first version comes; "auto": those of `model`.
  std::string load_format = "dummy";
  std::string kwargs = "{}";  // a JSON object of further settings, by the engine's names
};

// A route that a server must have, with what to do where it has not.
struct NeededRoute {
  std::string_view target, remedy;
};

struct Dialect {
  EngineName name = EngineName::kVllm;
  // The program that starts a server, without arguments; by the interpreter of its environment,
  // where the job names that: PYTHON -m MODULE.
  std::vector<std::string> (*program)(const std::string& python) = nullptr;
  std::vector<std::string> (*arguments)(const LaunchSpec& spec) = nullptr;
  std::map<std::string, std::string> (*environment)(const LaunchSpec& spec) = nullptr;
  // The routes besides /health, which answers 200 once all are there.
  std::span<const NeededRoute> (*routes)(WeightTransfer transfer) = nullptr;
  // Whether the server has to load Tandem's module (server_plugin.h).
  bool (*loads_module)(WeightTransfer transfer) = nullptr;
  // What the server calls this way, where it has to be started for it; else empty.
  std::string_view (*weight_backend)(WeightTransfer transfer) = nullptr;

  // Requests that run over an update compute their keys and values anew, whether asked to or not.
  bool recomputes = false;

  // Of a server's positions so many are for itself; they are set by this argument.
  std::int32_t positions_kept_back = 0;
  std::string_view positions_option;

  ServerCall (*generate)(const GenerateCall& call) = nullptr;
  Result<ServedAnswer> (*read_generated)(const std::string& body) = nullptr;
  // Ends the n completions of a call, where it is still at work on them.
  std::vector<ServerCall> (*abort)(const std::string& id, std::int32_t n) = nullptr;
  // The log-probabilities of all tokens of the probe but the first one, in the answer to kProbe.
  Result<std::vector<float>> (*read_scores)(const std::string& body,
                                            std::span<const std::int32_t> tokens) = nullptr;

  std::span<const MetricName> metrics;  // at /metrics

  // The phases of an update in their order, and the call of each.
  std::span<const PushPhase> (*phases)(WeightTransfer transfer) = nullptr;
  // No target: the phase is the rollout's alone.
  ServerCall (*push)(PushPhase phase, const PushFacts& facts) = nullptr;
  Result<int> (*read_ranks)(const std::string& body) = nullptr;  // in the answer to kRanks
  NcclMeeting meeting = NcclMeeting::kUniqueId;
  bool packs = true;  // it may take tensors in chunks by NCCL
  // By NCCL the server holds the tensors of one call beside its weights: kSend is a call for each
  // ServedConfig::call_bytes. Else it is one.
  bool sends_by_parts = false;
};

const Dialect& vllm_dialect();
const Dialect& sglang_dialect();
const Dialect& tensorrt_llm_dialect();
// CHECKs that `name` is a server's.
const Dialect& dialect_of(EngineName name);

// Parts of answers that all servers write alike: why a completion ended, and which version sampled
// which tokens.
class JsonReader;  // server_json.h
ServedEnd read_end(JsonReader& object, const char* field);
LabelSpan read_span(JsonReader& object);

// Settings as arguments of a command: {"swap_space": 4, "enable_x": true} are --swap-space 4
// --enable-x. A list's items are words of their own, an object is JSON, null is left out, and false
// is --no-NAME, or left out where the program has no such arguments.
enum class FalseIs : std::uint8_t { kNo, kLeftOut };
std::vector<std::string> arguments_of(const std::string& kwargs, FalseIs false_is);

// {"names", DTYPES, "shapes"} of facts.tensors, in their order; types as torch spells them.
nlohmann::json tensors_by_name(const PushFacts& facts, const char* dtypes);

// The tensors from the first one on that have no more than so many bytes together; at least one.
TensorRange tensors_within(const device::Manifest& manifest, std::size_t first,
                           std::size_t bytes_max);

// A fault of a server is none of the job: another server may do better. kInvalid becomes kFailed.
Error at_work(Error error);

// The Error of an answer with a status other than 2xx, with what the server said.
Result<void> succeeded(const ServerCall& call, const http::HttpResponse& response);

}  // namespace tandem::rollout
