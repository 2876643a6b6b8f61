// Data sets write the same tests in many forms, and a test that is misread pays for wrong programs
// or punishes right ones. So only the forms of the header are read, and any other is an error that
// names what was found.
#include "actors/reward/code_tests.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace tandem::reward {
namespace {

using nlohmann::json;

constexpr std::string_view kFence = "```";
constexpr double kTolerance = 1e-6;
constexpr std::array<const char*, 5> kColumns{"tests", "test_cases", "input_output", "test_list",
                                              "test"};

struct Block {
  std::string_view mark, text;
};

// The fenced blocks, in their order. A fence begins its line, white space aside.
std::vector<Block> blocks_in(std::string_view text) {
  std::vector<Block> blocks;
  std::optional<Block> open;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with(kFence)) {
      if (open) {
        open->text = text.substr(begin, at - begin);
        blocks.push_back(*open);
        open.reset();
      } else {
        line.remove_prefix(kFence.size());
        open = Block{line.substr(0, line.find_first_of(" \t\r{")), {}};
        begin = std::min(end + 1, text.size());
      }
    }
    at = end + 1;
  }
  if (open) blocks.push_back({open->mark, text.substr(begin)});
  return blocks;
}

std::optional<CodeLanguage> language_of(std::string_view mark) {
  std::string lower(mark);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* one : {"python", "py", "python3"})
    if (lower == one) return CodeLanguage::kPython;
  for (const char* one : {"cpp", "c++", "cc", "cxx"})
    if (lower == one) return CodeLanguage::kCpp;
  return std::nullopt;
}

CodeLanguage guessed(std::string_view program) {
  return program.find("#include") != std::string_view::npos ? CodeLanguage::kCpp
                                                            : CodeLanguage::kPython;
}

Error malformed(const std::string& what) {
  return {ErrorCode::kInvalid, "the record's tests cannot be read: " + what};
}

// A text of a test: a list of texts is its lines.
std::optional<std::string> text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  std::string lines;
  for (const json& line : value) {
    if (!line.is_string()) return std::nullopt;
    lines += line.get_ref<const std::string&>() + "\n";
  }
  return lines;
}

// The arguments of a call: a list, or a text with the JSON of one argument in each line.
std::optional<json> arguments_of(const json& value) {
  if (value.is_array()) return value;
  if (!value.is_string()) return std::nullopt;
  json arguments = json::array();
  const std::string& text = value.get_ref<const std::string&>();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const json one = parse_json(std::string_view(text).substr(at, end - at));
    if (one.is_discarded()) return std::nullopt;
    arguments.push_back(one);
    at = end + 1;
  }
  return arguments;
}

// The value that a call must return. A record has it as JSON, or as a text that holds JSON.
json returned_of(const json& value) {
  if (!value.is_string()) return value;
  json inner = parse_json(value.get_ref<const std::string&>());
  return inner.is_discarded() ? value : inner;
}

Result<CodeTests> pairs(const json& inputs, const json& outputs, const std::string& function) {
  if (!inputs.is_array() || !outputs.is_array() || inputs.size() != outputs.size())
    return malformed("`inputs` and `outputs` are not lists of one length");
  CodeTests tests{.kind = function.empty() ? CaseKind::kOutput : CaseKind::kCall,
                  .function = function};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (tests.kind == CaseKind::kCall) {
      const auto arguments = arguments_of(inputs[i]);
      if (!arguments) return malformed("an input of `" + function + "` is no list of arguments");
      tests.cases.push_back({dump_json(*arguments), dump_json(returned_of(outputs[i]))});
      continue;
    }
    const auto input = text_of(inputs[i]), output = text_of(outputs[i]);
    if (!input || !output) return malformed("an input or output is neither text nor lines");
    tests.cases.push_back({*input, *output});
  }
  if (tests.cases.empty()) return malformed("there are none");
  return tests;
}

