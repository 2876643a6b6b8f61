// Variables have values, or a reason why they have none. Commands are walked in the order of the
// text, with the depth of `if`, loops and functions: within these an assignment makes its variable
// unknown, unless it would take an argument of the script, since there are none and a loop over
// them would not run.
#include "actors/translate/shell_script.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "actors/translate/shell_arithmetic.h"
#include "actors/translate/shell_words.h"

namespace tandem::translate {
namespace {

constexpr int kNestingDepthMax = 20;  // expansions, and scripts, within each other
constexpr std::size_t kFieldBytesMax = 1 << 20;

struct Variable {
  std::vector<std::string> items;  // one, unless it is a list
  bool list = false;
  std::string unknown = {};  // why the value is not known
};

// What an expansion gives: fields that stay apart, or one text.
struct Expansion {
  std::vector<std::string> items;
  bool list = false;      // each item is a field of its own
  std::string unknown;    // why it is not known
  bool argument = false;  // it is missing because the script has no arguments
};

std::size_t name_length(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return 0;
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_shell_name_char) -
                                  text.begin());
}

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

Expansion known(std::string text) { return {{std::move(text)}, false, "", false}; }
Expansion unknown(std::string why) { return {{"…"}, false, std::move(why), false}; }

// The fields that a word becomes.
struct Fields {
  std::vector<ScriptWord> words;
  bool open = false;      // the last word may grow
  bool argument = false;  // a part is missing because the script has no arguments

  void append(std::string_view text, int line) {
    if (!std::exchange(open, true)) words.push_back({"", line});
    if (words.back().text.size() + text.size() <= kFieldBytesMax) words.back().text += text;
  }
  void split(int line, std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
      if (end > at) append(text.substr(at, end - at), line);
      if (end < text.size()) open = false;
      at = end + 1;
    }
  }
};

class Runner {
 public:
  explicit Runner(const std::string& origin) : origin_(origin) {}

  Result<void> run(std::string_view text, int nesting) {
    auto cut = shell_commands(text, origin_);
    if (!cut) return cut.error();
    for (const ShellCommand& command : *cut)
      if (auto done = take(command, nesting); !done) return done;
    return {};
  }

  std::vector<ScriptCommand> commands;

 private:
  Result<void> take(const ShellCommand& command, int nesting) {
    conditional_ = command.conditional;
    if (command.array) {
      assign_list(command);
      return {};
    }
    std::size_t first = 0;
    while (first < command.words.size() && compound(command, first)) ++first;
    std::size_t begin = first;
    while (begin < command.words.size() && assigned_name(command.words[begin]) > 0) ++begin;
    if (begin == command.words.size()) {
      for (std::size_t i = first; i < begin; ++i) assign(command.words[i]);
      return {};
    }
    ScriptCommand expanded{{}, command.words[begin].line, depth_ > 0};
    for (std::size_t i = begin; i < command.words.size(); ++i) {
      Fields fields = expand(command.words[i].parts, command.words[i].line, 0);
      std::ranges::move(fields.words, std::back_inserter(expanded.words));
    }
    if (expanded.words.empty()) return {};
    const std::string& name = expanded.words[0].text;
    if (among(name, {"export", "declare", "local", "readonly", "typeset"}))
      for (std::size_t i = begin + 1; i < command.words.size(); ++i) assign(command.words[i]);
    if (auto inner = run_inner(expanded, nesting); !inner) return inner;
    commands.push_back(std::move(expanded));
    return {};
  }

  // Whether the word is a keyword, in front of a command, that opens or closes something.
  bool compound(const ShellCommand& command, std::size_t at) {
    const ShellWord& word = command.words[at];
    if (word.parts.size() != 1 || word.parts[0].kind != WordPart::Kind::kText ||
        word.parts[0].quoted)
      return false;
    const std::string& text = word.parts[0].text;
    if (among(text, {"if", "while", "until", "{"})) return ++depth_ > 0;
    if (among(text, {"fi", "done", "esac", "}"})) {
      depth_ = std::max(0, depth_ - 1);
      return true;
    }
    if (text == "for" || text == "case" || text == "select") {
      ++depth_;
      if (text != "case" && at + 1 < command.words.size())
        lose(command.words[at + 1], "it is the variable of a loop");
      return false;
    }
    return among(text, {"then", "do", "else", "elif", "!", "time"});
  }

  void lose(const ShellWord& word, const std::string& why) {
    if (word.parts.size() == 1) variables_[word.parts[0].text] = {{"…"}, false, why};
  }

