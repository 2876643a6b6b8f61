// What CLI11 knows of commands and options, as the values of grammar.h.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "actors/main/cli/grammar.h"

namespace tandem::cli {

using Choices = std::map<const CLI::Option*, std::vector<std::string>>;  // of an option's value

OptionDoc option_doc(const CLI::Option& option, const Choices& choices);
CommandDoc command_doc(const CLI::App& command, const Choices& choices,
                       std::vector<std::string> examples);

}  // namespace tandem::cli