Result<CodeTests> asserts(const json& list, const std::string& before) {
  CodeTests tests{.kind = CaseKind::kAssert, .before = before};
  if (!list.is_array()) return malformed("the asserts are no list");
  for (const json& one : list) {
    if (!one.is_string()) return malformed("an assert is no text");
    tests.cases.push_back({one.get_ref<const std::string&>() + "\n", ""});
  }
  if (tests.cases.empty()) return malformed("there are none");
  return tests;
}

std::string member_text(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

Result<CodeTests> of_object(const json& object) {
  const std::string function = member_text(object, "fn_name");
  if (object.contains("inputs") && object.contains("outputs"))
    return pairs(object["inputs"], object["outputs"], function);
  if (object.contains("assert_case")) return asserts(object["assert_case"], "");
  if (object.contains("test_list")) {
    std::string before = member_text(object, "test_setup_code");
    if (!before.empty()) before += "\n";
    return asserts(object["test_list"], before);
  }
  const std::string test = member_text(object, "test");
  const std::string entry = member_text(object, "entry_point");
  if (!test.empty() && has_main(test)) return asserts(json::array({test}), "");
  if (!test.empty() && !entry.empty())
    return asserts(json::array({"check(" + entry + ")"}), test + "\n");
  return malformed(
      "the object has neither `inputs` and `outputs`, nor `assert_case`, nor "
      "`test_list`, nor `test` and `entry_point`");
}

// [{"input": …, "output": …}, …] as two lists.
Result<CodeTests> of_pairs(const json& list) {
  json inputs = json::array(), outputs = json::array();
  for (const json& one : list) {
    const bool short_names = one.is_object() && one.contains("input") && one.contains("output");
    const bool streams = one.is_object() && one.contains("stdin") && one.contains("stdout");
    if (!short_names && !streams)
      return malformed("a case has neither `input` and `output`, nor `stdin` and `stdout`");
    inputs.push_back(one[short_names ? "input" : "stdin"]);
    outputs.push_back(one[short_names ? "output" : "stdout"]);
  }
  return pairs(inputs, outputs, "");
}

Result<CodeTests> of_value(const json& value) {
  if (value.is_object()) return of_object(value);
  if (value.is_array() && !value.empty())
    return value[0].is_string() ? asserts(value, "") : of_pairs(value);
  if (value.is_string()) {
    const json inner = parse_json(value.get_ref<const std::string&>());
    if (inner.is_object() || inner.is_array()) return of_value(inner);
    const std::string& text = value.get_ref<const std::string&>();
    if (text.find("assert") == std::string::npos && !has_main(text))
      return malformed("the text is no JSON, and asserts nothing");
    return asserts(json::array({value}), "");
  }
  return malformed(value.is_array() ? "there are none"
                                    : "they are " + std::string(value.type_name()));
}

constexpr std::string_view kLineEnd = "\n", kWhiteSpace = " \t\r\n\f\v";

// Empty lines are parts, empty words are not.
std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    if (end > at || separators == kLineEnd) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Without white space at the ends of lines, and without empty lines at the end.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = split(text, kLineEnd);
  for (std::string_view& line : lines) line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// The language that a text of asserts must be of; nullopt: it may be of either.
std::optional<CodeLanguage> language_of_asserts(std::string_view text) {
  std::optional<CodeLanguage> language;
  if (has_main(text)) language = CodeLanguage::kCpp;
  for (std::string_view line : lines_of(text)) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("def ")) return CodeLanguage::kPython;
    if (line.starts_with("assert ") && line[line.find_first_not_of(" \t", 6)] != '(')
      return CodeLanguage::kPython;
    if (line.starts_with("#include") || line.ends_with(';')) language = CodeLanguage::kCpp;
  }
  return language;
}

std::optional<CodeLanguage> language_of_tests(const CodeTests& tests) {
  if (tests.kind == CaseKind::kCall) return CodeLanguage::kPython;
  if (tests.kind == CaseKind::kOutput) return std::nullopt;
  std::string all = tests.before;
  for (const CodeCase& one : tests.cases) all += one.input;
  return language_of_asserts(all);
}

bool close_to(double expected, double value) {
  return std::abs(expected - value) <= kTolerance * std::max(1.0, std::abs(expected));
}

