// Works on the words of the script: a call is a name with an opening bracket behind it, and ends at
// the bracket that closes it. An argument that is no literal is skipped as text to the next comma
// of the call, so that nothing of Python's grammar has to be known. Rejected: to run the script,
// or a Python that reads it, which need not be there.
#include "actors/translate/read_python.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "actors/translate/python_tokens.h"
#include "runtime/base/text.h"

namespace tandem::translate {
namespace {

using nlohmann::json;
using TokenKind = PythonToken::Kind;

constexpr int kDepthMax = 32;            // of lists within lists
constexpr std::size_t kShownBytes = 60;  // of an expression in a note

struct Argument {
  std::string name;           // empty: it is given by its place
  std::optional<json> value;  // nullopt: no literal
  std::string text;           // as it is written
  int line = 1;
};

std::optional<json> number_in(std::string text) {
  std::erase(text, '_');
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0;
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return {};  // 0x10, 3j, too large
  return number;
}

std::string shortened(const std::string& text) {
  return text.size() <= kShownBytes ? text : cut_utf8(text, kShownBytes) + "…";
}

class PythonScript {
 public:
  PythonScript(std::string_view script, std::vector<PythonToken> tokens)
      : script_(script), tokens_(std::move(tokens)) {
    find_constants();
  }

  // The places behind the opening brackets of the calls of `function`.
  std::vector<std::size_t> calls_of(std::string_view function) const {
    std::vector<std::size_t> calls;
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      const bool defined = i > 0 && (is(i - 1, "class") || is(i - 1, "def"));
      if (is(i, function) && is(i + 1, "(") && !defined) calls.push_back(i + 2);
    }
    return calls;
  }

  std::vector<Argument> arguments(std::size_t at) const {
    std::vector<Argument> all;
    while (at < tokens_.size() && !closes(at)) {
      Argument argument;
      argument.line = tokens_[at].line;
      if (tokens_[at].kind == TokenKind::kName && is(at + 1, "=") && !is(at + 2, "=")) {
        argument.name = tokens_[at].text;
        at += 2;
      }
      const std::size_t begin = at;
      argument.value = value(at, 0);
      if (!ends_argument(at)) argument.value = {};
      if (!argument.value) at = begin;
      while (!ends_argument(at)) at = behind(at);
      argument.text = text_between(begin, at);
      all.push_back(std::move(argument));
      if (is(at, ",")) ++at;
    }
    return all;
  }

  // Whether `name` is a function that the script defines or imports, as far as can be seen.
  bool is_function(std::string_view name) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (is(i, name) && is(i + 1, "=") && !is(i + 2, "=") && tokens_[i].begins_line) return false;
    return true;
  }

 private:
  bool is(std::size_t at, std::string_view text) const {
    return at < tokens_.size() && tokens_[at].text == text &&
           (tokens_[at].kind == TokenKind::kName || tokens_[at].kind == TokenKind::kSign);
  }
  bool opens(std::size_t at) const { return is(at, "(") || is(at, "[") || is(at, "{"); }
  bool closes(std::size_t at) const { return is(at, ")") || is(at, "]") || is(at, "}"); }
  bool ends_argument(std::size_t at) const {
    return at >= tokens_.size() || is(at, ",") || closes(at);
  }

  // The place behind a token, or behind all that a bracket holds.
  std::size_t behind(std::size_t at) const {
    std::size_t depth = 0;
    do {
      depth += opens(at);
      depth -= closes(at) && depth > 0;
      ++at;
    } while (depth > 0 && at < tokens_.size());
    return at;
  }

  std::string text_between(std::size_t begin, std::size_t end) const {
    if (begin >= end || begin >= tokens_.size()) return "";
    const std::size_t from = tokens_[begin].begin, to = tokens_[end - 1].end;
    return std::string(script_.substr(from, to - from));
  }

