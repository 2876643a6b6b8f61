// One scanner walks the characters and counts lines. It knows what Bash does with quotes and
// brackets, and no grammar of compound commands: `if`, `then` and `done` are words to it, and
// parentheses that are no array only end a command.
#include "actors/translate/shell_words.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace tandem::translate {
namespace {

using Kind = WordPart::Kind;

bool is_name(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(text, is_shell_name_char);
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  char look(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool looks_at(std::string_view next) const { return text_.substr(at_).starts_with(next); }
  char take() {
    line_ += text_[at_] == '\n';
    return text_[at_++];
  }
  void skip(std::size_t count) {
    for (std::size_t i = 0; i < count && !at_end(); ++i) take();
  }
  void skip_line() {
    while (!at_end() && look() != '\n') take();
  }
  // Spaces, tabs and continuations.
  void skip_blanks() {
    for (;;) {
      if (look() == ' ' || look() == '\t' || look() == '\r')
        take();
      else if (looks_at("\\\n"))
        skip(2);
      else if (looks_at("\\\r\n"))
        skip(3);
      else
        return;
    }
  }
  // The lines up to one that is `end`.
  void skip_document(std::string_view end) {
    while (!at_end()) {
      const std::size_t begin = at_;
      skip_line();
      std::string_view line = text_.substr(begin, at_ - begin);
      while (line.starts_with('\t')) line.remove_prefix(1);
      if (!at_end()) take();
      if (line == end) return;
    }
  }
  int line() const { return line_; }

  // Appends the parts of the text up to an unquoted character that ends a word. False: something
  // is not closed; `open` names it and `open_line` is where it begins.
  bool word(std::vector<WordPart>& parts) {
    while (!at_end() && std::string_view(" \t\r\n;|&()<>").find(look()) == std::string_view::npos) {
      if (look() == '\''  ? !single_quoted(parts)
          : look() == '"' ? !double_quoted(parts)
                          : !bare(parts))
        return false;
    }
    return true;
  }
  // Appends the parts of the whole text, in which spaces and single quotes mean themselves.
  bool quoted_text(std::vector<WordPart>& parts) {
    while (!at_end()) {
      if (look() == '"') {
        take();
        continue;
      }
      if (!in_quotes(parts)) return false;
    }
    return true;
  }

  std::string open;
  int open_line = 0;

 private:
  bool not_closed(std::string what, int line) {
    open = std::move(what);
    open_line = line;
    return false;
  }
  static void add(std::vector<WordPart>& parts, char c, bool quoted) {
    if (parts.empty() || parts.back().kind != Kind::kText || parts.back().quoted != quoted)
      parts.push_back({Kind::kText, "", quoted});
    parts.back().text += c;
  }

  bool single_quoted(std::vector<WordPart>& parts) {
    const int begin = line_;
    take();
    parts.push_back({Kind::kText, "", true});
    while (look() != '\'') {
      if (at_end()) return not_closed("'", begin);
      parts.back().text += take();
    }
    take();
    return true;
  }

  bool double_quoted(std::vector<WordPart>& parts) {
    const int begin = line_;
    take();
    parts.push_back({Kind::kText, "", true});
    while (look() != '"') {
      if (at_end()) return not_closed("\"", begin);
      if (!in_quotes(parts)) return false;
    }
    take();
    return true;
  }

  // A character or an expansion within double quotes.
  bool in_quotes(std::vector<WordPart>& parts) {
    if (looks_at("\\\n")) {
      skip(2);
      return true;
    }
    if (look() == '\\' && std::string_view("$`\"\\").find(look(1)) != std::string_view::npos &&
        look(1) != '\0')
      take();
    else if (look() == '$' || look() == '`')
      return expansion(parts, true);
    add(parts, take(), true);
    return true;
  }

  bool bare(std::vector<WordPart>& parts) {
    if (looks_at("\\\n")) {
      skip(2);
      return true;
    }
    if (look() == '\\') {
      take();
      if (!at_end()) add(parts, take(), true);
      return true;
    }
    if (looks_at("$'")) {
      take();
      return single_quoted(parts);
    }
    if (looks_at("$\"")) {
      take();
      return double_quoted(parts);
    }
    if (look() == '$' || look() == '`') return expansion(parts, false);
    add(parts, take(), false);
    return true;
  }

  bool expansion(std::vector<WordPart>& parts, bool quoted) {
    const int begin = line_;
    if (look() == '`') {
      take();
      std::string content;
      while (look() != '`') {
        if (at_end()) return not_closed("`", begin);
        content += take();
      }
      take();
      parts.push_back({Kind::kCommand, content, quoted});
      return true;
    }
    if (looks_at("$((")) return bracket(parts, 3, "))", Kind::kArithmetic, quoted);
    if (looks_at("$(")) return bracket(parts, 2, ")", Kind::kCommand, quoted);
    if (looks_at("${")) return bracket(parts, 2, "}", Kind::kVariable, quoted);
    take();
    std::string name;
    if (is_shell_name_char(look()) && !std::isdigit(static_cast<unsigned char>(look())))
      while (is_shell_name_char(look())) name += take();
    else if (look() != '\0' && (std::isdigit(static_cast<unsigned char>(look())) ||
                                std::string_view("@*#?$!-").find(look()) != std::string_view::npos))
      name = take();
    if (name.empty())
      add(parts, '$', quoted);
    else
      parts.push_back({Kind::kVariable, name, quoted});
    return true;
  }

  // The content of a bracket, in which brackets of its kind and quotes may stand.
  bool bracket(std::vector<WordPart>& parts, std::size_t opening, std::string_view end, Kind kind,
               bool quoted) {
    const int begin = line_;
    const std::string shown(text_.substr(at_, opening));
    skip(opening);
    const char closer = end[0], opener = closer == '}' ? '{' : '(';
    std::string content;
    for (int depth = 0; depth > 0 || !looks_at(end);) {
      if (at_end()) return not_closed(shown, begin);
      const char c = take();
      if (c == opener) ++depth;
      if (c == closer) --depth;
      content += c;
      if (c == '\\' && !at_end()) content += take();
      if (c != '\'' && c != '"') continue;
      if (c == '\'' && quoted && kind == Kind::kVariable) continue;  // it means itself
      while (look() != c) {
        if (at_end()) return not_closed(shown, begin);
        if (look() == '\\' && c == '"') content += take();
        if (!at_end()) content += take();
      }
      content += take();
    }
    skip(end.size());
    parts.push_back({kind, content, quoted});
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

// "NAME" of a word `NAME=` or `NAME+=` that a list follows.
std::optional<std::string> array_name(const ShellWord& word, bool& append) {
  if (word.parts.size() != 1 || word.parts[0].kind != Kind::kText || word.parts[0].quoted)
    return {};
  std::string_view text = word.parts[0].text;
  if (!text.ends_with('=')) return {};
  text.remove_suffix(1);
  append = text.ends_with('+');
  if (append) text.remove_suffix(1);
  if (!is_name(text)) return {};
  return std::string(text);
}

class Cutter {
 public:
  Cutter(std::string_view text, const std::string& origin) : scan_(text), origin_(origin) {}

  Result<std::vector<ShellCommand>> run() {
    while (!scan_.at_end()) {
      scan_.skip_blanks();
      if (scan_.at_end()) break;
      if (auto taken = step(); !taken) return taken.error();
      if (words_ > kShellWordsMax)
        return fault("more than " + std::to_string(kShellWordsMax) + " words", scan_.line());
    }
    end_command();
    return std::move(commands_);
  }

 private:
  Error fault(const std::string& message, int line) const {
    return {ErrorCode::kInvalid, message, origin_ + ":" + std::to_string(line),
            "give a script that Bash runs"};
  }

  Result<void> step() {
    const char c = scan_.look();
    if (c == '#') {
      scan_.skip_line();
    } else if (c == '\n') {
      scan_.take();
      end_command();
      for (const std::string& end : std::exchange(documents_, {})) scan_.skip_document(end);
    } else if (scan_.looks_at("&>")) {
      scan_.skip(1);
    } else if (c == '<' || c == '>') {
      return redirection();
    } else if (scan_.looks_at("&&") || scan_.looks_at("||")) {
      scan_.skip(2);
      end_command();
      conditional_ = true;
    } else if (std::string_view(";|&()").find(c) != std::string_view::npos) {
      scan_.take();
      end_command();
      conditional_ = false;
    } else {
      return add_word();
    }
    return {};
  }

  Result<ShellWord> word() {
    ShellWord word{{}, scan_.line()};
    if (!scan_.word(word.parts))
      return fault("`" + scan_.open + "` is not closed", scan_.open_line);
    ++words_;
    return word;
  }

  Result<void> add_word() {
    auto next = word();
    if (!next) return next.error();
    bool append = false;
    if (const auto name = array_name(*next, append); name && scan_.look() == '(') {
      end_command();
      return array(*name, append, next->line);
    }
    // "2" of `2>&1` is no word.
    const bool number = next->parts.size() == 1 && next->parts[0].text.size() == 1 &&
                        std::isdigit(static_cast<unsigned char>(next->parts[0].text[0]));
    if (number && (scan_.look() == '>' || scan_.look() == '<')) return {};
    if (command_.words.empty()) {
      command_.line = next->line;
      command_.conditional = std::exchange(conditional_, false);
    }
    command_.words.push_back(*std::move(next));
    return {};
  }

  Result<void> array(const std::string& name, bool append, int line) {
    scan_.take();
    command_ = {{}, name, append, std::exchange(conditional_, false), line};
    for (;;) {
      scan_.skip_blanks();
      if (scan_.at_end()) return fault("the list of `" + name + "` is not closed", line);
      const char c = scan_.look();
      if (c == ')') break;
      if (c == '#') {
        scan_.skip_line();
      } else if (std::string_view("\n;|&(<>").find(c) != std::string_view::npos) {
        scan_.take();
      } else {
        auto item = word();
        if (!item) return item.error();
        command_.words.push_back(*std::move(item));
      }
    }
    scan_.take();
    commands_.push_back(std::exchange(command_, {}));
    return {};
  }

  Result<void> redirection() {
    if (scan_.looks_at("<<") && !scan_.looks_at("<<<")) {
      scan_.skip(scan_.looks_at("<<-") ? 3 : 2);
      scan_.skip_blanks();
      auto end = word();
      if (!end) return end.error();
      std::string text;
      for (const WordPart& part : end->parts) text += part.text;
      if (!text.empty()) documents_.push_back(text);
      return {};
    }
    while (std::string_view("<>&").find(scan_.look()) != std::string_view::npos &&
           scan_.look() != '\0')
      scan_.take();
    scan_.skip_blanks();
    if (scan_.look() == '(' || scan_.look() == '\n') return {};
    const auto target = word();
    return target ? Result<void>() : target.error();
  }

  void end_command() {
    if (!command_.words.empty()) commands_.push_back(std::move(command_));
    command_ = {};
  }

  Scanner scan_;
  const std::string& origin_;
  std::vector<ShellCommand> commands_;
  ShellCommand command_;
  std::vector<std::string> documents_;  // the ends of here-documents that begin at the next line
  std::size_t words_ = 0;
  bool conditional_ = false;  // the next command follows && or ||
};

}  // namespace

bool is_shell_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

Result<std::vector<ShellCommand>> shell_commands(std::string_view text, const std::string& origin) {
  return Cutter(text, origin).run();
}

std::optional<std::vector<WordPart>> word_parts(std::string_view text) {
  std::vector<WordPart> parts;
  if (!Scanner(text).quoted_text(parts)) return {};
  return parts;
}

}  // namespace tandem::translate
