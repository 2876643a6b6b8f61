// The streams to which a command prints: data to `out`, chatter to `err`, so that a pipe gets data
// alone.
#pragma once

#include <functional>
#include <iosfwd>

#include "runtime/base/result.h"

namespace tandem::cli {

// The streams outlive this object.
struct Console {
  std::ostream& out;           // data
  std::ostream& err;           // chatter
  bool terminal = false;       // `out` is a terminal
  std::function<int()> width;  // columns of the terminal now; called only if there is one

  int columns() const;                     // kUnlimitedWidth off a terminal
  int complain(const Error& error) const;  // prints `error`; returns its exit code
};

}  // namespace tandem::cli
