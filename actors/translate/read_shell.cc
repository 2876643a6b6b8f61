// The training command is the one with the most arguments that look like overrides or flags behind
// a program. A second one with many of them is told: which of the two is meant is not known.
#include "actors/translate/read_shell.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "actors/job/yaml_leaves.h"
#include "actors/translate/shell_script.h"

namespace tandem::translate {
namespace {

using nlohmann::json;

constexpr std::size_t kSecondCommandArguments = 5;  // with fewer a command is no training

// "+a.b=1": the sign, the key and the value.
struct Override {
  std::string_view sign, key, value;
  bool removes = false;  // "~a.b"
};

bool is_key_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
         c == '/' || c == '@';
}

std::optional<Override> override_of(std::string_view word) {
  Override found;
  const std::size_t sign = std::min(word.find_first_not_of("+~"), word.size());
  found.sign = word.substr(0, sign);
  if (found.sign.size() > 2) return {};
  word.remove_prefix(sign);
  const std::size_t equals = word.find('=');
  found.key = word.substr(0, equals);
  found.removes = found.sign == "~";
  if (found.key.empty() || !std::isalpha(static_cast<unsigned char>(found.key[0])) ||
      !std::ranges::all_of(found.key, is_key_char))
    return {};
  if (equals == word.npos) return found.removes ? std::optional(found) : std::nullopt;
  found.value = word.substr(equals + 1);
  return found;
}

bool is_flag(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") &&
         std::isalpha(static_cast<unsigned char>(word[2]));
}

// The place of the program's name within the words; nullopt: no program is started.
std::optional<std::size_t> program_of(const std::vector<ScriptWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if ((word == "-m" || word == "--module") && i + 1 < words.size()) {
      const std::string& module = words[i + 1].text;
      // A launcher that is started as a module has the program behind it.
      if (module.starts_with("torch.distributed") || module.starts_with("accelerate")) continue;
      return i + 1;
    }
    if (word.ends_with(".py")) return i;
    if ((word == "trl" || word.ends_with("/trl")) && i + 1 < words.size()) return i + 1;
    if (word == "rl" && i > 0 && words[i - 1].text == "run") return i;  // uv run rl
  }
  return {};
}

std::size_t argument_count(const ScriptCommand& command) {
  const auto program = program_of(command.words);
  if (!program) return 0;
  return static_cast<std::size_t>(
      std::count_if(command.words.begin() + static_cast<std::ptrdiff_t>(*program) + 1,
                    command.words.end(), [](const ScriptWord& word) {
                      return is_flag(word.text) || override_of(word.text) || word.text == "@";
                    }));
}

// A scalar of a command line, or what Hydra's value grammar shares with YAML: lists and maps.
json value_of(std::string_view text) {
  if (text.empty()) return "";
  return job::yaml_value_of(text).value_or(std::string(text));
}

// Whether a word behind a flag is an override, and no value of the flag: the first one is where its
// key is dotted.
bool is_override(std::string_view word, bool first) {
  const auto found = override_of(word);
  return found && (!first || found->key.find('.') != found->key.npos);
}

class Reader {
 public:
  explicit Reader(const std::string& origin) : shell{ForeignConfig(origin), {}} {}

  void read(const ScriptCommand& command) {
    const std::vector<ScriptWord>& words = command.words;
    const std::size_t program = *program_of(words);
    shell.config.program = words[program].text;
    std::size_t at = 0;
    while (at < program) at = is_flag(words[at].text) ? flag(words, at, program, true) : at + 1;
    for (at = program + 1; at < words.size();) {
      const std::string& text = words[at].text;
      if (text == "@" && at + 1 < words.size()) {
        file(words[at + 1]);
        at += 2;
      } else if (text.starts_with("@") && text.size() > 1) {
        file({text.substr(1), words[at].line, words[at].unknown});
        ++at;
      } else if (is_flag(text)) {
        at = flag(words, at, words.size(), false);
      } else {
        if (!take_override(words[at]) && text != "--") not_understood(words[at]);
        ++at;
      }
    }
  }

