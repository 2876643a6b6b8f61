#include "actors/program/json_checks.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "runtime/wire/bytes.h"

namespace tandem::program {
namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

}  // namespace

// An underscore stands where a word begins: at a capital that follows a small letter or a digit,
// and at the last capital of several in a row if a small letter follows it.
std::string snake_case(std::string_view type) {
  std::string text;
  for (std::size_t i = 0; i < type.size(); ++i) {
    const bool begins = i > 0 && is_upper(type[i]) &&
                        (!is_upper(type[i - 1]) || (i + 1 < type.size() && !is_upper(type[i + 1])));
    if (begins && type[i - 1] != '_') text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(type[i])));
  }
  return text;
}

namespace json_detail {
namespace {

Error invalid(const std::string& at, const std::string& why) {
  return {ErrorCode::kInvalid, at + ": " + why};
}

template <class Number>
std::string between(Number min, Number max) {
  return "an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

bool is_one_of(std::string_view name, std::string_view names) {
  const auto commas = std::count(names.begin(), names.end(), ',');
  for (std::ptrdiff_t i = 0; i <= commas; ++i)
    if (wire::field_name(names.data(), static_cast<std::size_t>(i)) == name) return true;
  return false;
}

std::string list_of(const char* names) {
  return *names == '\0' ? "it has no fields" : "its fields are " + std::string(names);
}

}  // namespace

Error mismatch(const std::string& at, const std::string& expected, const json& value) {
  constexpr std::size_t kShown = 40;
  std::string text = dump_json(value);
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  return invalid(at, "expected " + expected + ", got " + text);
}

Error missing(const std::string& at, std::string_view field, const char* names) {
  return invalid(at, "the field " + std::string(field) + " is missing; " + list_of(names));
}

Result<void> only_known(const json& object, const char* names, const std::string& at) {
  for (const auto& [name, value] : object.items())
    if (name.empty() || !is_one_of(name, names))
      return invalid(at, "there is no field " + name + "; " + list_of(names));
  return {};
}

Result<std::int64_t> integer(const json& value, const std::string& at, std::int64_t min,
                             std::int64_t max) {
  const bool fits = value.is_number_unsigned()
                        ? std::in_range<std::int64_t>(value.get<std::uint64_t>())
                        : value.is_number_integer();
  if (!fits || value.get<std::int64_t>() < min || value.get<std::int64_t>() > max)
    return mismatch(at, between(min, max), value);
  return value.get<std::int64_t>();
}

// A number that is not negative is unsigned to the library when it was parsed, and may be signed
// when a program made it.
Result<std::uint64_t> unsigned_integer(const json& value, const std::string& at,
                                       std::uint64_t max) {
  const bool fits =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  if (!fits || value.get<std::uint64_t>() > max)
    return mismatch(at, between(std::uint64_t{0}, max), value);
  return value.get<std::uint64_t>();
}

Result<double> number(const json& value, const std::string& at, double max) {
  if (!value.is_number() || std::abs(value.get<double>()) > max)
    return mismatch(at, "a number", value);
  return value.get<double>();
}

std::string enumerator(const char* names, std::size_t i) {
  std::string_view name = wire::field_name(names, i);
  if (name.size() > 1 && name[0] == 'k' && is_upper(name[1])) name.remove_prefix(1);
  return snake_case(name);
}

Result<std::size_t> enumerator_at(const json& value, const std::string& at, const char* names,
                                  std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = enumerator(names, i);
    if (value == name) return i;
    all += (all.empty() ? "" : ", ") + name;
  }
  return mismatch(at, "one of " + all, value);
}

const json* member(const json& object, std::string_view name) {
  const auto found = object.find(std::string(name));
  return found == object.end() ? nullptr : &*found;
}

}  // namespace json_detail

}  // namespace tandem::program
