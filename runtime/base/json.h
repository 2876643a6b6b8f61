// JSON as it enters and leaves. The one place that compiles nlohmann::json: a source that parses or
// prints by the library's own templates compiles the whole parser or printer again, which takes
// about five seconds each.
//
// Foreign JSON is bounded before the parser sees it: the library copies, compares and prints a
// value by recursion, so that a few hundred kilobytes of brackets would end the process.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

extern template class nlohmann::basic_json<>;

namespace tandem {

inline constexpr std::size_t kNestingMax = 64;  // lists and objects within one another; YAML's too
inline constexpr std::size_t kJsonBytesMax = std::size_t{256} << 20;  // a tokenizer's file

// The value that `text` is; `is_discarded()` where it is not JSON, or over a limit.
nlohmann::json parse_json(std::string_view text);

// The limit that `text` is over, for a message: "nested more than 64 deep". Nothing: over none.
std::optional<std::string> json_over_limit(std::string_view text);

// Never throws: bytes that are not UTF-8 leave as U+FFFD. `indent` -1: on one line.
std::string dump_json(const nlohmann::json& value, int indent = -1);

}  // namespace tandem
