// The part of the program that is only a client: every command that needs HTTP and the file system
// but no runtime. actors/main carries out the others.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>

#include "actors/main/cli/command.h"
#include "runtime/base/result.h"

namespace tandem::cli {

struct Console {
  std::ostream& out;           // data
  std::ostream& err;           // chatter
  bool terminal = false;       // `out` is one
  std::function<int()> width;  // its columns now; asked only if it is a terminal

  int columns() const;                     // kUnlimitedWidth off a terminal
  int complain(const Error& error) const;  // prints it; returns the exit code that it means
};

// nullopt: not a client's command (run, up, down, controller, node, generate, eval,
// tokenize).
std::optional<Result<void>> run_client(const Invocation& invocation, const Console& console);

}  // namespace tandem::cli