  // The literal at `at`, which is moved behind it.
  std::optional<json> value(std::size_t& at, int depth) const {
    if (at >= tokens_.size() || depth > kDepthMax) return {};
    const PythonToken& token = tokens_[at];
    switch (token.kind) {
      case TokenKind::kOther:
        return {};
      case TokenKind::kNumber:
        ++at;
        return number_in(token.text);
      case TokenKind::kText: {
        std::string text;
        for (; at < tokens_.size() && tokens_[at].kind == TokenKind::kText; ++at)
          text += tokens_[at].text;
        return text;
      }
      case TokenKind::kName:
        ++at;
        if (token.text == "True" || token.text == "False") return token.text == "True";
        if (token.text == "None") return json();
        return constant(token.text);
      case TokenKind::kSign:
        break;
    }
    if (token.text == "-" || token.text == "+") return signed_number(at);
    if (token.text == "[" || token.text == "(") return list(at, depth);
    return token.text == "{" ? map(at, depth) : std::nullopt;
  }

  std::optional<json> constant(const std::string& name) const {
    const auto found = constants_.find(name);
    return found == constants_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<json> signed_number(std::size_t& at) const {
    const bool minus = is(at++, "-");
    if (at >= tokens_.size() || tokens_[at].kind != TokenKind::kNumber) return {};
    const auto number = number_in(tokens_[at++].text);
    if (!number || !minus) return number;
    return number->is_number_integer() ? json(-number->get<std::int64_t>())
                                       : json(-number->get<double>());
  }

  // A list or a tuple. Brackets around one value are no tuple.
  std::optional<json> list(std::size_t& at, int depth) const {
    const bool round = is(at++, "(");
    const std::string_view end = round ? ")" : "]";
    json items = json::array();
    bool comma = false;
    while (!is(at, end)) {
      auto item = value(at, depth + 1);
      if (!item) return {};
      items.push_back(*std::move(item));
      if (!is(at, ",")) break;
      comma = true;
      ++at;
    }
    if (!is(at, end)) return {};
    ++at;
    return round && !comma && items.size() == 1 ? json(items[0]) : items;
  }

  std::optional<json> map(std::size_t& at, int depth) const {
    json members = json::object();
    for (++at; !is(at, "}");) {
      const auto key = value(at, depth + 1);
      if (!key || !key->is_string() || !is(at, ":")) return {};
      auto member = value(++at, depth + 1);
      if (!member) return {};
      members[key->get<std::string>()] = *std::move(member);
      if (!is(at, ",")) break;
      ++at;
    }
    if (!is(at, "}")) return {};
    ++at;
    return members;
  }

  // Whether the token at `at` is the first of a statement, as far as lines and `;` tell.
  bool begins_statement(std::size_t at) const {
    if (at == 0 || is(at - 1, ";")) return true;
    const std::size_t last = tokens_[at - 1].end;
    const std::string_view space = script_.substr(last, tokens_[at].begin - last);
    const bool continued = space.find('\\') != space.npos && space.find('#') == space.npos;
    return space.find('\n') != space.npos && !continued;
  }

  // Whether `=` at `at` gives a value: it is no part of ==, <=, >= or !=.
  bool assigns(std::size_t at) const {
    if (!is(at, "=") || is(at + 1, "=") || at == 0) return false;
    return !is(at - 1, "=") && !is(at - 1, "<") && !is(at - 1, ">") && !is(at - 1, "!");
  }

  // The place behind the statement that `at` is in.
  std::size_t statement_end(std::size_t at) const {
    do at = behind(at);
    while (at < tokens_.size() && !is(at, ";") && !begins_statement(at));
    return at;
  }

  // Whether the bracket at `at` may hold targets: it is neither of a call nor of an index.
  bool may_hold_targets(std::size_t at) const {
    if (!is(at, "(") && !is(at, "[")) return false;
    return begins_statement(at) || (tokens_[at - 1].kind == TokenKind::kSign && !closes(at - 1));
  }

  // The place behind all names that the word or bracket at `at` may bind; `at` where it binds none.
  std::size_t targets_end(std::size_t at, bool within_brackets) const {
    if (is(at, "def")) {  // def f[T](a, b=1)
      const std::size_t open = is(at + 2, "[") ? behind(at + 2) : at + 2;
      return is(open, "(") ? behind(open) : at;
    }
    if (is(at, "as")) return at + 1 < tokens_.size() ? behind(at + 1) : at;
    if (is(at, "import") || (is(at, "case") && begins_statement(at))) return statement_end(at);
    if (const bool loop = is(at, "for"); loop || is(at, "lambda")) {
      std::size_t end = at + 1;
      while (end < tokens_.size() && !is(end, loop ? "in" : ":")) end = behind(end);
      return end;
    }
    if (within_brackets || !may_hold_targets(at)) return at;
    // `(a, b) = …`, and `(a, b), c = …`
    const std::size_t end = behind(at);
    for (std::size_t i = end; i < tokens_.size() && !begins_statement(i); i = behind(i)) {
      if (assigns(i)) return end;
      if (is(i, ";") || closes(i)) break;
    }
    return at;
  }

  // Whether the name at `at` may get a value there, in any form. May be true where it does not.
  bool may_bind(std::size_t at, bool in_brackets, bool target) const {
    if (target || (is(at + 1, ":") && is(at + 2, "="))) return true;
    if (at > 0)
      for (const char* word : {"global", "nonlocal", "def", "class"})
        if (is(at - 1, word)) return true;
    if (in_brackets || at + 1 >= tokens_.size() || tokens_[at + 1].kind != TokenKind::kSign)
      return false;
    if (is(at + 1, "=")) return !is(at + 2, "=");
    // `name, other = …`, `name: int = 1`, `name += 1`, `name **= 2`
    return is(at + 1, ",") || is(at + 1, ":") || is(at + 2, "=") || is(at + 3, "=");
  }

  void find_constants() {
    std::map<std::string, std::size_t> places;
    std::map<std::string, int, std::less<>> uses;  // with those that give it a value
    std::size_t depth = 0, targets = 0, unknown = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      depth += opens(i);
      depth -= closes(i) && depth > 0;
      if (i >= targets) targets = targets_end(i, depth > 1);
      if (is(i, "import") && is(i + 1, "*")) unknown = i;
      if (tokens_[i].kind != TokenKind::kName) continue;
      const std::string& name = tokens_[i].text;
      const bool keyword = depth > 0 && is(i + 1, "=") && !is(i + 2, "=");
      uses[name] += !keyword;
      if (may_bind(i, depth > 0, i < targets)) ++bindings_[name];
      if (depth == 0 && tokens_[i].begins_line && is(i + 1, "=") && !is(i + 2, "="))
        places[name] = i + 2;
    }
    for (const auto& [name, at] : places) {
      // `from m import *` below it may give it another value.
      if (bindings_[name] != 1 || at < unknown) continue;
      std::size_t end = at;
      auto literal = value(end, 0);
      if (!literal || (literal->is_structured() && uses[name] > 2)) continue;
      // The statement ends with its line.
      const std::size_t last = tokens_[end - 1].end;
      const bool whole =
          end >= tokens_.size() ||
          (tokens_[end].begins_line &&
           script_.substr(last, tokens_[end].begin - last).find('\\') == std::string_view::npos);
      if (whole) constants_.emplace(name, *std::move(literal));
    }
  }

