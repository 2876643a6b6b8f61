// docs/cli.md: an introduction, a section per command from the grammar, and the exit codes. A test
// compares the page with this text, so that neither changes alone.
#include <algorithm>

#include "actors/cli/arguments.h"
#include "actors/cli/grammar.h"

namespace tandem::cli {
namespace {

constexpr const char* kIntroduction = R"(# The command line

This page is generated from the definitions that parse the command line; `tandem COMMAND --help` shows
the same.

Data goes to stdout and chatter to stderr. `-o json` is valid JSON whatever the state, with `[]` for an
empty list. JOB is a job's id (`<name>-<n>`), or its name where one job has it; an actor's full name is
`JOB/rollout/0`, and `rollout/0` will do with `-j JOB` or where one job runs. `get actors NAME` and
`get actors/NAME` are the same.
)";

constexpr const char* kExitCodes = R"(
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | a job or actor failed, or a file could not be read |
| 2 | accepted but not placed, or it can never be placed |
| 3 | not found |
| 4 | not authorised |
| 5 | timed out |
| 64 | wrong flags, or wrong content of a job file |
| 69 | no controller could be reached |
| 130 | Ctrl-C; the first cancels a `run` cleanly and still writes result.json, the second kills |

## Environment

| variable | meaning |
|---|---|
| `TANDEM_ADDRESS` | the controller's HTTP address, as with `--address` |
| `TANDEM_HOME` | where runs, journals and `controller.json` lie; `~/.tandem` |
| `TANDEM_ISA` | the instruction set to compute with, `avx2`, `avx512` or `avx512bf16`, to measure or test a lesser one; the best one of the CPU. All give the same bits |
| `TANDEM_LOG_MAX_BYTES` | how long the file of a log may grow, of actors, nodes and controllers in the background; 67108864 bytes. Then it becomes `NAME.log.1`, and a new `NAME.log` begins. 0: no limit |
| `TANDEM_LOG_MAX_FILES` | how many files of a log stay, `NAME.log` included; 3 |
)";

// A `|` would end the cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string option_table(const std::vector<OptionDoc>& options) {
  std::string text;
  for (const OptionDoc& option : options) {
    std::string names;
    for (const std::string& name : option.names)
      names += (names.empty() ? "`" : ", `") + cell(name) + "`";
    // Marks for repetition are part of the usage line and no value.
    if (!option.value.empty() && option.value != "..." && option.value != "[NAME]")
      names += " " + cell(option.value);
    text += "| " + names + " | " + cell(option.description) +
            (option.choices.empty() || option.value == joined(option.choices, "|")
                 ? ""
                 : " (" + joined(option.choices, ", ") + ")") +
            " |\n";
  }
  return text.empty() ? "" : "\n| | |\n|---|---|\n" + text;
}

std::string command_section(const CommandDoc& command) {
  std::vector<OptionDoc> rows = command.arguments;
  rows.insert(rows.end(), command.options.begin(), command.options.end());
  return "\n### tandem " + command.name + "\n\n" + command.description + ".\n\n    " +
         command.usage + "\n" + option_table(rows) + "\nExamples:\n\n    " +
         joined(command.examples, "\n    ") + "\n";
}

}  // namespace

std::string cli_reference(const GrammarDoc& grammar) {
  std::string text = kIntroduction;
  text += "\nEvery command takes:\n" + option_table(grammar.options);
  std::string group;
  for (const CommandDoc& command : grammar.commands) {
    // Commands come in the order of their groups: a heading where a new one begins.
    if (command.group != group) text += "\n## " + command.group + "\n";
    group = command.group;
    text += command_section(command);
  }
  return text + kExitCodes;
}

}  // namespace tandem::cli
