// Words for writing JSON schemas (2020-12, as OpenAPI 3.1 has them): each function makes a small
// piece of one. Only the keywords that stand here are used, and the test of the API's answers
// (tests/actors/api/schema_check.h) knows exactly these. The schemas themselves are in schemas.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::api::schema {

using Schema = nlohmann::json;

Schema any();  // every value fits
Schema text();
Schema integer();
Schema number();
Schema boolean();
Schema one_of(std::span<const std::string> words);  // a text that is one of these
Schema list_of(const Schema& item);
Schema map_of(const Schema& value);           // an object with any names
Schema nullable(Schema schema);               // the schema's values, and null
Schema any_of(std::vector<Schema> branches);  // a value that fits one of them
Schema ref(std::string_view name);            // the schema of this name in schemas.h

enum class Presence : std::uint8_t { kAlways, kSometimes };

struct Field {
  const char* name;
  Schema schema;
  const char* about = "";  // a text for people; may be empty
  Presence presence = Presence::kAlways;
};
// An object with these fields. Clients must expect further ones, since a later version may have
// them; the test of the API's answers does not.
Schema object(const std::vector<Field>& fields);
// An object that also has fields of other names, whose values fit `others`.
Schema open_object(const std::vector<Field>& fields, Schema others);

Schema described(Schema schema, const char* about);

}  // namespace tandem::api::schema
