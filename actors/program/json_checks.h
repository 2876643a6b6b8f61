// The checks of the JSON that json_value.h reads a wired value from, and the words of their errors.
// Pure; from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::program {

// "GetTotal" -> "get_total", "HTTPGet" -> "http_get".
std::string snake_case(std::string_view type);

namespace json_detail {

using nlohmann::json;

// "add.amount: expected a number, got \"x\"".
Error mismatch(const std::string& at, const std::string& expected, const json& value);
Error missing(const std::string& at, std::string_view field, const char* names);
// An error that names the first member of `object` that is not among `names`, the text of
// TANDEM_WIRE.
Result<void> only_known(const json& object, const char* names, const std::string& at);
Result<std::int64_t> integer(const json& value, const std::string& at, std::int64_t min,
                             std::int64_t max);
Result<std::uint64_t> unsigned_integer(const json& value, const std::string& at, std::uint64_t max);
Result<double> number(const json& value, const std::string& at, double max);
const json* member(const json& object, std::string_view name);  // null: there is none
// The i-th of `names`, the text of TANDEM_WIRE_ENUM, as JSON spells it.
std::string enumerator(const char* names, std::size_t i);
// Which of `count` enumerators a string names. An error lists all of them.
Result<std::size_t> enumerator_at(const json& value, const std::string& at, const char* names,
                                  std::size_t count);

}  // namespace json_detail

}  // namespace tandem::program
