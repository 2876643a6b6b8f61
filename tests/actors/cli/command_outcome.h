// Carries out a command line of the client as `tandem` does, and collects what it says.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "actors/cli/client_program.h"
#include "actors/cli/command_line.h"

namespace tandem::cli {

struct Outcome {
  ErrorCode code = ErrorCode::kFailed;
  bool ok = false;
  std::string out, err, message, help;
  std::string shown;  // the whole error as the terminal shows it
};

// The whole way of a command line: parse, carry out, collect.
inline Outcome run(std::vector<const char*> arguments, bool terminal = false) {
  std::ostringstream out, err;
  const auto invocation = parse_command_line(arguments);
  EXPECT_TRUE(invocation) << render(invocation.error());
  const auto result = run_client(
      *invocation, {.out = out, .err = err, .terminal = terminal, .width = [] { return 80; }});
  EXPECT_TRUE(result);
  Outcome outcome{.ok = result->has_value(), .out = out.str(), .err = err.str()};
  if (!*result) {
    outcome.code = result->error().code;
    outcome.message = result->error().message;
    outcome.help = result->error().help;
    outcome.shown = render(result->error());
  }
  return outcome;
}

}  // namespace tandem::cli
