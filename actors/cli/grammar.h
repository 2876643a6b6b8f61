// The definition of the command line as values: names, descriptions, choices and examples of all
// commands and options. docs/cli.md and the completion scripts are made from it, so that they need
// no knowledge of CLI11 and cannot differ from the parser.
#pragma once

#include <string>
#include <vector>

namespace tandem::cli {

// An option, or an argument of a command.
struct OptionDoc {
  std::vector<std::string> names;  // "-o", "--output"; for an argument its one name, "JOB"
  std::string value;               // "N", "table|wide|json|yaml|name"; empty for a flag
  std::string description;
  std::vector<std::string> choices;  // the values that the option takes, where they are few
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
GrammarDoc grammar_doc();

}  // namespace tandem::cli