std::optional<double> real_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// A whole number must be written as it is expected.
bool same_word(std::string_view expected, std::string_view word) {
  if (expected == word) return true;
  if (expected.find_first_of(".eE") == std::string_view::npos) return false;
  const auto wanted = real_number(expected), value = real_number(word);
  return wanted && value && close_to(*wanted, *value);
}

bool equal_json(const json& expected, const json& value) {
  if (expected.is_number() && value.is_number()) {
    const bool whole = expected.is_number_integer() && value.is_number_integer();
    return whole ? expected == value : close_to(expected.get<double>(), value.get<double>());
  }
  if (expected.is_array() && value.is_array())
    return std::ranges::equal(expected, value, equal_json);
  if (expected.is_object() && value.is_object()) {
    for (const auto& [name, wanted] : expected.items())
      if (!value.contains(name) || !equal_json(wanted, value[name])) return false;
    return expected.size() == value.size();
  }
  return expected == value;
}

}  // namespace

CodeProgram program_in(std::string_view completion, CodeLanguage wanted) {
  const std::vector<Block> blocks = blocks_in(completion);
  const auto fits = [&](const Block& block) {
    const auto language = language_of(block.mark);
    return language ? wanted == CodeLanguage::kAuto || *language == wanted : block.mark.empty();
  };
  Block chosen{"", completion};
  if (!blocks.empty()) {
    const auto last = std::find_if(blocks.rbegin(), blocks.rend(), fits);
    chosen = last != blocks.rend() ? *last : blocks.back();
  }
  if (wanted != CodeLanguage::kAuto) return {wanted, std::string(chosen.text)};
  const auto marked = language_of(chosen.mark);
  return {marked ? *marked : guessed(chosen.text), std::string(chosen.text)};
}

Result<CodeTests> tests_of(const json& answer, const json& record) {
  if (!answer.is_null()) return of_value(answer);
  if (record.is_object() && record.contains("test") && record.contains("entry_point"))
    return of_object(record);
  for (const char* column : kColumns)
    if (record.is_object() && record.contains(column) && !record[column].is_null())
      return of_value(column == std::string_view("test_list") ? record : record[column]);
  return malformed("it has no answer, and no column `tests`");
}

Result<CodeLanguage> language_for(const CodeTests& tests, CodeLanguage wanted) {
  const auto language = language_of_tests(tests);
  if (wanted == CodeLanguage::kAuto && tests.kind != CaseKind::kOutput)
    return language.value_or(CodeLanguage::kPython);
  if (wanted == CodeLanguage::kAuto || !language || *language == wanted) return wanted;
  const std::string by = tests.kind == CaseKind::kCall ? " (they have an `fn_name`)" : "";
  const char* const name = *language == CodeLanguage::kCpp ? "C++" : "Python";
  return Error{ErrorCode::kInvalid, std::string("the record's tests are of ") + name + by +
                                        ", and `reward.language` is " +
                                        std::string(spelling(wanted))};
}

bool has_main(std::string_view text) {
  constexpr std::string_view kName = "main", kSpace = " \t\r\n";
  for (auto at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    const auto next = text.find_first_not_of(kSpace, at + kName.size());
    const std::string_view before = text.substr(0, at);
    const auto end = before.find_last_not_of(kSpace);
    if (next == std::string_view::npos || text[next] != '(' || end + 1 == at) continue;
    const std::string_view type = before.substr(0, end + 1);
    for (const char* one : {"int", "auto", "signed", "void"})
      if (type.ends_with(one)) return true;
  }
  return false;
}

bool same_output(std::string_view expected, std::string_view output) {
  if (lines_of(expected) == lines_of(output)) return true;
  return std::ranges::equal(split(expected, kWhiteSpace), split(output, kWhiteSpace), same_word);
}

bool same_value(const json& expected, const json& value) {
  if (equal_json(expected, value)) return true;
  return expected.is_array() && expected.size() == 1 && equal_json(expected[0], value);
}

}  // namespace tandem::reward
