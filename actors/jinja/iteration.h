// Reads the items of a value one by one, as Python's iter() does.
#pragma once

#include <cstddef>
#include <optional>

#include "actors/jinja/run.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

class Cursor {
 public:
  // A value that cannot be iterated is a failure of the run, with no items.
  Cursor(Run& run, Value source);
  // Counts a step. Nothing at the end, or after a failure.
  std::optional<Value> next();

 private:
  Run& run_;
  Value source_;
  std::size_t at_ = 0;
};

bool iterable(const Value& value);
// All items; nothing after a failure.
std::optional<Values> all_items(Run& run, const Value& value);

}  // namespace tandem::jinja
