#include "actors/cli/api_object.h"

namespace tandem::cli {

using nlohmann::json;

std::string field(const json& item, const char* name) {
  const json value = item.is_object() ? item.value(name, json()) : json();
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : dump_json(value);
}

bool has_ended(const json& job) {
  const std::string state = field(job, "state");
  return state == "Succeeded" || state == "Failed" || state == "Cancelled";
}

bool actor_has_ended(const json& actor) {
  const std::string state = field(actor, "state");
  return state == "Stopped" || state == "Failed";
}

}  // namespace tandem::cli
