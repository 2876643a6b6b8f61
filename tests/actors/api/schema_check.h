// Compares a JSON value with a JSON schema, for the keywords that actors/api/schema.h writes and
// openapi.cc adds. Stricter than the standard in one point: a field that the schema of an object
// does not name is a fault, unless the schema has `additionalProperties`.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tandem::api {

class SchemaCheck {
 public:
  // `schemas`: "components/schemas" of a document, to which references lead.
  explicit SchemaCheck(nlohmann::json schemas) : schemas_(std::move(schemas)) {}

  // The faults of `value`, each as "PLACE: WHY"; none where it fits.
  std::vector<std::string> faults(const nlohmann::json& schema, const nlohmann::json& value) {
    std::vector<std::string> found;
    compare(schema, value, {"$", "$"}, found);
    return found;
  }
  std::vector<std::string> faults_of(const std::string& name, const nlohmann::json& value) {
    return faults({{"$ref", "#/components/schemas/" + name}}, value);
  }
  // The fields of the schema of this name that no value has had so far: "Job.warm_start.step".
  std::vector<std::string> unseen_of(const std::string& name) const {
    std::vector<std::string> unseen;
    gather(schemas_.at(name), name, unseen);
    std::erase_if(unseen, [this](const std::string& field) { return seen_.contains(field); });
    return unseen;
  }
  const nlohmann::json& schemas() const { return schemas_; }

 private:
  using json = nlohmann::json;
  struct Place {
    std::string value;   // "$.gpus[0]"
    std::string schema;  // "Node.gpus[]"
  };

  // Each field of a schema and of those within it, but not of those that it refers to.
  static void gather(const json& schema, const std::string& at, std::vector<std::string>& fields) {
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, field] : properties.items()) {
      fields.push_back(at + "." + name);
      gather(field, at + "." + name, fields);
    }
    for (const json& branch : schema.value("anyOf", json::array())) gather(branch, at, fields);
    if (schema.contains("items")) gather(schema["items"], at + "[]", fields);
    if (schema.contains("additionalProperties"))
      gather(schema["additionalProperties"], at + "{}", fields);
  }

  static bool is_of(const std::string& type, const json& value) {
    if (type == "null") return value.is_null();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "array") return value.is_array();
    return type == "object" && value.is_object();
  }

  void compare(const json& schema, const json& value, const Place& at,
               std::vector<std::string>& found) {
    static const std::set<std::string> known{
        "type",    "properties", "required", "additionalProperties", "items",
        "enum",    "anyOf",      "$ref",     "description",          "minimum",
        "maximum", "maxItems",   "default"};
    for (const auto& [keyword, unused] : schema.items())
      if (!known.contains(keyword)) found.push_back(at.value + ": unknown keyword " + keyword);
    if (schema.contains("$ref")) {
      const auto name =
          schema["$ref"].get<std::string>().substr(std::string("#/components/schemas/").size());
      return compare(schemas_.at(name), value, {at.value, name}, found);
    }
    if (schema.contains("anyOf")) return compare_any(schema["anyOf"], value, at, found);
    if (schema.contains("type")) {
      const json types = schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
      if (std::ranges::none_of(types, [&](const json& t) { return is_of(t, value); }))
        found.push_back(at.value + ": " + value.dump() + " is not of type " + types.dump());
    }
    if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end())
      found.push_back(at.value + ": " + value.dump() + " is none of " + schema["enum"].dump());
    if (value.is_number() &&
        (value < schema.value("minimum", value) || value > schema.value("maximum", value)))
      found.push_back(at.value + ": " + value.dump() + " is out of bounds");
    if (value.is_array() && schema.contains("items"))
      for (std::size_t i = 0; i < value.size(); ++i)
        compare(schema["items"], value[i],
                {at.value + "[" + std::to_string(i) + "]", at.schema + "[]"}, found);
    if (value.is_object() && schema.contains("properties"))
      compare_fields(schema, value, at, found);
  }

  void compare_any(const json& branches, const json& value, const Place& at,
                   std::vector<std::string>& found) {
    std::vector<std::string> all;
    for (const json& branch : branches) {
      std::vector<std::string> faults;
      compare(branch, value, at, faults);
      if (faults.empty()) return;
      all.insert(all.end(), faults.begin(), faults.end());
    }
    found.push_back(at.value + ": fits no branch");
    found.insert(found.end(), all.begin(), all.end());
  }

  void compare_fields(const json& schema, const json& value, const Place& at,
                      std::vector<std::string>& found) {
    for (const auto& name : schema.value("required", json::array()))
      if (!value.contains(name.get<std::string>()))
        found.push_back(at.value + ": lacks " + name.get<std::string>());
    const json& properties = schema["properties"];
    for (const auto& [name, field] : value.items()) {
      const Place place{at.value + "." + name, at.schema + "." + name};
      if (properties.contains(name)) {
        seen_.insert(place.schema);
        compare(properties[name], field, place, found);
      } else if (schema.contains("additionalProperties")) {
        compare(schema["additionalProperties"], field, {place.value, at.schema + "{}"}, found);
      } else {
        found.push_back(place.value + ": no schema names it");
      }
    }
  }

  const json schemas_;
  std::set<std::string> seen_;  // fields of schemas that values had
};

}  // namespace tandem::api
