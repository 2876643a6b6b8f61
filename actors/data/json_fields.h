// Finds a few named values in a text of JSON without building the others: records have large fields
// that nobody reads until a reward does. Also the check of text that is no JSON yet.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/json.h"

namespace tandem::data {

// A value within an object, which scan_object() looks for.
struct JsonField {
  using Type = nlohmann::json::value_t;
  std::string_view key = {};    // its path, as find_path() takes it
  Type type = Type::discarded;  // of the value; discarded: the object has none
  std::string text = {};        // the value, where it is a string
};

// Finds `fields` in the JSON object `text` in a small part of the time that parse_json() takes, and
// without the memory of a value; a text above 1 MiB, or one that simdjson refuses, is read by
// parse_json(). Returns the type of the whole text, discarded where parse_json()
// refuses it; the fields of a text that is no object are undefined. Finds what find_path() finds in
// the value of parse_json(), where the last of several members with one name counts; -0 is
// number_unsigned. Any thread.
JsonField::Type scan_object(std::string_view text, std::span<JsonField> fields);

// Whether `text` is the same as valid_utf8() of it (text.h), in a small part of the time.
bool is_utf8(std::string_view text);

}  // namespace tandem::data
