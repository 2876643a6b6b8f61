// The operations on UTF-8 that a byte-level tokenizer needs. Well-formed sequences are those of
// Unicode 15, table 3-7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::model {

// Offset of the first byte that is part of no well-formed character, or nothing if there is none.
std::optional<std::size_t> first_malformed_utf8(std::string_view text);

// `text` with U+FFFD in place of each maximal beginning of a character that is not finished, and of
// each byte that can be part of no character (Unicode 15, table 3-8; the same as Rust's
// from_utf8_lossy).
std::string replace_malformed_utf8(std::string_view text);

// How many bytes at the end of `text` begin a character that more bytes could complete: 0 … 3.
std::size_t unfinished_utf8(std::string_view text);

// Returns the code point at offset `at` and moves `at` past it. `text` is well-formed.
std::uint32_t next_code_point(std::string_view text, std::size_t& at);

void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace tandem::model
