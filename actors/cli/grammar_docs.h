// Reads commands and options back from CLI11, as the values of grammar.h. Only command_line.cc,
// which owns the parser, includes this file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "actors/cli/grammar.h"
#include "actors/cli/verb_parser.h"

namespace tandem::cli {

// Without choices and offers, which CLI11 does not know; command_doc() adds them to options of
// verbs.
OptionDoc option_doc(const CLI::Option& option);
CommandDoc command_doc(const VerbHelp& verb, const VerbParser& parser);

// CLI11's help with its long lines broken at 100 columns, below the descriptions of options.
std::string wrapped_help(const std::string& help);

}  // namespace tandem::cli
