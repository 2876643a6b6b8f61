// Carries out a command line as `tandem` does, and collects its output and its error.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "actors/cli/command_line.h"
#include "actors/cli/verbs.h"

namespace tandem::cli {

struct Outcome {
  ErrorCode code = ErrorCode::kFailed;
  bool ok = false;
  std::string out, err, message, help;
  std::string shown;  // the whole error as the terminal shows it
};

// The surroundings of a command line in a test.
struct Surroundings {
  bool terminal = false;
  OfflineAnswers offline = {};
  VerbTable verbs = client_verbs;
};

// The whole way of a command line: parse, carry out, collect.
inline Outcome run(const std::vector<const char*>& arguments, const Surroundings& around = {}) {
  const auto invocation = parse_command_line(arguments, around.verbs);
  if (!invocation) {
    ADD_FAILURE() << render(invocation.error());
    return {};
  }
  std::ostringstream out, err;
  const Console console{
      .out = out, .err = err, .terminal = around.terminal, .width = [] { return 80; }};
  const auto result = invocation->verb.run({.console = console,
                                            .address = invocation->address,
                                            .offline = around.offline,
                                            .verbs = around.verbs});
  Outcome outcome{.ok = result.has_value(), .out = out.str(), .err = err.str()};
  if (!result) {
    outcome.code = result.error().code;
    outcome.message = result.error().message;
    outcome.help = result.error().help;
    outcome.shown = render(result.error());
  } else {
    EXPECT_EQ(*result, 0);
  }
  return outcome;
}

}  // namespace tandem::cli
