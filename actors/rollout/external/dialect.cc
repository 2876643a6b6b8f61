#include "actors/rollout/external/dialect.h"

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

}  // namespace

const Dialect& dialect_of(EngineName name) {
  switch (name) {
    case EngineName::kVllm:
      return vllm_dialect();
    case EngineName::kSglang:
      return sglang_dialect();
    case EngineName::kNative:
      break;
  }
  CHECK(false);
  return vllm_dialect();
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

Result<void> succeeded(const ServerCall& call, const http::HttpResponse& response) {
  if (response.status / 100 == 2) return {};
  const std::string route = call.target.substr(0, call.target.find('?'));
  const std::string said = message_of(response.body).substr(0, kMessageBytesMax);
  return Error{ErrorCode::kFailed, "the server answered " + std::to_string(response.status) +
                                       " to " + route + ": " + visible(said, Lines::kOne)};
}

}  // namespace tandem::rollout
