// One visitor (Assign) with an overload per type of field, so that a key's row decides how its node
// is read. yaml-cpp gives every scalar as text and tells quoted ones from plain ones by the tag:
// "!" and "?". Numbers are therefore parsed here, strictly: `0x10`, `1_000`, `yes` and `1e3` for an
// integer are errors, where a lenient reader would guess.
//
// Every error has the type that is expected, the value that was found, its place and, where there
// is a likely meaning, the text that the user should write instead.
#include "actors/job/yaml_value.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/job/key_hints.h"
#include "actors/job/key_texts.h"
#include "actors/job/print_job.h"
#include "actors/job/yaml_json.h"
#include "actors/job/yaml_merge.h"
#include "runtime/base/home_path.h"

namespace tandem::job {
namespace {

namespace fs = std::filesystem;

// The words that a shell would make of `line`, as a list, for the help of a command that was given
// as one string. "python3 reward.py" gives "[python3, reward.py]"; quotes hold words together.
std::string argv_text(std::string_view line) {
  std::vector<std::string> words;
  char quote = 0;
  bool in_word = false;
  for (const char c : line) {
    const bool space = quote == 0 && std::isspace(static_cast<unsigned char>(c));
    if (!space && !std::exchange(in_word, true)) words.emplace_back();
    if (space)
      in_word = false;
    else if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    else
      words.back() += c;
  }
  return print_value(FieldRef(&words));
}

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15
             ? std::to_string(static_cast<std::int64_t>(value))
             : print_value(FieldRef(&value));
}

// A program's name, FILE.py:FUNCTION or MODULE:FUNCTION as an absolute path, where it has a slash
// or lies below `base`; else as it is.
std::string placed(const std::string& text, const fs::path& base) {
  const fs::path whole = (base / text).lexically_normal();
  if (text.find('/') != text.npos) return whole.string();
  const std::string place = text.substr(0, text.rfind(':'));
  if (place.size() == text.size()) return text;
  std::string module = place;
  std::ranges::replace(module, '.', '/');
  std::error_code ignored;
  const bool beside = fs::exists(base / place, ignored) ||
                      fs::exists(base / (module + ".py"), ignored) ||
                      fs::exists(base / module / "__init__.py", ignored);
  return beside ? whole.string() : text;
}

// Reads `node` into a field, on behalf of `key`. An engaged ValueError is the failure.
struct Assign {
  const Key& key;
  const YAML::Node& node;
  const fs::path& base;
  using Failure = std::optional<ValueError>;

  std::string name() const { return "`" + std::string(key.path) + "`"; }

  Failure wrong_type(const YAML::Node& at, const std::string& wanted, std::string help) const {
    return ValueError{name() + " expects " + wanted + ", found " + describe(at), std::move(help),
                      at.Mark()};
  }

  // Help for a list of values, with commas, of a key that has one value.
  std::string sweep_help(const YAML::Node& at) const {
    if (!at.is(node) || !is_plain(at) || at.Scalar().find(',') == std::string::npos) return "";
    return "`tandem submit JOB.yaml --sweep " + std::string(key.path) + "=" + at.Scalar() +
           "` makes a run for each of these values";
  }
  std::string number_help(const YAML::Node& at) const {
    return at.IsScalar() && !is_plain(at) ? "write it without quotes" : sweep_help(at);
  }

  // Says why a value that looks as if it were in range is not (JT-2).
  std::string rounding_text(double value) const {
    Range exact = key.range;
    exact.as_float = false;
    if (!std::isfinite(value) || !exact.contains(value)) return "";
    if (std::abs(value) > double{std::numeric_limits<float>::max()})
      return ", more than a 32-bit float can hold";
    return ", which is " + number_text(double{static_cast<float>(value)}) + " as a 32-bit float";
  }

  Failure check_range(double value, const std::string& written, const YAML::Node& at) const {
    // A value for later versions within the range is refused by name; outside the range it is a
    // mistake.
    if (key.later_above && value > *key.later_above && key.range.contains(value))
      return ValueError{name() + " above " + number_text(*key.later_above) +
                            " is not in this version, found " + written,
                        "set it to " + number_text(*key.later_above) + ", or leave it out",
                        at.Mark()};
    if (std::isfinite(value) && key.range.contains(value)) return {};
    const std::string allowed = range_text(key);
    return ValueError{name() + " is out of range: " + written + rounding_text(value),
                      key.range.bounded() ? "allowed: " + allowed : "it must be a finite number",
                      at.Mark()};
  }

