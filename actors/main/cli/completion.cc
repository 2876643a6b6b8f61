// Completion scripts from the grammar. Names of jobs and actors are asked of the controller at the
// moment of completion; without one there are none.
#include <algorithm>

#include "actors/main/cli/arguments.h"
#include "actors/main/cli/command_line.h"
#include "actors/main/cli/grammar.h"

namespace tandem::cli {
namespace {

std::vector<std::string> option_names(const std::vector<OptionDoc>& options) {
  std::vector<std::string> names;
  for (const OptionDoc& option : options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// The choices of an argument, or the command that lists them.
std::string argument_words(const OptionDoc& argument) {
  if (!argument.choices.empty()) return joined(argument.choices, " ");
  const std::string& name = argument.names.front();
  if (name == "JOB") return "$(tandem get jobs -o name 2>/dev/null | sed 's,^jobs/,,')";
  if (name == "ACTOR") return "$(tandem get actors -o name 2>/dev/null | sed 's,^actors/,,')";
  if (name == "ACTOR|JOB")
    return "$( { tandem get jobs -o name; tandem get actors -o name; } 2>/dev/null | sed "
           "'s,^[a-z]*/,,')";
  if (name == "KEY")
    return "$(tandem explain 2>/dev/null | sed -n 's,^  \\([a-z][^ ]*\\).*,\\1,p')";
  return "";
}

bool takes_file(const CommandDoc& command) {
  return std::ranges::any_of(command.arguments, [](const OptionDoc& argument) {
    return argument.names.front() == "JOB.yaml" || argument.names.front() == "MODEL_DIR";
  });
}

std::string all_commands(const GrammarDoc& grammar) {
  std::vector<std::string> names;
  for (const CommandDoc& command : grammar.commands) names.push_back(command.name);
  return joined(names, " ");
}

// What follows an option that takes one of few values: `-o` -> "table wide json".
std::string bash_value_cases(const CommandDoc& command) {
  std::string text;
  for (const OptionDoc& option : command.options) {
    std::string words = joined(option.choices, " ");
    if (option.value == "JOB")
      words = argument_words({.names = {"JOB"}, .value = "", .description = "", .choices = {}});
    if (!words.empty())
      text += "      " + command.name + ":" + joined(option.names, "|" + command.name + ":") +
              ") words=\"" + words + "\" ;;\n";
  }
  return text;
}

std::string bash_script(const GrammarDoc& grammar) {
  const std::string globals = joined(option_names(grammar.options), " ");
  std::string values, commands;
  for (const CommandDoc& command : grammar.commands) {
    values += bash_value_cases(command);
    std::string words;
    for (const OptionDoc& argument : command.arguments) {
      const std::string some = argument_words(argument);
      if (!some.empty()) words += (words.empty() ? "" : " ") + some;
    }
    commands += "      " + command.name + ") options=\"" +
                joined(option_names(command.options), " ") + "\"; words=\"" + words +
                "\"; files=" + (takes_file(command) ? "1" : "") + " ;;\n";
  }
  return R"(# bash completion for tandem: source <(tandem completion bash)
_tandem() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" i
  local words="" options="" files=""
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in
      --address) ((i++)) ;;
      -*) ;;
      *) command="${COMP_WORDS[i]}"; break ;;
    esac
  done
  if [[ -z "$command" ]]; then
    COMPREPLY=($(compgen -W ")" +
         all_commands(grammar) + " " + globals + R"(" -- "$word"))
    return
  fi
  case "$command:$before" in
)" + values +
         R"(  esac
  if [[ -z "$words" ]]; then
    case "$command" in
)" + commands +
         R"(    esac
    [[ "$word" == -* ]] && words="$options )" +
         globals + R"("
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ -n "$files" && "$word" != -* ]] && COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _tandem tandem
)";
}

// For the two shells that show a description beside each word.
std::string single_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string zsh_script(const GrammarDoc& grammar) {
  std::string commands, cases;
  for (const CommandDoc& command : grammar.commands) {
    commands += "    " + single_quoted(command.name + ":" + command.description) + "\n";
    std::string words;
    for (const OptionDoc& argument : command.arguments)
      if (const std::string some = argument_words(argument); !some.empty()) words += " " + some;
    cases += "    " + command.name + ")\n      compadd -- " +
             joined(option_names(command.options), " ") + words + "\n" +
             (takes_file(command) ? "      _files\n" : "") + "      ;;\n";
  }
  return "#compdef tandem\n# zsh completion for tandem: source <(tandem completion zsh)\n"
         "_tandem() {\n  local -a commands\n  commands=(\n" +
         commands +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  case \"${words[2]}\" in\n" +
         cases + "  esac\n}\ncompdef _tandem tandem\n";
}

std::string fish_option(const std::string& condition, const OptionDoc& option) {
  std::string text = "complete -c tandem -n " + single_quoted(condition);
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) text += " -x";
  if (!option.choices.empty()) text += " -a " + single_quoted(joined(option.choices, " "));
  return text + " -d " + single_quoted(option.description) + "\n";
}

std::string fish_script(const GrammarDoc& grammar) {
  std::string text =
      "# fish completion for tandem: tandem completion fish | source\n"
      "complete -c tandem -f\n";
  for (const CommandDoc& command : grammar.commands)
    text += "complete -c tandem -n __fish_use_subcommand -a " + command.name + " -d " +
            single_quoted(command.description) + "\n";
  for (const CommandDoc& command : grammar.commands) {
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    for (const OptionDoc& option : command.options) text += fish_option(condition, option);
    for (const OptionDoc& argument : command.arguments)
      if (std::string words = argument_words(argument); !words.empty()) {
        if (words.starts_with("$(")) words = words.substr(1);
        text += "complete -c tandem -n " + single_quoted(condition) + " -a " +
                single_quoted(words) + "\n";
      }
    if (takes_file(command)) text += "complete -c tandem -n " + single_quoted(condition) + " -F\n";
  }
  return text;
}

}  // namespace

std::string completion_script(Shell shell) {
  const GrammarDoc grammar = grammar_doc();
  switch (shell) {
    case Shell::kBash:
      return bash_script(grammar);
    case Shell::kZsh:
      return zsh_script(grammar);
    case Shell::kFish:
      return fish_script(grammar);
  }
  CHECK(false);
}

}  // namespace tandem::cli
