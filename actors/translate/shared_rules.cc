#include "actors/translate/shared_rules.h"

#include <nlohmann/json.hpp>
#include <string>

#include "actors/translate/draft.h"

namespace tandem::translate {

using nlohmann::json;

Converted negative_is_zero(const json& value) {
  const auto number = whole_of(value);
  return {number && *number < 0 ? json(0) : value};
}

Converted unless_negative(const json& value) {
  const auto number = whole_of(value);
  if (number && *number < 0) return {};
  return {value};
}

Converted dtype(const json& value) {
  const std::string name = text_of(value);
  if (name == "bfloat16" || name == "bf16") return {"bfloat16"};
  if (name == "float32" || name == "fp32") return {"float32"};
  return {{}, "`" + name + "` is not in this version: the model computes in float32 or bfloat16"};
}

}  // namespace tandem::translate