  // The command of `eval` and `bash -c`, which is a script itself.
  Result<void> run_inner(const ScriptCommand& command, int nesting) {
    std::string text;
    for (std::size_t i = 0; i + 1 < command.words.size(); ++i) {
      const std::string& word = command.words[i].text;
      if (i == 0 && word == "eval") {
        for (std::size_t j = 1; j < command.words.size(); ++j) text += command.words[j].text + " ";
        break;
      }
      const bool shell = word.ends_with("bash") || word == "sh" || word.ends_with("/sh");
      if (!shell) continue;
      std::size_t flag = i + 1;
      while (flag + 1 < command.words.size() && command.words[flag].text.starts_with("-") &&
             !command.words[flag].text.ends_with("c"))
        ++flag;
      if (flag + 1 < command.words.size() &&
          among(command.words[flag].text, {"-c", "-lc", "-xc"})) {
        text = command.words[flag + 1].text;
        break;
      }
    }
    if (text.empty() || nesting >= kNestingDepthMax) return {};
    const std::size_t before = commands.size();
    // A text that is no script is data of some program.
    if (auto ran = run(text, nesting + 1); !ran) return {};
    for (std::size_t i = before; i < commands.size(); ++i) move_to(commands[i], command.line);
    return {};
  }

  static void move_to(ScriptCommand& command, int line) {
    command.line = line;
    for (ScriptWord& word : command.words) word.line = line;
  }

  // The length of `NAME` where the word is `NAME=…` or `NAME+=…`; 0: it is not.
  static std::size_t assigned_name(const ShellWord& word) {
    if (word.parts.empty() || word.parts[0].kind != WordPart::Kind::kText || word.parts[0].quoted)
      return 0;
    const std::string_view text = word.parts[0].text;
    const std::size_t length = name_length(text);
    const std::string_view rest = text.substr(length);
    return length > 0 && (rest.starts_with("=") || rest.starts_with("+=")) ? length : 0;
  }

  void assign(const ShellWord& word) {
    const std::size_t length = assigned_name(word);
    if (length == 0) return;
    const std::string name = word.parts[0].text.substr(0, length);
    const bool append = word.parts[0].text[length] == '+';
    std::vector<WordPart> parts = word.parts;
    parts[0].text.erase(0, length + (append ? 2 : 1));
    for (WordPart& part : parts) part.quoted = true;  // a value is not split
    const Fields fields = expand(parts, word.line, 0);
    Variable value{{""}, false, ""};
    if (!fields.words.empty()) value = {{fields.words[0].text}, false, fields.words[0].unknown};
    for (std::size_t i = 1; i < fields.words.size(); ++i)
      value.items[0] += " " + fields.words[i].text;
    if (append) {
      const Variable& before = variables_[name];
      if (!before.items.empty()) value.items[0] = before.items[0] + value.items[0];
      if (value.unknown.empty()) value.unknown = before.unknown;
    }
    keep(name, std::move(value), word.line, fields.argument);
  }

  void assign_list(const ShellCommand& command) {
    Variable value{{}, true, ""};
    if (command.append) value.items = variables_[*command.array].items;
    for (const ShellWord& word : command.words)
      for (ScriptWord& field : expand(word.parts, word.line, 0).words) {
        if (!field.unknown.empty()) value.unknown = field.unknown;
        value.items.push_back(std::move(field.text));
      }
    keep(*command.array, std::move(value), command.line, false);
  }

  void keep(const std::string& name, Variable value, int line, bool argument) {
    if (depth_ > 0 || conditional_) {
      if (argument) return;
      const auto before = variables_.find(name);
      if (before != variables_.end() && before->second.items == value.items &&
          before->second.unknown == value.unknown)
        return;
      value = {{"…"},
               false,
               "`" + name + "` is set under a condition, in a loop or in a function, at line " +
                   std::to_string(line)};
    }
    variables_[name] = std::move(value);
  }

  Fields expand(const std::vector<WordPart>& parts, int line, int nesting) {
    Fields fields;
    bool nothing = false;  // a list without items stands in the word
    for (const WordPart& part : parts) {
      if (part.kind == WordPart::Kind::kText) {
        if (part.quoted || !part.text.empty()) fields.append(part.text, line);
        continue;
      }
      const Expansion value = expansion(part, nesting);
      fields.argument = fields.argument || value.argument;
      nothing = nothing || (value.list && value.items.empty());
      if (value.list)
        add_list(fields, value, line);
      else if (part.quoted)
        fields.append(value.items.empty() ? "" : value.items[0], line);
      else if (!value.items.empty())
        fields.split(line, value.items[0]);
      if (!value.unknown.empty() && !fields.words.empty())
        fields.words.back().unknown = value.unknown;
    }
    // "$@" without arguments is no word, not an empty one.
    if (nothing && fields.words.size() == 1 && fields.words[0].text.empty()) fields.words.clear();
    return fields;
  }

