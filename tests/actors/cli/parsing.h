// Parses command lines for tests, by a whole table of verbs or by one verb whose fields are then
// looked at.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "actors/cli/command_line.h"

namespace tandem::cli {

inline Result<Invocation> parse(const std::vector<std::string>& words, const VerbTable& verbs) {
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return parse_command_line(arguments, verbs);
}

// The verb T after the line has been parsed, by a table that has no other.
template <class T>
T parsed(const std::vector<std::string>& words) {
  const auto given = std::make_shared<T>();
  const auto invocation = parse(words, [&given] { return std::vector{verb_of(given)}; });
  EXPECT_TRUE(invocation) << render(invocation.error());
  return *given;
}

inline Error refused(const std::vector<std::string>& words, const VerbTable& verbs) {
  const auto invocation = parse(words, verbs);
  EXPECT_FALSE(invocation);
  return invocation ? Error{} : invocation.error();
}

// A usage error, whose message and help contain these texts.
inline void expect_refused(const std::vector<std::string>& words, const VerbTable& verbs,
                           const std::string& message, const std::string& help) {
  const Error error = refused(words, verbs);
  EXPECT_EQ(exit_code(error.code), 64);
  EXPECT_NE(error.message.find(message), std::string::npos) << error.message;
  EXPECT_NE(error.help.find(help), std::string::npos) << error.help;
}

}  // namespace tandem::cli
