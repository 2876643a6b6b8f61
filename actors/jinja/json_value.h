// JSON as values of a template. Objects keep the order of their members, which a template's output
// may show (tools as JSON); hence this reads text, and not nlohmann::json, which sorts them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "actors/jinja/value.h"
#include "runtime/base/result.h"

namespace tandem::jinja {

// The value of a JSON text. Errors (kInvalid): text that is not JSON or over the limits of
// runtime/base/json.h, and an integer that 64 bits do not hold.
Result<Value> parse_json_value(std::string_view text);

// The members of a JSON object that are called `names`, as a dict. The other members are not read:
// an integer that 64 bits do not hold is no error there.
Result<Value> parse_json_members(std::string_view text, std::span<const std::string_view> names);

// A Value of one that was read already, with members in nlohmann::json's order: by name. An
// unsigned integer beyond 63 bits becomes a float.
Value value_of(const nlohmann::json& json);

// A list and a dict that are made outside of a run, for inputs. The caller's nesting is bounded.
Value make_list(Values items);
Value make_dict(Dict dict);

}  // namespace tandem::jinja
