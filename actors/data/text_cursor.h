// The characters of a text one by one, or as runs, from a source of bytes: what the readers of JSON
// arrays and of tables walk through. Knows the line that it is in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/byte_source.h"
#include "runtime/base/result.h"

namespace tandem::data {

// Tests for eight characters at a time, as one number: the highest bit of a character that meets
// the test is set in the answer. Only the first set bit counts, which is the lowest one: those of
// characters behind it may be set for nothing.
class EightCharacters {
 public:
  static_assert(std::endian::native == std::endian::little);
  explicit EightCharacters(const char* text) { std::memcpy(&eight_, text, sizeof eight_); }

  std::uint64_t equal(char c) const {
    const std::uint64_t different = eight_ ^ (kOnes * static_cast<unsigned char>(c));
    return (different - kOnes) & ~different & kHighest;
  }
  // `bound` is at most 128.
  std::uint64_t below(unsigned bound) const {
    return (eight_ - kOnes * bound) & ~eight_ & kHighest;
  }

 private:
  static constexpr std::uint64_t kOnes = 0x0101010101010101, kHighest = 0x80 * kOnes;
  std::uint64_t eight_;
};

// How many characters of `text` come before the first one that stops: all where none does.
// `stops_here` tells it of one character, `stops_among` of eight.
template <class StopsHere, class StopsAmong>
std::size_t run_until(std::string_view text, StopsHere stops_here, StopsAmong stops_among) {
  std::size_t run = 0;
  for (; run + 8 <= text.size(); run += 8)
    if (const std::uint64_t found = stops_among(EightCharacters(text.data() + run)))
      return run + static_cast<std::size_t>(std::countr_zero(found)) / 8;
  while (run < text.size() && !stops_here(text[run])) ++run;
  return run;
}

// The same up to the first of `stops`, which are characters.
template <class... Stops>
std::size_t run_before(std::string_view text, Stops... stops) {
  return run_until(
      text, [=](char c) { return ((c == stops) || ...); },
      [=](const EightCharacters& eight) { return (eight.equal(stops) | ...); });
}

class TextCursor {
 public:
  explicit TextCursor(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}

  // The bytes that are held, after more were read if there were none; empty at the end. A byte
  // order mark at the start is left out.
  Result<std::string_view> held();
  // Goes past the first `bytes` of held().
  void pass(std::size_t bytes);

  std::uint64_t line() const { return line_; }  // from 1, of the next character
  std::uint64_t bytes_read() const { return bytes_->bytes_read(); }

 private:
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> piece_;  // its bytes begin_ … end_ have not been passed yet
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t line_ = 1;
  bool begun_ = false, ended_ = false;
};

}  // namespace tandem::data
