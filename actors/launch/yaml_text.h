// Texts of YAML that are written by hand, with gaps that are filled. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tandem::launch {

using GapValues = std::map<std::string, std::string, std::less<>>;  // by the names of the gaps

// The text with the value of `name` for each gap `@name@`. Each line of a value begins in the
// column of its gap. Lines without text are left out, and with them those whose only gap has an
// empty value; the last line has no end. A gap without a value is CHECKed, and the values have no
// gaps: an `@` of theirs stands for itself.
std::string filled(std::string_view text, const GapValues& values);

// A scalar within double quotes, which reads back as `text` made valid UTF-8, in YAML 1.1 and 1.2.
std::string quoted(const std::string& text);
// The same as a block that people can read, where `text` is lines of printable ASCII; else quoted.
// Its lines are indented by two columns.
std::string block(const std::string& text);

}  // namespace tandem::launch
