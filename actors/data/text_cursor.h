// The characters of a text one by one, or as runs, from a source of bytes: what the readers of JSON
// arrays and of tables walk through. Knows the line that it is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/byte_source.h"
#include "runtime/base/result.h"

namespace tandem::data {

// How many characters of `text` come before the first of `Stops`; all where it has none of them.
template <char... Stops>
std::size_t run_before(std::string_view text) {
  std::size_t run = 0;
  while (run < text.size() && ((text[run] != Stops) && ...)) ++run;
  return run;
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
