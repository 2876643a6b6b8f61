// Two passes. The first writes Unicode and a few LaTeX phrases as plain LaTeX; the second cuts it
// into tokens, and knows the words and commands by the tables below.
#include "actors/grade/token.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "actors/grade/unit.h"

namespace tandem::grade {
namespace {

struct Spelling {
  std::string_view from, to;
};

// What the first pass replaces. Of two that fit, the earlier one counts.
constexpr Spelling kPhrases[] = {
    {"\\\\", "\\\\ "},  // a row break, whatever follows it
    {"\\!", ""},
    {"{,}", "\\,"},
    {"^{\\circ}", "\\degree "},
    {"^\\circ", "\\degree "},
    {"^{\\prime}", "'"},
    {"**", "^"},
    {"\xC2\xB0", "\\degree "},
    {"\xC2\xA0", " "},
    {"\xC2\xB1", "\\pm "},
    {"\xC2\xB2", "^{2}"},
    {"\xC2\xB3", "^{3}"},
    {"\xC2\xB7", "\\cdot "},
    {"\xC2\xBC", "\\frac{1}{4}"},
    {"\xC2\xBD", "\\frac{1}{2}"},
    {"\xC2\xBE", "\\frac{3}{4}"},
    {"\xC3\x97", "\\times "},
    {"\xC3\xB7", "/"},
    {"\xC2\xA3", "\\pound "},
    {"\xCE\xB1", "\\alpha "},
    {"\xCE\xB2", "\\beta "},
    {"\xCE\xB3", "\\gamma "},
    {"\xCE\xB4", "\\delta "},
    {"\xCE\xB8", "\\theta "},
    {"\xCE\xBB", "\\lambda "},
    {"\xCE\xBC", "\\mu "},
    {"\xCF\x80", "\\pi "},
    {"\xCF\x81", "\\rho "},
    {"\xCF\x83", "\\sigma "},
    {"\xCF\x86", "\\phi "},
    {"\xCF\x89", "\\omega "},
    {"\xE2\x80\x89", " "},
    {"\xE2\x80\xAF", " "},
    {"\xE2\x80\x93", "-"},
    {"\xE2\x80\xB2", "'"},
    {"\xE2\x81\xB0", "^{0}"},
    {"\xE2\x81\xB4", "^{4}"},
    {"\xE2\x81\xB5", "^{5}"},
    {"\xE2\x81\xB6", "^{6}"},
    {"\xE2\x81\xB7", "^{7}"},
    {"\xE2\x81\xB8", "^{8}"},
    {"\xE2\x81\xB9", "^{9}"},
    {"\xE2\x81\xBF", "^{n}"},
    {"\xE2\x82\x80", "_{0}"},
    {"\xE2\x82\x81", "_{1}"},
    {"\xE2\x82\x82", "_{2}"},
    {"\xE2\x82\x83", "_{3}"},
    {"\xE2\x82\xAC", "\\euro "},
    {"\xE2\x84\x9D", "\\R "},
    {"\xE2\x85\x93", "\\frac{1}{3}"},
    {"\xE2\x85\x94", "\\frac{2}{3}"},
    {"\xE2\x88\x85", "\\emptyset "},
    {"\xE2\x88\x88", "\\in "},
    {"\xE2\x88\x92", "-"},
    {"\xE2\x88\x93", "\\mp "},
    {"\xE2\x88\x96", "\\setminus "},
    {"\xE2\x88\x9A", "\\rootsign "},
    {"\xE2\x88\x9B", "\\cuberootsign "},
    {"\xE2\x88\x9E", "\\infty "},
    {"\xE2\x88\xAA", "\\cup "},
    {"\xE2\x89\xA0", "\\ne "},
    {"\xE2\x89\xA4", "\\le "},
    {"\xE2\x89\xA5", "\\ge "},
    {"\xE2\x8B\x85", "\\cdot "},
    {"\xE2\x9F\xA8", "\\langle "},
    {"\xE2\x9F\xA9", "\\rangle "},
    {"\xEF\xBC\x8C", ","},
    {"\xEF\xBC\x88", "("},
    {"\xEF\xBC\x89", ")"},
};

// Commands of one meaning. A "to" of one sign stands for that sign; an empty one is skipped.
constexpr Spelling kCommands[] = {
    {"dfrac", "frac"},
    {"tfrac", "frac"},
    {"cfrac", "frac"},
    {"dbinom", "binom"},
    {"tbinom", "binom"},
    {"le", "<="},
    {"leq", "<="},
    {"leqslant", "<="},
    {"ge", ">="},
    {"geq", ">="},
    {"geqslant", ">="},
    {"ne", "!="},
    {"neq", "!="},
    {"lt", "<"},
    {"gt", ">"},
    {"cdot", "*"},
    {"times", "*"},
    {"ast", "*"},
    {"div", "/"},
    {"lvert", "|"},
    {"rvert", "|"},
    {"vert", "|"},
    {"colon", ":"},
    {"lbrack", "["},
    {"rbrack", "]"},
    {"backslash", "setminus"},
    {"varnothing", "emptyset"},
    {"R", "reals"},
    {"Reals", "reals"},
    {"displaystyle", ""},
    {"textstyle", ""},
    {"left", ""},
    {"right", ""},
    {"big", ""},
    {"Big", ""},
    {"bigl", ""},
    {"bigr", ""},
    {"Bigl", ""},
    {"Bigr", ""},
    {"bigg", ""},
    {"Bigg", ""},
    {"quad", ""},
    {"qquad", ""},
    {"limits", ""},
    {"mathstrut", ""},
    {"bold", ""},
    {"mathbf", ""},
    {"mathit", ""},
    {"boldsymbol", ""},
    {"bm", ""},
    {"mathsf", ""},
    {"varphi", "phi"},
    {"varepsilon", "epsilon"},
    {"vartheta", "theta"},
    {"tg", "tan"},
    {"ctg", "cot"},
    {"cosec", "csc"},
    {"arctg", "arctan"},
    {"asin", "arcsin"},
    {"acos", "arccos"},
    {"atan", "arctan"},
    {"boxed", "group"},
    {"fbox", "group"},
    {"lg", "log"},
    {"infinity", "infty"},
    {"inf", "infty"},
    {"oo", "infty"},
    {"percent", "%"},
    {"degrees", "degree"},
    {"deg", "degree"},
    {"union", "cup"},
    {"choose", "choose"},
    {"pounds", "pound"},
    {"measuredangle", "angle"},
    {"land", "and"},
    {"wedge", "and"},
    {"lor", "or"},
    {"vee", "or"},
    {"bigcup", "cup"},
};

// Words of plain text that mean what the command of that name does.
constexpr std::string_view kWords[] = {
    "sqrt",   "pi",    "sin",   "cos",  "tan",      "cot",   "sec",   "csc",    "arcsin",  "arccos",
    "arctan", "asin",  "acos",  "atan", "sinh",     "cosh",  "tanh",  "ln",     "log",     "lg",
    "exp",    "abs",   "alpha", "beta", "gamma",    "delta", "theta", "lambda", "mu",      "omega",
    "phi",    "sigma", "inf",   "oo",   "infinity", "and",   "or",    "union",  "degrees", "deg"};

constexpr std::string_view kGreek[] = {
    "alpha", "beta",    "gamma",  "delta", "epsilon", "zeta",  "eta",   "theta",
    "iota",  "kappa",   "lambda", "mu",    "nu",      "xi",    "rho",   "sigma",
    "tau",   "upsilon", "phi",    "chi",   "psi",     "omega", "Gamma", "Delta",
    "Theta", "Lambda",  "Sigma",  "Phi",   "Psi",     "Omega", "ell",   "hbar"};

constexpr std::string_view kTexts[] = {"text", "textbf", "textrm", "textit",    "mbox",
                                       "emph", "texttt", "textsf", "textnormal"};

bool among(const auto& table, std::string_view word) {
  return std::ranges::find(table, word) != std::end(table);
}

bool ascii_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool ascii_digit(char c) { return c >= '0' && c <= '9'; }

std::string plain_latex(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    const bool starts = c >= 0x80 || c == '\\' || c == '^' || c == '{' || c == '*';
    const auto* const found =
        !starts ? std::end(kPhrases) : std::ranges::find_if(kPhrases, [&](const Spelling& phrase) {
          return text.substr(at).starts_with(phrase.from);
        });
    if (found == std::end(kPhrases)) {
      plain += text[at++];
      continue;
    }
    plain += found->to;
    at += found->from.size();
  }
  return plain;
}

class Lexer {
 public:
  explicit Lexer(std::string text)
      : text_(std::move(text)), sole_dollar_(std::ranges::count(text_, '$') == 1) {}

