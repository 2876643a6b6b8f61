#include "actors/rollout/external/server_about.h"

#include <utility>

#include "runtime/base/json.h"

namespace tandem::rollout {
namespace {

using nlohmann::json;

// The answer of a server that has the route; else null.
Result<json> answer_to(const GetFromServer& get, const std::string& target) {
  const auto answer = get(target);
  if (!answer) return answer.error();
  if (answer->status != 200) return json();
  json body = parse_json(answer->body);
  return body.is_object() ? body : json();
}

std::string text_at(const json& object, std::string_view path) {
  const json* found = find_path(object, path);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

Result<ServerAbout> ask_about(const GetFromServer& get) {
  ServerAbout about;
  const auto models = answer_to(get, "/v1/models");
  if (!models) return models.error();
  const json* const list = find_path(*models, "data");
  if (list && list->is_array() && !list->empty() && list->front().is_object()) {
    const json& model = list->front();
    about.owner = text_at(model, "owned_by");
    about.model = text_at(model, "id");
    const json* const positions = find_path(model, "max_model_len");
    if (positions && positions->is_number_integer())
      about.positions = positions->get<std::int64_t>();
  }
  const auto version = answer_to(get, "/version");
  if (!version) return version.error();
  about.version = text_at(*version, "version");
  const auto info = answer_to(get, "/server_info?config_format=json");
  if (!info) return info.error();
  if (about.version.empty()) about.version = text_at(*info, "version");
  about.weight_backend = text_at(*info, "vllm_config.weight_transfer_config.backend");
  const std::string mode = text_at(*info, "vllm_config.model_config.logprobs_mode");
  if (!mode.empty()) about.processed_logprobs = mode == "processed_logprobs";
  return about;
}

// A route that exists answers a GET with anything but 404; one for POST alone with 405.
Result<std::vector<NeededRoute>> missing_routes(const GetFromServer& get,
                                                std::span<const NeededRoute> needed) {
  std::vector<NeededRoute> missing;
  for (const NeededRoute& route : needed) {
    const auto answer = get(std::string(route.target));
    if (!answer) return answer.error();
    if (answer->status == 404) missing.push_back(route);
  }
  return missing;
}

std::optional<Error> unmet_need(const ServerAbout& about, const ServerNeeds& needs) {
  const auto unmet = [](std::string message, std::string help) {
    return Error{ErrorCode::kInvalid, std::move(message), "", std::move(help)};
  };
  const auto engine = spelt<EngineName>(about.owner);
  if (engine && *engine != needs.engine)
    return unmet("its server is one of " + about.owner,
                 "use `rollout.name: " + about.owner + "`, or name another server");
  const Dialect& dialect = dialect_of(needs.engine);
  const std::int64_t wanted = needs.positions + dialect.positions_kept_back;
  if (about.positions && *about.positions < wanted)
    return unmet("its server has " + std::to_string(*about.positions) +
                     " positions, and the job needs " + std::to_string(wanted),
                 "start it with " + std::string(dialect.positions_option) + " " +
                     std::to_string(wanted) + ", or lower data.max_response_length");
  const std::string_view backend = dialect.weight_backend(needs.transfer);
  if (!backend.empty() && !about.weight_backend.empty() && about.weight_backend != backend)
    return unmet("it was started for weights by the backend " + about.weight_backend + ", not " +
                     std::string(backend),
                 R"(start it with --weight-transfer-config '{"backend":")" + std::string(backend) +
                     R"("}')");
  if (needs.processed_logprobs && !about.processed_logprobs.value_or(false))
    return unmet(
        "its log-probabilities may be from before the temperature and filters, with which "
        "this job samples",
        "start it with --logprobs-mode processed_logprobs and VLLM_SERVER_DEV_MODE=1, or "
        "set `rollout.temperature: 1` and no filters");
  return {};
}

}  // namespace tandem::rollout
