// UTF-8, as far as a byte-level tokenizer needs it (Unicode 15, table 3-7: well-formed sequences).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::actors {

// Offset of the first byte that is part of no well-formed character.
std::optional<std::size_t> first_malformed_utf8(std::string_view text);

// `text` with U+FFFD for each maximal part of a character that is not finished, and for each byte
// that can be part of none (Unicode 15, table 3-8; what Rust's from_utf8_lossy gives).
std::string replace_malformed_utf8(std::string_view text);

// How many bytes at the end of `text` begin a character that more bytes could complete: 0 … 3.
std::size_t unfinished_utf8(std::string_view text);

// The code point at `at`, which moves past it. `text` is well-formed.
std::uint32_t next_code_point(std::string_view text, std::size_t& at);

void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace tandem::actors