  std::optional<std::vector<Token>> all() {
    while (at_ < text_.size())
      if (!next() || tokens_.size() >= kTokensMax) return std::nullopt;
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool follows(std::string_view what) const {
    return std::string_view(text_).substr(at_).starts_with(what);
  }
  void add(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .spaced = spaced_});
    spaced_ = false;
  }
  void add_text(std::string words) {
    add(TokenKind::kText, std::move(words));
    tokens_.back().marked = true;
  }
  void add_sign(char c) {
    if (c == '(' || c == '[') ++brackets_;
    if (c == ')' || c == ']') --brackets_;
    add(TokenKind::kSign, std::string(1, c));
  }

  bool next() {
    const char c = peek();
    if (c == '$' && sole_dollar_) add(TokenKind::kCommand, "dollar");
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '~' || c == '$') {
      ++at_;
      spaced_ = true;
      return true;
    }
    if (ascii_digit(c) || (c == '.' && ascii_digit(peek(1)))) return take_number();
    if (c == '\\') return take_command();
    if (ascii_letter(c)) return take_word();
    if (c == '.' && at_ + 1 == text_.size()) {  // a full stop
      ++at_;
      return true;
    }
    if (std::string_view("+-*/^_()[]{}|=<>,;:!%'&").find(c) == std::string_view::npos) return false;
    ++at_;
    if ((c == '<' || c == '>' || c == '!') && peek() == '=') {
      ++at_;
      add(TokenKind::kCommand, std::string(1, c) + "=");
      return true;
    }
    add_sign(c);
    return true;
  }

  bool three_digits(std::size_t ahead) const {
    return ascii_digit(peek(ahead)) && ascii_digit(peek(ahead + 1)) &&
           ascii_digit(peek(ahead + 2)) && !ascii_digit(peek(ahead + 3));
  }

  // A comma, or LaTeX's small space, separates thousands where exactly three digits follow it. In
  // brackets a comma separates items.
  bool take_number() {
    std::string digits;
    while (ascii_digit(peek())) digits += text_[at_++];
    for (bool first = true; digits.size() <= 3 || !first; first = false) {
      const std::size_t width = peek() == ',' && brackets_ == 0 ? 1 : follows("\\,") ? 2 : 0;
      if (digits.empty() || width == 0 || !three_digits(width)) break;
      digits += text_.substr(at_ + width, 3);
      at_ += width + 3;
    }
    if (peek() == '.' && (ascii_digit(peek(1)) || peek(1) == '\\' || !digits.empty())) {
      digits += text_[at_++];
      while (ascii_digit(peek())) digits += text_[at_++];
    }
    add(TokenKind::kNumber, std::move(digits));
    return true;
  }

  bool take_command() {
    const char c = peek(1);
    if (!ascii_letter(c)) {
      at_ += 2;
      if (c == '\\') {
        add(TokenKind::kCommand, "\\");
      } else if (c == '{' || c == '}') {
        brackets_ += c == '{' ? 1 : -1;
        add(TokenKind::kCommand, c == '{' ? "set" : "endset");
      } else if (c == '|' || c == '%') {
        add_sign(c);
      } else if (c == '$') {
        add(TokenKind::kCommand, "dollar");
      } else if (std::string_view(",;:! ()[]&").find(c) != std::string_view::npos && c != '\0') {
        spaced_ = true;
      } else {
        return false;
      }
      return true;
    }
    ++at_;
    std::string name;
    while (ascii_letter(peek())) name += text_[at_++];
    if (among(kTexts, name)) return take_text(false);
    if (name == "mathrm" || name == "operatorname") return take_text(true);
    if (name == "mathbb" || name == "Bbb" || name == "mathcal") return take_blackboard();
    if (name == "begin" || name == "end") return take_environment(name);
    if ((name == "left" || name == "right") && peek() == '.') ++at_;
    add_command(name);
    return true;
  }

  void add_command(std::string_view name) {
    const auto* const known = std::ranges::find(kCommands, name, &Spelling::from);
    const std::string_view to = known != std::end(kCommands) ? known->to : name;
    if (to.empty())
      spaced_ = true;
    else if (to.size() == 1 && std::string_view("*/|:[]<>%").find(to) != std::string_view::npos)
      add_sign(to[0]);
    else
      add(among(kGreek, to) ? TokenKind::kLetter : TokenKind::kCommand, std::string(to));
  }

  // The inside of the group in braces that stands here; none if there is none, or it never closes.
  std::optional<std::string> group() {
    while (peek() == ' ') ++at_;
    if (peek() != '{') return std::nullopt;
    int depth = 0;
    for (std::size_t end = at_; end < text_.size(); ++end) {
      if (text_[end] == '{') ++depth;
      if (text_[end] != '}' || --depth > 0) continue;
      std::string inside = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return inside;
    }
    return std::nullopt;
  }

  // \text{…}. What has no letters is read as a formula, and so are names of functions in \mathrm{…}
  // (`upright`).
  bool take_text(bool upright) {
    const auto inside = group();
    if (!inside) return false;
    std::string words(*inside);
    words.erase(0, std::min(words.find_first_not_of(' '), words.size()));
    while (!words.empty() && words.back() == ' ') words.pop_back();
    if (words.empty()) return true;
    const bool formula = std::ranges::none_of(words, ascii_letter) ||
                         words.find('$') != std::string::npos ||
                         (upright && (upright_letter(words) || among(kWords, words)));
    if (!formula) {
      const auto begin = words.find_first_not_of(", "), end = words.find_last_not_of(", ");
      const std::string bare = words.substr(begin, end - begin + 1);
      if (bare == "and" || bare == "or")
        add(TokenKind::kCommand, bare);
      else if (is_percent_word(bare))
        add_sign('%');
      else if (const auto measure = number_with_unit(words))
        return read_instead(*measure);
      else
        add_text(words);
      return true;
    }
    return read_instead(words);
  }

  // Goes on as if `text` stood here.
  bool read_instead(const std::string& text) {
    text_.insert(at_, " " + text + " ");
    return text_.size() <= 4 * kAnswerBytesMax;
  }

  // \text{3.5 hours} as 3.5\text{hours}, where it begins an item; else none.
  std::optional<std::string> number_with_unit(std::string_view words) const {
    static constexpr std::string_view kBefore[] = {",", ";", "=", "(", "[", "set", "and", "or"};
    if (!tokens_.empty() && !among(kBefore, tokens_.back().text)) return std::nullopt;
    const auto length = std::min(words.find_first_not_of("0123456789., /"), words.size());
    const auto number = words.substr(0, length), unit = words.substr(length);
    const bool apart = number.ends_with(' ') || is_unit_word(unit);
    if (number.empty() || !ascii_digit(number[0]) || unit.empty() || !apart) return std::nullopt;
    const auto end = number.find_last_not_of(' ') + 1;
    if (!ascii_letter(unit[0]) || !ascii_digit(number[end - 1])) return std::nullopt;
    if (!is_percent_word(unit) && !read_unit(unit)) return std::nullopt;
    return std::string(number.substr(0, end)) + "\\text{" + std::string(unit) + "}";
  }

  // Whether \mathrm{…} of this is a letter of a formula, and not the unit of a number before it.
  bool upright_letter(const std::string& words) const {
    const bool behind_number = !tokens_.empty() && (tokens_.back().kind == TokenKind::kNumber ||
                                                    tokens_.back().text == "}");
    const bool unit = std::string_view("msghlLNJWV").find(words[0]) != std::string_view::npos;
    return words.size() == 1 && !(behind_number && unit);
  }

  bool take_blackboard() {
    std::string name;
    if (const auto inside = group()) {
      name = *inside;
    } else if (ascii_letter(peek())) {
      name = text_[at_++];
    }
    if (name == "R")
      add(TokenKind::kCommand, "reals");
    else
      add(TokenKind::kLetter, "set " + name);
    return !name.empty();
  }

  bool take_environment(const std::string& name) {
    const auto kind = group();
    if (!kind) return false;
    if (*kind == "array" && name == "begin" && !group()) return false;  // its columns
    static constexpr std::string_view kMatrices[] = {"pmatrix",     "bmatrix", "matrix",
                                                     "smallmatrix", "array",   "Bmatrix"};
    const bool matrix = among(kMatrices, *kind);
    if (!matrix && *kind != "vmatrix") return false;
    brackets_ += name == "begin" ? 1 : -1;
    add(TokenKind::kCommand, name + (matrix ? " matrix" : " determinant"));
    return true;
  }

  // A run of letters: a word that is known, a product of one-letter names, or a word that means
  // nothing in a formula.
  bool take_word() {
    std::string word;
    while (ascii_letter(peek())) word += text_[at_++];
    std::string lower(word);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto closed = [&] {
      return !tokens_.empty() && (tokens_.back().text == ")" || tokens_.back().text == "]");
    };
    if (word == "U" && closed()) {
      add(TokenKind::kCommand, "cup");
    } else if (word.size() == 1) {
      add(TokenKind::kLetter, word);
    } else if (take_percent(word)) {
      add_sign('%');
    } else if (among(kWords, lower)) {
      add_command(lower);
    } else if (is_name_in_capitals(word)) {
      add(TokenKind::kLetter, word);
    } else if (word.size() <= 3 && !is_unit_word(word) && is_product(word)) {
      for (const char c : word) add(TokenKind::kLetter, std::string(1, c));
    } else {
      add(TokenKind::kText, word);
    }
    return true;
  }

  // Whether `word`, which is taken, says percent behind something, perhaps with the word behind it,
  // which is taken then: per cent.
  bool take_percent(const std::string& word) {
    if (tokens_.empty()) return false;
    if (is_percent_word(word)) return true;
    std::size_t end = std::min(text_.find_first_not_of(' ', at_), text_.size());
    const std::size_t begin = end;
    while (end < text_.size() && ascii_letter(text_[end])) ++end;
    if (begin == at_ || !is_percent_word(word + " " + text_.substr(begin, end - begin)))
      return false;
    at_ = end;
    return true;
  }

  // Two to four capitals are points, a segment or digits: AB is not BA.
  static bool is_name_in_capitals(std::string_view word) {
    return word.size() <= 4 && !is_unit_word(word) &&
           std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
  }

  // Whether two or three letters are likelier names side by side than a word. Words have vowels.
  static bool is_product(std::string_view word) {
    static constexpr std::string_view kProse[] = {"is", "Is", "it", "It", "at",  "an",
                                                  "as", "by", "By", "my", "all", "ans"};
    return word.find_first_of("oueOUE") == std::string_view::npos && !among(kProse, word);
  }

  std::string text_;
  const bool sole_dollar_;  // a $ without another one is no delimiter of a formula
  std::size_t at_ = 0;
  int brackets_ = 0;  // open brackets of tuples, sets and matrices
  bool spaced_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::optional<std::vector<Token>> tokens_of(std::string_view text) {
  if (text.size() > kAnswerBytesMax) return std::nullopt;
  return Lexer(plain_latex(text)).all();
}

}  // namespace tandem::grade
