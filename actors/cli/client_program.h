// The part of the program that is only a client: every command that needs HTTP and the file system
// but no actors, engine or learner. actors/main carries out the others.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>

#include "actors/cli/command.h"
#include "runtime/base/result.h"
#include "runtime/http/http_server.h"

namespace tandem::cli {

// The streams to which a command prints; they outlive this object.
struct Console {
  std::ostream& out;           // data
  std::ostream& err;           // chatter
  bool terminal = false;       // `out` is a terminal
  std::function<int()> width;  // columns of the terminal now; called only if there is one

  int columns() const;                     // kUnlimitedWidth off a terminal
  int complain(const Error& error) const;  // prints `error`; returns its exit code
};

// Makes a handler that answers from the runs of this TANDEM_HOME, in this process.
using HomeAnswers = std::function<http::HttpHandler()>;

// Whether the files of runs alone can answer the command: it looks at runs, their events, logs or
// samples, and follows nothing.
bool looks_at_runs(const Command& command);

// Carries out a command of the client. Where no controller runs here, and none is named, a command
// that looks at runs is answered by `home`, if there is one. nullopt: the command is not one of the
// client's (run, up, down, controller, node, generate, eval, tokenize). An Error has not been
// printed yet.
std::optional<Result<void>> run_client(const Invocation& invocation, const Console& console,
                                       const HomeAnswers& home = {});

}  // namespace tandem::cli
