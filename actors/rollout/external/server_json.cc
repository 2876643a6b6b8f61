#include "actors/rollout/external/server_json.h"

#include <cmath>
#include <limits>

#include "runtime/base/text.h"

namespace tandem::rollout {
namespace {

constexpr std::size_t kBytesShown = 200;

const nlohmann::json kNothing;

}  // namespace

Error garbage(const std::string& body, const std::string& fault) {
  return {ErrorCode::kInvalid, "the server's answer cannot be read: " + fault + ": `" +
                                   visible(body.substr(0, kBytesShown), Lines::kOne) + "`"};
}

const nlohmann::json& JsonReader::at(const std::string& field) const {
  if (!object_.is_object()) return kNothing;
  const auto found = object_.find(field);
  return found == object_.end() ? kNothing : *found;
}

void JsonReader::wrong(const std::string& field, const std::string& why) {
  if (!fault_) fault_ = "`" + path_ + field + "`: " + why;
}

std::string JsonReader::text(const char* field) {
  const auto& value = at(field);
  if (value.is_string()) return value.get<std::string>();
  wrong(field, "it is not a text");
  return {};
}

std::int64_t JsonReader::integer(const char* field) {
  const auto& value = at(field);
  const bool too_large = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() >
                             static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_integer() && !too_large) return value.get<std::int64_t>();
  wrong(field, "it is not an integer");
  return {};
}

std::int64_t JsonReader::integer_or(const char* field, std::int64_t otherwise) {
  return at(field).is_null() ? otherwise : integer(field);
}

bool JsonReader::flag(const char* field) { return at(field) == true; }

std::int32_t JsonReader::count(const char* field) {
  const std::int64_t value = integer(field);
  if (value >= 0 && value <= std::numeric_limits<std::int32_t>::max())
    return static_cast<std::int32_t>(value);
  wrong(field, "it is no number of things");
  return {};
}

double JsonReader::number(const char* field) {
  const auto& value = at(field);
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  wrong(field, "it is not a number");
  return {};
}

std::vector<std::int32_t> JsonReader::integers(const char* field) {
  const auto& value = at(field);
  std::vector<std::int32_t> integers;
  if (!value.is_array()) wrong(field, "it is not a list");
  for (const auto& entry : value) {
    const std::int64_t integer = entry.is_number_integer() ? entry.get<std::int64_t>() : -1;
    if (integer < 0 || integer > std::numeric_limits<std::int32_t>::max()) {
      wrong(field, "an entry is no token's number");
      return {};
    }
    integers.push_back(static_cast<std::int32_t>(integer));
  }
  return integers;
}

void JsonReader::object(const std::string& field, const std::function<void(JsonReader&)>& read) {
  const auto& value = at(field);
  if (!value.is_object()) return wrong(field, "it is not an object");
  JsonReader inner(value, path_ + field + ".", fault_);
  read(inner);
}

void JsonReader::each(const char* field, const std::function<void(JsonReader&)>& read) {
  const auto& value = at(field);
  if (!value.is_array()) return wrong(field, "it is not a list");
  for (std::size_t i = 0; i < value.size(); ++i) {
    JsonReader entry(value[i], path_ + field + "[" + std::to_string(i) + "].", fault_);
    read(entry);
  }
}

void JsonReader::each_pair(const char* field,
                           const std::function<void(double, std::int64_t)>& read) {
  const auto& value = at(field);
  if (!value.is_array()) return wrong(field, "it is not a list");
  for (const auto& entry : value) {
    const bool fits = entry.is_array() && entry.size() >= 2 && entry[1].is_number_integer() &&
                      (entry[0].is_null() || entry[0].is_number());
    if (!fits) return wrong(field, "an entry does not begin with a number and an integer");
    read(entry[0].is_null() ? std::numeric_limits<double>::quiet_NaN() : entry[0].get<double>(),
         entry[1].get<std::int64_t>());
  }
}

}  // namespace tandem::rollout
