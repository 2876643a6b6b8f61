// Formatted text: Python's `text % values` and `text.format(…)`, without `*` as a width.
#pragma once

#include <string_view>

#include "actors/jinja/run.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

// `values` is a tuple of several values, a dict for %(name)s, or one value.
Value percent_format(Run& run, const Value& format, const Value& values);
// How a field looks up `{0.name}` and `{0[key]}`.
struct FieldLookup {
  Value (*attribute)(Run& run, const Value& object, std::string_view name);
  Value (*item)(Run& run, const Value& object, const Value& key);
};
Value brace_format(Run& run, const Value& format, const Arguments& arguments,
                   const FieldLookup& lookup);

}  // namespace tandem::jinja