  Failure read(std::int64_t& value, const YAML::Node& at) const {
    const auto parsed = is_plain(at) ? parse_integer(at.Scalar()) : std::nullopt;
    if (!parsed) return wrong_type(at, "an integer", number_help(at));
    value = *parsed;
    return check_range(static_cast<double>(value), at.Scalar(), at);
  }

  Failure read(double& value, const YAML::Node& at) const {
    // .inf and .nan are numbers of YAML and of no range: NAN makes check_range() refuse them.
    if (is_plain(at) && is_special_number(at.Scalar())) return check_range(NAN, at.Scalar(), at);
    const auto parsed = is_plain(at) ? parse_double(at.Scalar()) : std::nullopt;
    if (!parsed) return wrong_type(at, "a number", number_help(at));
    value = *parsed;
    return check_range(value, at.Scalar(), at);
  }

  Failure read(std::string& value, const YAML::Node& at) const {
    if (!at.IsScalar()) return wrong_type(at, "a string", "");
    // A plain number or truth value is not a string; quotes say that one is meant.
    if (is_plain(at) && (looks_like_number(at.Scalar()) || parse_bool(at.Scalar())))
      return wrong_type(at, "a string", "put it in quotes: \"" + at.Scalar() + "\"");
    value = at.Scalar();
    return {};
  }

  Failure read(fs::path& value, const YAML::Node& at) const {
    std::string text;
    if (Failure failure = read(text, at)) return failure;
    if (text.empty()) return wrong_type(at, "a path", "name a file or a folder");
    value = (base / with_home(text)).lexically_normal();
    return {};
  }

  // A single text is read as a list with that one text.
  template <class T>
  Failure read_texts(std::vector<T>& list) const {
    const bool looks_like_several = is_plain(node) && node.Scalar().find(',') != std::string::npos;
    if (!node.IsScalar() || looks_like_several) return read_list(list);
    list.clear();
    return read(list.emplace_back(), node);
  }

  template <class T>
  Failure read_list(T& list) const {
    if (!node.IsSequence())
      return wrong_type(node, "a " + type_text(key),
                        node.IsScalar() ? "put it in brackets: [" + node.Scalar() + "]" : "");
    list.clear();
    for (const YAML::Node& item : node) {
      if (Failure failure = read(list.emplace_back(), item)) return failure;
    }
    return {};
  }

  Failure operator()(bool* value) const {
    const auto parsed = is_plain(node) ? parse_bool(node.Scalar()) : std::nullopt;
    if (!parsed) return wrong_type(node, "true or false", sweep_help(node));
    *value = *parsed;
    return {};
  }
  Failure operator()(std::int64_t* value) const { return read(*value, node); }
  Failure operator()(double* value) const { return read(*value, node); }
  Failure operator()(std::string* value) const { return read(*value, node); }
  Failure operator()(fs::path* value) const { return read(*value, node); }
  Failure operator()(std::vector<std::int64_t>* value) const { return read_list(*value); }
  Failure operator()(std::vector<std::string>* value) const { return read_texts(*value); }
  Failure operator()(std::vector<fs::path>* value) const { return read_texts(*value); }

  Failure operator()(std::array<double, 2>* value) const {
    std::vector<double> list;
    if (Failure failure = read_list(list)) return failure;
    if (list.size() != value->size())
      return ValueError{name() + " expects two numbers, found " + std::to_string(list.size()),
                        "as in [0.9, 0.95]", node.Mark()};
    std::ranges::copy(list, value->begin());
    return {};
  }

  template <class T>
  Failure operator()(std::optional<T>* value) const {
    value->reset();
    if (node.IsNull()) return {};
    return (*this)(&value->emplace());
  }

