// The options of a verb as CLI11 parses them. Only command_line.cc, options.cc and grammar_docs.h
// include this header, since it needs CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::cli {

// CLI11 splits "[a,b]" into a and b where an argument repeats. The parser puts this character
// behind such a word, which keeps it whole; Option::as_written() takes it off again.
inline constexpr char kTakenAsWritten = '\x01';

// An option with the properties that CLI11 does not give back.
struct OptionSlot {
  CLI::Option* option = nullptr;     // owned by CLI11
  std::vector<std::string> choices;  // the values that it takes, where they are few
  std::string offers;  // see Option::offers(); empty: usual_names() in grammar_docs.cc
};

struct VerbParser {
  CLI::App* app = nullptr;         // owned by the app of the whole command line
  std::deque<OptionSlot> options;  // addresses stay valid
  std::vector<std::function<Result<void>()>> checks;
};

}  // namespace tandem::cli