  ShellConfig shell;

 private:
  std::string where(int line) const { return shell.config.origin() + ":" + std::to_string(line); }

  void not_understood(const ScriptWord& word) {
    const bool known = word.unknown.empty();
    shell.config.note({known ? "the argument `" + word.text + "` is not understood"
                             : "an argument is not known: " + word.unknown,
                       where(word.line)});
  }

  void file(const ScriptWord& word) {
    if (word.unknown.empty())
      shell.files.push_back({word.text, where(word.line)});
    else
      shell.config.note({"a configuration file is not known: " + word.unknown, where(word.line)});
  }

  void set(const std::string& key, json value, const ScriptWord& word) {
    if (!word.unknown.empty()) {
      shell.config.remove(key);
      shell.config.note({word.unknown, where(word.line), key});
      return;
    }
    shell.config.set({key, std::move(value), where(word.line)});
  }

  bool take_override(const ScriptWord& word) {
    const auto found = override_of(word.text);
    if (!found) return false;
    const std::string key(found->key);
    if (found->removes)
      shell.config.remove(key);
    else
      set(key, value_of(found->value), word);
    return true;
  }

  // Takes the flag at `at` with its values, and returns the place of the next argument.
  std::size_t flag(const std::vector<ScriptWord>& words, std::size_t at, std::size_t end,
                   bool launcher) {
    const ScriptWord& word = words[at];
    const std::size_t equals = word.text.find('=');
    std::string key = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::ranges::replace(key, '-', '_');
    if (launcher) key = "launcher." + key;
    std::vector<ScriptWord> values;
    if (equals != std::string::npos) {
      values.push_back({word.text.substr(equals + 1), word.line, word.unknown});
      ++at;
    } else {
      for (++at; at < end && !is_flag(words[at].text) && words[at].text != "--"; ++at) {
        // The words in front of the program are its launcher's command.
        if (launcher && (words[at].text == "-m" || values.size() == 1)) break;
        if (!launcher && is_override(words[at].text, values.empty())) break;
        values.push_back(words[at]);
      }
      if (at < end && words[at].text == "--") ++at;
    }
    take_flag(key, word, values);
    return at;
  }

  void take_flag(const std::string& key, const ScriptWord& word,
                 const std::vector<ScriptWord>& values) {
    if ((key == "config" || key == "config_file") && values.size() == 1) return file(values[0]);
    if (values.empty()) return set(key, true, word);
    ScriptWord source = word;
    json list = json::array();
    for (const ScriptWord& value : values) {
      if (!value.unknown.empty()) source.unknown = value.unknown;
      list.push_back(value_of(value.text));
    }
    set(key, list.size() == 1 ? json(list[0]) : std::move(list), source);
  }
};

}  // namespace

Result<ShellConfig> read_shell(std::string_view text, const std::string& origin) {
  const auto commands = script_commands(text, origin);
  if (!commands) return commands.error();
  const ScriptCommand* training = nullptr;
  std::size_t most = 0;
  for (const ScriptCommand& command : *commands)
    if (const std::size_t count = argument_count(command); count > most) {
      training = &command;
      most = count;
    }
  if (!training)
    return Error{
        ErrorCode::kInvalid, "no command of this script starts a training program", origin,
        "looked for `python -m MODULE`, a `.py` file or `trl`, with arguments as `key=value` "
        "or `--flag value`"};
  Reader reader(origin);
  reader.read(*training);
  for (const ScriptCommand& command : *commands)
    if (&command != training && argument_count(command) >= kSecondCommandArguments)
      reader.shell.config.note(
          {"a second command starts a program with many arguments, and is left out",
           origin + ":" + std::to_string(command.line)});
  return std::move(reader.shell);
}

}  // namespace tandem::translate