  std::string_view script_;
  std::vector<PythonToken> tokens_;
  std::map<std::string, int, std::less<>> bindings_;  // how often each name may get a value
  std::map<std::string, json> constants_;
};

class Reading {
 public:
  Reading(const PythonScript& script, const std::string& origin)
      : script_(script), origin_(origin), config_(origin) {}

  Result<ForeignConfig> read() && {
    const auto configs = script_.calls_of("GRPOConfig"), trainers = script_.calls_of("GRPOTrainer");
    if (configs.size() != 1)
      return Error{ErrorCode::kInvalid,
                   "the script calls `GRPOConfig` " + std::to_string(configs.size()) +
                       " times; its arguments are read where there is one call",
                   origin_,
                   "give the YAML file of the run, or a shell script with its flags "
                   "(`trl grpo --config recipe.yaml`, `accelerate launch train.py --beta 0.04`); "
                   "for one call write `GRPOConfig(NAME=VALUE, …)` into a file of its own"};
    config_.program = "GRPOConfig";
    for (Argument& argument : script_.arguments(configs.front())) {
      if (argument.name.empty() && argument.value) argument.name = "output_dir";
      take(argument, argument.name);
    }
    if (trainers.size() == 1) take_trainer(script_.arguments(trainers.front()));
    take_data(script_.calls_of("load_dataset"));
    config_.note(
        {"a script is not run: of it the arguments of GRPOConfig, GRPOTrainer and load_dataset are "
         "read; what else it does, as to its records, is not known",
         origin_});
    return std::move(config_);
  }

