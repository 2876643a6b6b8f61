// The operators of a template, such as + and `in`, with the meaning that they have in Python. A
// value that an operator cannot take fails the run of the template.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "actors/jinja/run.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

enum class Arithmetic : std::uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class Comparison : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// Integers have 64 bits: a result beyond them is a failure, where Python's would go on growing.
Value arithmetic(Run& run, Arithmetic operation, const Value& left, const Value& right);
Value negated(Run& run, const Value& value);
Value unary_plus(Run& run, const Value& value);
bool compares(Run& run, Comparison operation, const Value& left, const Value& right);
bool contains(Run& run, const Value& container, const Value& item);

// `object.name` as Jinja looks it up: an attribute or method, then an item of that name. Undefined
// where there is neither, or where the sandbox hides it. `name` lives at least as long as the run.
Value get_attribute(Run& run, const Value& object, std::string_view name);
// `object[key]`: an item, then an attribute of that name.
Value get_item(Run& run, const Value& object, const Value& key);
// `object[start:stop:step]`; each part may be None.
struct Slice {
  Value start, stop, step;
};
Value get_slice(Run& run, const Value& object, const Slice& slice);

}  // namespace tandem::jinja
