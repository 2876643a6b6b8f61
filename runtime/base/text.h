// Text that others wrote: made valid UTF-8 where it enters, cut between characters, and shown so
// that it cannot steer a terminal. Pure functions, linear in the length of the text. Layout
// (widths, tables) is the task of actors/cli.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

struct CodePoint {
  char32_t value = 0;     // U+FFFD where the text starts with no valid sequence
  std::size_t bytes = 0;  // length of the sequence; 1 where it is invalid, so that a reader goes on
  bool valid = false;
};
// The first code point of `text`, which must not be empty (CHECKed). Overlong forms, surrogates and
// values above U+10FFFF are invalid.
CodePoint first_code_point(std::string_view text);

// `text` with each byte that belongs to no valid sequence replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// `text` made valid. If that takes more than `bytes_max` bytes, the whole characters that fit into
// `bytes_max`, followed by "…", whose three bytes come on top.
std::string cut_utf8(std::string_view text, std::size_t bytes_max);

enum class Lines {
  kOne,   // newlines and tabs are shown as \n and \t: for a cell of a table, or a line of a log
  kMany,  // both are kept
};
// `text` as valid UTF-8 in which each character that steers a terminal or turns the direction of
// writing (C0, DEL, C1, U+2028, U+2029, the marks of bidirectional text) is shown as its escape:
// \r, \u001b, \u202e. These are also the escapes of JSON: inside the strings of a JSON text the
// values stay the same.
std::string visible(std::string_view text, Lines lines);

// `text` as one segment or one query value of a URI: all bytes but letters, digits and "-._~" as
// "%2F".
std::string percent_encoded(std::string_view text);

}  // namespace tandem
