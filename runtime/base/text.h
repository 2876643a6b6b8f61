// Text that others wrote: made valid UTF-8 where it enters, cut between characters, and shown on a
// terminal so that it cannot steer it. Pure. Layout (widths, tables) is actors/main/cli's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

struct CodePoint {
  char32_t value = 0;     // U+FFFD where the text starts with no valid sequence
  std::size_t bytes = 0;  // that it takes; 1 where it is invalid
  bool valid = false;
};
// Of `text`, which is not empty. Overlong forms, surrogates and values above U+10FFFF are invalid.
CodePoint first_code_point(std::string_view text);

// `text` with each byte that belongs to no valid sequence replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// `text` made valid: all of it, or what of it fits into `bytes_max`, which never ends within a
// character, and "…" after that.
std::string cut_utf8(std::string_view text, std::size_t bytes_max);

enum class Lines {
  kOne,   // newlines and tabs are shown as \n and \t: for a cell, or a line of a log
  kMany,  // both are kept
};
// Valid UTF-8 in which each character that steers a terminal or turns the direction of writing
// (C0, DEL, C1, U+2028, U+2029, the marks of bidirectional text) is shown as its escape: \r,
// \u001b, \u202e. Within JSON's strings these are JSON's own escapes: the value stays the same.
std::string visible(std::string_view text, Lines lines);

}  // namespace tandem
