#include "actors/rollout/external/dialect.h"

#include <algorithm>

#include "actors/rollout/external/server_json.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace tandem::rollout {
namespace {

constexpr std::size_t kMessageBytesMax = 600;

// vLLM and OpenAI: {"error": {"message"}}; SGLang and TensorRT-LLM: {"message"}; FastAPI:
// {"detail"}.
std::string message_of(const std::string& body) {
  const nlohmann::json answer = parse_json(body);
  for (const char* path : {"error.message", "message", "detail"})
    if (const nlohmann::json* text = find_path(answer, path); text && text->is_string())
      return text->get<std::string>();
  return body;
}

// As torch spells it.
const char* dtype_name(device::DType dtype) {
  switch (dtype) {
    case device::DType::kF32:
      return "float32";
    case device::DType::kBF16:
      return "bfloat16";
    default:
      break;
  }
  CHECK(false);  // parameters are published in no other type
  return "";
}

}  // namespace

const Dialect& dialect_of(EngineName name) {
  switch (name) {
    case EngineName::kVllm:
      return vllm_dialect();
    case EngineName::kSglang:
      return sglang_dialect();
    case EngineName::kTensorrtLlm:
      return tensorrt_llm_dialect();
    case EngineName::kNative:
      break;
  }
  CHECK(false);
  return vllm_dialect();
}

nlohmann::json tensors_by_name(const PushFacts& facts, const char* dtypes) {
  nlohmann::json names = nlohmann::json::array(), types = names, shapes = names;
  for (std::size_t i = facts.tensors.first; i < facts.tensors.behind; ++i) {
    const device::ParameterSpec& spec = facts.manifest->parameters[i];
    names.push_back(spec.name);
    types.push_back(dtype_name(spec.dtype));
    shapes.push_back(spec.shape);
  }
  return {{"names", names}, {dtypes, types}, {"shapes", shapes}};
}

TensorRange tensors_within(const device::Manifest& manifest, std::size_t first,
                           std::size_t bytes_max) {
  const auto& all = manifest.parameters;
  CHECK(first < all.size());
  std::size_t behind = first + 1, bytes = all[first].bytes;
  while (behind < all.size() && all[behind].bytes <= bytes_max - std::min(bytes, bytes_max))
    bytes += all[behind++].bytes;
  return {first, behind};
}

std::vector<std::string> arguments_of(const std::string& kwargs, FalseIs false_is) {
  const nlohmann::json settings = parse_json(kwargs);
  CHECK(settings.is_object());
  std::vector<std::string> arguments;
  for (const auto& [name, value] : settings.items()) {
    if (value.is_null() || (value == false && false_is == FalseIs::kLeftOut)) continue;
    std::string dashed = name;
    std::ranges::replace(dashed, '_', '-');
    arguments.push_back((value == false ? "--no-" : "--") + dashed);
    if (value.is_boolean()) continue;
    const auto word = [](const nlohmann::json& one) {
      return one.is_string() ? one.get<std::string>() : dump_json(one);
    };
    if (value.is_array())
      for (const auto& item : value) arguments.push_back(word(item));
    else
      arguments.push_back(word(value));
  }
  return arguments;
}

ServedEnd read_end(JsonReader& object, const char* field) {
  const std::string reason = object.text(field);
  if (reason == "stop") return ServedEnd::kStop;
  if (reason == "length") return ServedEnd::kLength;
  if (reason != "abort") object.wrong(field, "`" + reason + "` is none that Tandem knows");
  return ServedEnd::kAborted;
}

LabelSpan read_span(JsonReader& object) {
  return {
      .label = object.text("version"), .begin = object.count("start"), .end = object.count("end")};
}

Error at_work(Error error) {
  if (error.code == ErrorCode::kInvalid) error.code = ErrorCode::kFailed;
  return error;
}

Result<void> succeeded(const ServerCall& call, const http::HttpResponse& response) {
  if (response.status / 100 == 2) return {};
  const std::string route = call.target.substr(0, call.target.find('?'));
  const std::string said = message_of(response.body).substr(0, kMessageBytesMax);
  return Error{ErrorCode::kFailed, "the server answered " + std::to_string(response.status) +
                                       " to " + route + ": " + visible(said, Lines::kOne)};
}

}  // namespace tandem::rollout
