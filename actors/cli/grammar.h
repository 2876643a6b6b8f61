// The definition of the command line as values: names, descriptions, choices and examples of all
// commands and options. docs/cli.md and the completion scripts are made from it, so that they need
// no knowledge of CLI11 and cannot differ from the parser. Pure.
#pragma once

#include <string>
#include <vector>

#include "actors/cli/verb.h"
#include "runtime/base/enum_names.h"

namespace tandem::cli {

// An option, or an argument of a command.
struct OptionDoc {
  std::vector<std::string> names;  // "-o", "--output"; for an argument its one name, "JOB"
  std::string value;               // "N", "table|wide|json|yaml|name"; empty for a flag
  std::string description;
  std::vector<std::string> choices;  // the values that the option takes, where they are few
  std::string offers;                // the NAMES of complete_command.h for it; empty if it has none
};

// A command as its help shows it.
struct CommandDoc {
  std::string name;
  std::string group;  // the heading in help: "Run", "Look"
  std::string description;
  std::string usage;  // "tandem get [OPTIONS] KIND [NAME]"
  std::vector<OptionDoc> arguments;
  std::vector<OptionDoc> options;
  std::vector<std::string> examples;
};

// All commands in the order of the help.
struct GrammarDoc {
  std::vector<CommandDoc> commands;
  std::vector<OptionDoc> options;  // those that every command takes
};

// Builds the parser and reads it back. Hidden options of commands are left out.
GrammarDoc grammar_doc(const VerbTable& verbs);

// The text of docs/cli.md.
std::string cli_reference(const GrammarDoc& grammar);

enum class Shell { kBash, kZsh, kFish };
constexpr auto enum_names(Shell) {
  using enum Shell;
  return enum_name_rows<Shell>({{kBash, "bash"}, {kZsh, "zsh"}, {kFish, "fish"}});
}
// A script for `shell` that completes commands, options and their values: source <(tandem
// completion bash).
std::string completion_script(Shell shell, const GrammarDoc& grammar);

}  // namespace tandem::cli
