// The last lines of a stream of bytes, as much as a person wants to see of them: what a program
// wrote to stderr before it failed. Bounded, whatever is written.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::actors {

inline constexpr std::size_t kLastLines = 8;
inline constexpr std::size_t kLastLineBytesMax = 200;

// Valid UTF-8 on one line, of about `bytes_max` bytes: for events, and for a terminal.
std::string one_line(std::string_view text, std::size_t bytes_max);

class LastLines {
 public:
  void add(std::string_view bytes);
  // Oldest first, the unfinished one included, without blank ones: valid UTF-8 of one line each.
  std::vector<std::string> lines() const;

 private:
  void end_line();

  std::deque<std::string> ended_;  // raw; at most kLastLines
  std::string open_;               // raw; at most a byte more than kLastLineBytesMax
};

}  // namespace tandem::actors