 private:
  std::string place(const Argument& argument) const {
    return origin_ + ":" + std::to_string(argument.line);
  }

  void not_read(const Argument& argument) {
    const std::string name = argument.name + (argument.name.empty() ? "" : "=");
    config_.note({"`" + name + shortened(argument.text) + "` is not read", place(argument)});
  }

  // Sets `key`, or notes that its value is computed.
  void take(const Argument& argument, const std::string& key) {
    if (key.empty()) return not_read(argument);
    if (argument.value) return set(key, *argument.value, argument);
    config_.note(
        {"`" + shortened(argument.text) + "` is computed by the script", place(argument), key});
  }

  void set(const std::string& key, const json& value, const Argument& argument) {
    if (!value.is_object() || value.empty()) return config_.set({key, value, place(argument)});
    for (const auto& [name, member] : value.items()) set(key + "." + name, member, argument);
  }

  void take_trainer(const std::vector<Argument>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      const std::string name = !argument.name.empty() ? argument.name
                               : i == 0               ? "model"
                               : i == 1               ? "reward_funcs"
                                                      : "";
      const bool none = argument.value && argument.value->is_null();
      if (none || name == "args" || name == "train_dataset") continue;
      if (name == "model")
        take(argument, "model_name_or_path");
      else if (name == "reward_funcs")
        take_rewards(argument);
      else if (name == "peft_config")
        config_.set({"use_peft", true, place(argument)});
      else
        not_read(argument);
    }
  }

  // Functions are named, alone or in a list: `[accuracy_reward, rewards.length]`. Names of TRL's
  // own rewards are those of its functions.
  void take_rewards(const Argument& argument) {
    std::vector<std::string> names(1);
    for (const char c : argument.text) {
      const bool word = c == '_' || std::isalnum(static_cast<unsigned char>(c));
      if (word) names.back() += c;
      if (c == '.') names.back().clear();  // the module's name
      if (c == ',') names.emplace_back();
      if (!word && std::string_view("[.,] \n\t\r").find(c) == std::string_view::npos)
        return take(argument, "reward_funcs");
    }
    std::erase(names, "");
    if (names.size() == 1 && !argument.text.starts_with('[') && !script_.is_function(names[0]))
      return take(argument, "reward_funcs");
    config_.set({"reward_funcs", names, place(argument)});
  }

  void take_data(const std::vector<std::size_t>& calls) {
    if (calls.size() > 1)
      config_.note({"the script loads " + std::to_string(calls.size()) + " data sets", origin_,
                    "dataset_name"});
    if (calls.size() != 1) return;
    const std::vector<Argument> arguments = script_.arguments(calls.front());
    const auto named = [&](std::string_view name) {
      return std::ranges::find(arguments, name, &Argument::name);
    };
    const auto files = named("data_files");
    if (files != arguments.end()) return take(*files, "dataset_name");
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      if (argument.name == "path" || (argument.name.empty() && i == 0))
        take(argument, "dataset_name");
      else if (argument.name == "name" || (argument.name.empty() && i == 1))
        take(argument, "dataset_config");
      else if (argument.name == "split")
        take(argument, "dataset_train_split");
      else
        not_read(argument);
    }
  }

  const PythonScript& script_;
  const std::string& origin_;
  ForeignConfig config_;
};

}  // namespace

Result<ForeignConfig> read_python(std::string_view script, const std::string& origin) {
  auto tokens = python_tokens(script, origin);
  if (!tokens) return tokens.error();
  return Reading(PythonScript(script, *std::move(tokens)), origin).read();
}

}  // namespace tandem::translate
