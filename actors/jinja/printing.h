// Values as text: Python's str() and repr(), and JSON as transformers' filter `tojson` writes it.
// Each value that is written counts as a step of the run. So a value that contains another one many
// times cannot become a text without a bound (JR-1). After a failure the text is incomplete.
#pragma once

#include <optional>
#include <string>

#include "actors/jinja/run.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

std::string text_of(Run& run, const Value& value);  // what {{ value }} prints
std::string repr_of(Run& run, const Value& value);

// The parameters of json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent = {};  // for each level; absent: all in one line
  std::string between_items = ", ", after_key = ": ";
  bool sort_keys = false;
};
// Fails for a value that json.dumps refuses, such as an undefined one.
std::string json_of(Run& run, const Value& value, const JsonStyle& style);

}  // namespace tandem::jinja
