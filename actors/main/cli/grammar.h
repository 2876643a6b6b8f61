// What the command line's definition says of itself, for docs/cli.md and the completion scripts.
#pragma once

#include <string>
#include <vector>

namespace tandem::cli {

struct OptionDoc {
  std::vector<std::string> names;  // "-o", "--output"; for an argument its one name, "JOB"
  std::string value;               // "N", "table|wide|json|yaml|name"; empty for a flag
  std::string description;
  std::vector<std::string> choices;  // of the value, where they are few
};

struct CommandDoc {
  std::string name;
  std::string group;  // the heading in help: "Run", "Look"
  std::string description;
  std::string usage;  // "tandem get [OPTIONS] KIND [NAME]"
  std::vector<OptionDoc> arguments;
  std::vector<OptionDoc> options;
  std::vector<std::string> examples;
};

struct GrammarDoc {
  std::vector<CommandDoc> commands;
  std::vector<OptionDoc> options;  // that every command takes
};

GrammarDoc grammar_doc();

}  // namespace tandem::cli