  // Of an argv, a program with a slash and an argument that is a regular file below `base` become
  // absolute paths; other words stay as written.
  Failure operator()(std::optional<std::vector<std::string>>* value) const {
    value->reset();
    if (node.IsNull()) return {};
    if (!key.argv) return read_texts(value->emplace());
    if (node.IsScalar())
      return wrong_type(node, "a " + type_text(key),
                        std::string(last_part(section_of(key.path))) + "." +
                            std::string(last_part(key.path)) + ": " + argv_text(node.Scalar()));
    if (Failure failure = read_list(value->emplace())) return failure;
    for (std::size_t i = 0; i < (*value)->size(); ++i) {
      std::string& word = (**value)[i];
      word = with_home(word);
      const fs::path file = (base / word).lexically_normal();
      std::error_code ignored;
      const bool is_path =
          i == 0 ? word.find('/') != word.npos : fs::is_regular_file(file, ignored);
      if (is_path) word = file.string();
    }
    return {};
  }

  Failure operator()(PlacedName* value) const {
    if (Failure failure = read(value->text, node)) return failure;
    if (value->text.empty()) return wrong_type(node, "a name", "");
    value->text = placed(with_home(value->text), base);
    return {};
  }

  template <class T>
  Failure read_map(std::map<std::string, T>& map, const char* example) const {
    if (!node.IsMap()) return wrong_type(node, "a " + type_text(key), example);
    map.clear();
    const auto members = members_of(node);
    if (const auto* wrong = std::get_if<ValueError>(&members)) return *wrong;
    for (const auto& [first, second] : std::get<std::vector<YamlMember>>(members)) {
      std::string member;
      T value{};
      if (Failure failure = read(member, first)) return failure;
      if (Failure failure = read(value, second)) return failure;
      if (!map.emplace(std::move(member), std::move(value)).second)
        return ValueError{name() + " has `" + first.Scalar() + "` twice", "remove one",
                          first.Mark()};
    }
    return {};
  }
  Failure operator()(std::map<std::string, std::string>* value) const {
    return read_map(*value, "as in { NAME: \"text\" }");
  }
  Failure operator()(std::map<std::string, double>* value) const {
    return read_map(*value, "as in { NAME: 0.5 }");
  }

  Failure operator()(NameOrPath* value) const {
    if (Failure failure = read(value->text, node)) return failure;
    if (value->text.empty()) return wrong_type(node, "a name or a path", "");
    if (is_path(*value)) value->text = (base / with_home(value->text)).lexically_normal().string();
    return {};
  }

  Failure operator()(JsonObject* value) const {
    if (!node.IsMap()) return wrong_type(node, "a map", "as in { start: 3 }");
    return json_of(node, std::string(key.path), *value);
  }

  Failure operator()(const WordOrNumber& field) const {
    const auto assign_to = [&](auto* value) -> Failure {
      value->reset();
      if (node.IsScalar() && node.Scalar() == field.word) return {};
      const bool is_number = node.IsScalar() && is_plain(node) && looks_like_number(node.Scalar());
      if (!is_number) return wrong_type(node, type_text(key), sweep_help(node));
      return (*this)(&value->emplace());
    };
    return std::visit(assign_to, field.number);
  }

  Failure operator()(const EnumField& field) const {
    if (field.nullable && node.IsNull()) {
      field.set(std::nullopt);
      return {};
    }
    const std::string wanted = type_text(key);
    if (!node.IsScalar()) return wrong_type(node, wanted, "");
    const std::string& word = node.Scalar();
    if (std::ranges::find(field.names, word) != field.names.end()) {
      field.set(word);
      return {};
    }
    if (std::ranges::find(key.later_values, word) != key.later_values.end())
      return ValueError{name() + ": `" + word + "` is not in this version", "use " + wanted,
                        node.Mark()};
    std::string help = sweep_help(node);
    if (const auto near = nearest(word, field.names); near && help.empty())
      help = "did you mean `" + std::string(*near) + "`?";
    return wrong_type(node, wanted, std::move(help));
  }
};

}  // namespace

std::optional<ValueError> assign(const Key& key, const FieldRef& field, const YAML::Node& node,
                                 const fs::path& base) {
  return std::visit(Assign{key, node, base}, field);
}

}  // namespace tandem::job
