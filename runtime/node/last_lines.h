// The last lines of a stream of bytes, as much as a person wants to see of them: the end of a
// program's stderr before it failed. Memory is bounded, whatever the program writes.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::node {

inline constexpr std::size_t kLastLines = 8;
inline constexpr std::size_t kLastLineBytesMax = 200;

// `text` as valid UTF-8 on one line of about `bytes_max` bytes, for events and for a terminal.
std::string one_line(std::string_view text, std::size_t bytes_max);

// Keeps the end of a stream that comes in pieces of any size. One thread.
class LastLines {
 public:
  void add(std::string_view bytes);
  // The oldest line first, with the unfinished one and without blank ones; each is valid UTF-8 on
  // one line.
  std::vector<std::string> lines() const;

 private:
  void end_line();

  std::deque<std::string> ended_;  // raw bytes; at most kLastLines
  std::string open_;               // raw bytes; at most one more than kLastLineBytesMax
};

}  // namespace tandem::node
