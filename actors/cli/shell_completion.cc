// Completion scripts for three shells, generated from the grammar (grammar.h): a new verb or option
// is completed without a change here. Names of jobs, runs, actors and nodes, and keys of the
// job file, change while a script is loaded; the script asks `tandem __complete` for them at the
// moment of completion.
//
// bash gets the words of the line and the index of the current one, finds the command among them,
// then offers the values of the word before, or the options and arguments of the command. zsh and
// fish do the same with their own functions, and show descriptions.
#include <algorithm>

#include "actors/cli/arguments.h"
#include "actors/cli/complete_command.h"
#include "actors/cli/grammar.h"

namespace tandem::cli {
namespace {

std::vector<std::string> option_names(const std::vector<OptionDoc>& options) {
  std::vector<std::string> names;
  for (const OptionDoc& option : options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// The command that a script runs for names which change.
std::string asking(const std::string& names) {
  return "$(tandem " + std::string(kCompleteCommand) + " " + names + " 2>/dev/null)";
}

// The choices of an argument or of an option's value, or the command that lists them.
std::string argument_words(const OptionDoc& argument) {
  return argument.offers.empty() ? joined(argument.choices, " ") : asking(argument.offers);
}

// "get:jobs|get:job" -> the names of jobs: the words that follow a kind, where a kind is an
// argument of its own.
std::vector<std::pair<std::string, std::string>> names_behind_kinds(const CommandDoc& command) {
  std::vector<std::pair<std::string, std::string>> words;
  const auto kind_of = std::ranges::find_if(command.arguments, [](const OptionDoc& argument) {
    return argument.names.front().starts_with("KIND");
  });
  if (kind_of == command.arguments.end()) return words;
  const bool past = kind_of->offers == "objects";  // the command takes past runs and their actors
  // Singular and plural, as parse_object() takes both.
  for (const std::string kind : {"jobs", "runs", "actors", "nodes"})
    words.emplace_back(
        command.name + ":" + kind + "|" + command.name + ":" + kind.substr(0, kind.size() - 1),
        asking(past && kind == "actors" ? "known_actors" : kind));
  return words;
}

// Whether file names are offered as well.
bool takes_file(const CommandDoc& command) {
  return std::ranges::any_of(command.arguments, [](const OptionDoc& argument) {
    const std::string& name = argument.names.front();
    return name == "JOB.yaml" || name == "MODEL_DIR" || name == "FILE";
  });
}

std::string all_commands(const GrammarDoc& grammar) {
  std::vector<std::string> names;
  for (const CommandDoc& command : grammar.commands) names.push_back(command.name);
  return joined(names, " ");
}

// The words that may follow another one: "get:-o|get:--output" -> "table wide json".
std::vector<std::pair<std::string, std::string>> words_behind(const CommandDoc& command) {
  std::vector<std::pair<std::string, std::string>> cases = names_behind_kinds(command);
  for (const OptionDoc& option : command.options)
    if (std::string words = argument_words(option); !words.empty())
      cases.emplace_back(command.name + ":" + joined(option.names, "|" + command.name + ":"),
                         std::move(words));
  return cases;
}

std::string bash_script(const GrammarDoc& grammar) {
  const std::string globals = joined(option_names(grammar.options), " ");
  std::string values, commands;
  for (const CommandDoc& command : grammar.commands) {
    for (const auto& [pattern, behind] : words_behind(command))
      values += "      " + pattern + ") words=\"" + behind + "\" ;;\n";
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
  [[ "$word" == -* ]] || case "$command:$before" in
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

// A word in single quotes, for the two shells that show a description beside each word.
std::string single_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string zsh_script(const GrammarDoc& grammar) {
  std::string commands, values, cases;
  for (const CommandDoc& command : grammar.commands) {
    for (const auto& [pattern, behind] : words_behind(command))
      values += "    " + pattern + ") compadd -- " + behind + "; return ;;\n";
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
         "  case \"${words[2]}:${words[CURRENT-1]}\" in\n" +
         values + "  esac\n  case \"${words[2]}\" in\n" + cases +
         "  esac\n}\ncompdef _tandem tandem\n";
}

// Fish writes a command substitution as (COMMAND), without the dollar sign.
std::string fish_words(const OptionDoc& option) {
  const std::string words = argument_words(option);
  return words.starts_with("$(") ? words.substr(1) : words;
}

std::string fish_option(const std::string& condition, const OptionDoc& option) {
  std::string text = "complete -c tandem -n " + single_quoted(condition);
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) text += " -x";
  if (const std::string words = fish_words(option); !words.empty())
    text += " -a " + single_quoted(words);
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
      if (const std::string words = fish_words(argument); !words.empty())
        text += "complete -c tandem -n " + single_quoted(condition) + " -a " +
                single_quoted(words) + "\n";
    if (takes_file(command)) text += "complete -c tandem -n " + single_quoted(condition) + " -F\n";
  }
  return text;
}

}  // namespace

std::string completion_script(Shell shell, const GrammarDoc& grammar) {
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
