// Reads commands and options back from CLI11, as the values of grammar.h. Only command_line.cc,
// which owns the parser, includes this file.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "actors/cli/grammar.h"

namespace tandem::cli {

// The values of an option that are few enough to be listed; CLI11 does not give them back.
using Choices = std::map<const CLI::Option*, std::vector<std::string>>;

OptionDoc option_doc(const CLI::Option& option, const Choices& choices);
CommandDoc command_doc(const CLI::App& command, const Choices& choices,
                       std::vector<std::string> examples);

// CLI11's help with its long lines broken at 100 columns, below the descriptions of options.
std::string wrapped_help(const std::string& help);

}  // namespace tandem::cli
