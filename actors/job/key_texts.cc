#include "actors/job/key_texts.h"

#include <algorithm>
#include <cmath>

#include "actors/job/print_job.h"
#include "runtime/base/check.h"

namespace tandem::job {
namespace {

// The shortest text of a bound. A whole number is printed without an exponent or ".0".
std::string bound_text(double value) {
  if (value == static_cast<double>(static_cast<std::int64_t>(value)) && std::abs(value) < 0x1p63)
    return std::to_string(static_cast<std::int64_t>(value));
  return print_value(FieldRef(&value));
}

struct TypeText {
  std::string operator()(bool*) const { return "true or false"; }
  std::string operator()(std::int64_t*) const { return "integer"; }
  std::string operator()(double*) const { return "number"; }
  std::string operator()(std::string*) const { return "string"; }
  std::string operator()(std::filesystem::path*) const { return "path"; }
  std::string operator()(std::optional<std::int64_t>*) const { return "integer or null"; }
  std::string operator()(std::optional<double>*) const { return "number or null"; }
  std::string operator()(std::optional<std::string>*) const { return "string or null"; }
  std::string operator()(std::optional<std::filesystem::path>*) const { return "path or null"; }
  std::string operator()(std::vector<std::int64_t>*) const { return "list of integers"; }
  std::string operator()(std::vector<std::string>*) const { return "list of strings"; }
  std::string operator()(std::vector<std::filesystem::path>*) const { return "list of paths"; }
  std::string operator()(std::array<double, 2>*) const { return "list of two numbers"; }
  std::string operator()(std::optional<std::vector<std::string>>*) const {
    return "list of strings or null";
  }
  std::string operator()(std::map<std::string, std::string>*) const { return "map of strings"; }
  std::string operator()(std::map<std::string, double>*) const { return "map of numbers"; }
  std::string operator()(JsonObject*) const { return "map"; }
  std::string operator()(NameOrPath*) const { return "name or path"; }
  std::string operator()(std::optional<std::array<double, 2>>*) const {
    return "list of two numbers or null";
  }
  std::string operator()(PlacedName*) const { return "string"; }
  std::string operator()(std::optional<PlacedName>*) const { return "string or null"; }
  std::string operator()(const WordOrNumber& field) const {
    return std::string(field.word) + " or " + (field.number.index() == 0 ? "integer" : "number");
  }
  std::string operator()(const EnumField& field) const {
    // A choice of one value is shown as that value.
    return (field.names.size() == 1 ? "" : "one of ") + join(field.names) +
           (field.nullable ? " or null" : "");
  }
};

}  // namespace

std::string type_text(const Key& key) {
  JobSpec job = full_default_job();
  std::string text = std::visit(TypeText{}, key.field(job));
  // The field of a required list is empty until it is given.
  if (constexpr std::string_view kOrNull = " or null";
      key.presence == Presence::kRequired && text.ends_with(kOrNull))
    text.resize(text.size() - kOrNull.size());
  return text;
}

std::string range_text(const Key& key) {
  std::string text;
  const Range& range = key.range;
  if (std::isfinite(range.min) && std::isfinite(range.max))
    text = (range.min_open ? "(" : "[") + bound_text(range.min) + ", " + bound_text(range.max) +
           (range.max_open ? ")" : "]");
  else if (std::isfinite(range.min))
    text = (range.min_open ? "> " : "≥ ") + bound_text(range.min);
  else if (std::isfinite(range.max))
    text = (range.max_open ? "< " : "≤ ") + bound_text(range.max);
  if (!key.unit.empty()) text += (text.empty() ? "" : " ") + std::string(key.unit);
  return text;
}

std::string default_text(const Key& key) {
  if (key.presence == Presence::kRequired) return "required";
  JobSpec job = full_default_job();
  return print_value(key.field(job));
}

}  // namespace tandem::job
