// A shell script cut into commands and words as Bash cuts it: comments, quotes, line continuations,
// here-documents, redirections and arrays. Nothing is expanded or run here (shell_script.h). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::translate {

inline constexpr std::size_t kShellWordsMax = 20000;

// A piece of a word. `text` is, by kind: the characters without their quotes; the name or the
// content of `${…}`; the content of `$(…)` or of backquotes; the content of `$((…))`.
struct WordPart {
  enum class Kind { kText, kVariable, kCommand, kArithmetic };
  Kind kind = Kind::kText;
  std::string text;
  bool quoted = false;
};

struct ShellWord {
  std::vector<WordPart> parts;
  int line = 0;  // from 1
};

// A simple command. Of `NAME=(a b)` and `NAME+=(a b)` the words are the elements, and `array` is
// the name.
struct ShellCommand {
  std::vector<ShellWord> words;
  std::optional<std::string> array;
  bool append = false;       // +=
  bool conditional = false;  // it follows && or ||
  int line = 0;              // of its first word, from 1
};

bool is_shell_name_char(char c);  // a letter, a digit or _

// The commands of a script in their order, those within `if`, loops and functions among them; the
// keywords are words. An error, kInvalid with the line: a quote, `${`, `$(` or a list that is not
// closed, and more than kShellWordsMax words. `origin` is the file's name in errors.
Result<std::vector<ShellCommand>> shell_commands(std::string_view text, const std::string& origin);

// The parts of `text` as of one word in double quotes, for the default in `${NAME:-default}`.
// nullopt where a quote or a bracket is not closed.
std::optional<std::vector<WordPart>> word_parts(std::string_view text);

}  // namespace tandem::translate
