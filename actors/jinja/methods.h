// The methods of strings, lists, dicts and ranges; str.format() is in operators.cc.
#pragma once

#include <optional>
#include <string_view>

#include "actors/jinja/value.h"

namespace tandem::jinja {

// `object.name` where that is a method of the object's type.
std::optional<Value> bound_method(const Value& object, std::string_view name);
// Whether the method would change the object (list.append), which the sandbox forbids.
bool is_hidden_method(const Value& object, std::string_view name);

}  // namespace tandem::jinja
