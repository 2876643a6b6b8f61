#include "actors/api/schema.h"

#include <utility>

namespace tandem::api::schema {
namespace {

Schema of_type(const char* type) {
  Schema schema = Schema::object();
  schema["type"] = type;
  return schema;
}

}  // namespace

Schema any() { return Schema::object(); }
Schema text() { return of_type("string"); }
Schema integer() { return of_type("integer"); }
Schema number() { return of_type("number"); }
Schema boolean() { return of_type("boolean"); }

Schema one_of(std::span<const std::string> words) {
  Schema schema = text();
  schema["enum"] = std::vector<std::string>(words.begin(), words.end());
  return schema;
}

Schema list_of(const Schema& item) {
  Schema schema = of_type("array");
  schema["items"] = item;
  return schema;
}

Schema map_of(const Schema& value) { return open_object({}, value); }

Schema nullable(Schema schema) {
  if (!schema.contains("type")) return any_of({std::move(schema), of_type("null")});
  schema["type"] = Schema::array({schema["type"], "null"});
  if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  return schema;
}

Schema any_of(std::vector<Schema> branches) {
  Schema schema = Schema::object();
  schema["anyOf"] = std::move(branches);
  return schema;
}

Schema ref(std::string_view name) {
  Schema schema = Schema::object();
  schema["$ref"] = "#/components/schemas/" + std::string(name);
  return schema;
}

Schema object(const std::vector<Field>& fields) {
  Schema schema = of_type("object");
  schema["properties"] = Schema::object();
  for (const Field& field : fields) {
    schema["properties"][field.name] = described(field.schema, field.about);
    if (field.presence == Presence::kAlways) schema["required"].push_back(field.name);
  }
  return schema;
}

Schema open_object(const std::vector<Field>& fields, Schema others) {
  Schema schema = object(fields);
  schema["additionalProperties"] = std::move(others);
  return schema;
}

Schema described(Schema schema, const char* about) {
  if (*about) schema["description"] = about;
  return schema;
}

}  // namespace tandem::api::schema