  static void add_list(Fields& fields, const Expansion& value, int line) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) fields.open = false;
      fields.append(value.items[i], line);
    }
  }

  Expansion expansion(const WordPart& part, int nesting) {
    if (part.kind == WordPart::Kind::kCommand)
      return unknown("`$(" + part.text.substr(0, 40) + ")` is the output of a command");
    if (part.kind == WordPart::Kind::kArithmetic) {
      if (const auto value = compute(part.text, nesting)) return known(std::to_string(*value));
      return unknown("`$((" + part.text.substr(0, 40) + "))` is not understood");
    }
    return variable(part.text, nesting);
  }

  std::optional<std::int64_t> compute(std::string_view text, int nesting) {
    if (nesting > kNestingDepthMax) return {};
    return arithmetic(text, [&](const std::string& name) -> std::optional<std::int64_t> {
      const auto at = variables_.find(name);
      if (at == variables_.end() || at->second.items.size() != 1 || !at->second.unknown.empty())
        return {};
      return compute(at->second.items[0], nesting + 1);
    });
  }

  // `content` is the name alone, or what stands between "${" and "}".
  Expansion variable(std::string_view content, int nesting) {
    if (content == "@" || content == "*") return {{}, true, "", true};
    std::size_t length = name_length(content);
    if (length == 0)
      while (length < content.size() && std::isdigit(static_cast<unsigned char>(content[length])))
        ++length;
    if (length == 0) return unknown("`${" + std::string(content) + "}` is not understood");
    const std::string name(content.substr(0, length));
    std::string_view rest = content.substr(length);
    Expansion value = value_of(name);
    if (rest.starts_with("[@]") || rest.starts_with("[*]")) {
      value.list = value.unknown.empty();
      rest.remove_prefix(3);
    } else if (rest.starts_with("[0]")) {
      rest.remove_prefix(3);
    }
    if (rest.empty()) return value;
    return operation(name, std::move(value), rest, nesting);
  }

  Expansion value_of(const std::string& name) const {
    if (const auto at = variables_.find(name); at != variables_.end()) {
      if (!at->second.unknown.empty()) return unknown(at->second.unknown);
      return {at->second.items, false, "", false};
    }
    if (name == "HOME") return known("$HOME");
    if (std::isdigit(static_cast<unsigned char>(name[0])))
      return {{"…"}, false, "the script has no argument `$" + name + "` here", true};
    return unknown("`" + name + "` is not set in the script");
  }

  // An operator behind the name: a default, an alternative, or a cut of a path.
  Expansion operation(const std::string& name, Expansion value, std::string_view rest,
                      int nesting) {
    const bool colon = rest.starts_with(":");
    const char sign = rest.size() > (colon ? 1 : 0) ? rest[colon ? 1 : 0] : '\0';
    const bool set = name == "HOME" || variables_.contains(name);
    const bool empty = set && value.unknown.empty() &&
                       (value.items.empty() || (value.items.size() == 1 && value.items[0].empty()));
    const bool missing = !set || (colon && empty);
    if ((sign == '-' || sign == '=') && nesting < kNestingDepthMax) {
      if (!missing) return value;
      Expansion fallback = text_of(rest.substr(colon ? 2 : 1), nesting);
      if (sign == '=') variables_[name] = {fallback.items, false, fallback.unknown};
      return fallback;
    }
    if (sign == '+') return missing ? known("") : text_of(rest.substr(colon ? 2 : 1), nesting);
    if (sign == '?') return value;
    if (value.unknown.empty() && value.items.size() == 1) {
      const std::string& text = value.items[0];
      const std::size_t slash = text.rfind('/');
      if (rest == "##*/") return known(slash == text.npos ? text : text.substr(slash + 1));
      if (rest == "%/*") return known(slash == text.npos ? text : text.substr(0, slash));
    }
    return unknown("`${" + name + std::string(rest) + "}` is not understood");
  }

  // The text of a default, in which variables may stand.
  Expansion text_of(std::string_view text, int nesting) {
    const auto parts = word_parts(text);
    if (!parts) return unknown("`" + std::string(text) + "` is not understood");
    const Fields fields = expand(*parts, 0, nesting + 1);
    if (fields.words.empty()) return {{""}, false, "", fields.argument};
    const bool whole = text.starts_with('"');  // it is not split
    return {{fields.words[0].text}, whole, fields.words[0].unknown, fields.argument};
  }

  const std::string& origin_;
  std::map<std::string, Variable> variables_;
  int depth_ = 0;             // of `if`, loops and functions
  bool conditional_ = false;  // the command follows && or ||
};

}  // namespace

Result<std::vector<ScriptCommand>> script_commands(std::string_view text,
                                                   const std::string& origin) {
  Runner runner(origin);
  if (auto ran = runner.run(text, 0); !ran) return ran.error();
  return std::move(runner.commands);
}

}  // namespace tandem::translate
