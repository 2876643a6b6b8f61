// References are resolved by recursion over keys, with the keys under way in a list: a key that
// comes again closes a circle. The depth is bounded by the number of keys, and by
// kReferencesDeepMax, since a chain of references may be as long as the file.
#include "actors/translate/interpolation.h"

#include <algorithm>
#include <optional>

#include "actors/job/yaml_leaves.h"
#include "runtime/base/json.h"

namespace tandem::translate {
namespace {

using nlohmann::json;

constexpr std::size_t kReferencesDeepMax = 100;
constexpr std::size_t kExpandedBytesMax = 64 << 10;  // of one value, which references may repeat

std::string shown(const json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The end of the reference that begins at `begin` with "${": the place of its closing brace.
std::optional<std::size_t> closing(std::string_view text, std::size_t begin) {
  std::size_t open = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") ++open;
    if (text[i] == '}' && --open == 0) return i;
  }
  return {};
}

// The arguments of a resolver, cut at commas that stand in no inner reference.
std::vector<std::string_view> arguments_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0, open = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '{') ++open;
    if (i < text.size() && text[i] == '}' && open > 0) --open;
    if (i < text.size() && (text[i] != ',' || open > 0)) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

// "a.b.c" for ".c" within the section of "a.b.x"; each further dot is a section up.
std::string absolute(std::string_view name, std::string_view key) {
  if (!name.starts_with('.')) return std::string(name);
  std::string_view section = key;
  while (name.starts_with('.')) {
    name.remove_prefix(1);
    const std::size_t dot = section.rfind('.');
    section = dot == section.npos ? std::string_view() : section.substr(0, dot);
  }
  return section.empty() ? std::string(name) : std::string(section) + "." + std::string(name);
}

class Resolver {
 public:
  explicit Resolver(const ForeignConfig& config) : config_(config) {}

  // What a reference, or a value, comes to; nullopt: it is not known, and `why` says so.
  using Outcome = Result<std::optional<json>>;

  Outcome value(const std::string& key) {
    if (const auto done = done_.find(key); done != done_.end()) return done->second;
    const ForeignValue* const given = config_.find(key);
    if (!given) {
      why = "`${" + key + "}` is not given";
      return std::optional<json>();
    }
    if (std::ranges::find(under_way_, key) != under_way_.end() ||
        under_way_.size() == kReferencesDeepMax)
      return circle(key);
    under_way_.push_back(key);
    Outcome outcome = expand(given->value, key);
    under_way_.pop_back();
    if (outcome) done_.emplace(key, *outcome);
    return outcome;
  }

  std::string why;  // of the last value that is not known

 private:
  Error circle(const std::string& key) const {
    std::string path;
    const auto begin = std::ranges::find(under_way_, key);
    for (auto at = begin == under_way_.end() ? under_way_.begin() : begin; at != under_way_.end();
         ++at)
      path += "`" + *at + "` -> ";
    const ForeignValue* const given = config_.find(key);
    return {ErrorCode::kInvalid,
            "values refer to each other in a circle: " + path + "`" + key + "`",
            given ? given->where : config_.origin(), "write one of them out"};
  }

  Outcome expand(const json& value, const std::string& key) {
    if (value.is_array()) {
      json list = json::array();
      for (const json& item : value) {
        Outcome one = expand(item, key);
        if (!one || !*one) return one;
        list.push_back(**std::move(one));
      }
      return std::optional<json>(std::move(list));
    }
    if (value.is_object()) {
      json map = json::object();
      for (const auto& [name, item] : value.items()) {
        Outcome one = expand(item, key);
        if (!one || !*one) return one;
        map[name] = **std::move(one);
      }
      return std::optional<json>(std::move(map));
    }
    if (!value.is_string()) return std::optional<json>(value);
    return expand_text(value.get<std::string>(), key);
  }

  Outcome expand_text(const std::string& text, const std::string& key) {
    const std::size_t first = text.find("${");
    if (first == text.npos) return std::optional<json>(text);
    if (first == 0 && closing(text, 0) == text.size() - 1) return reference(inner(text, 0), key);
    std::string whole;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = text.find("${", at);
      whole += text.substr(at, begin - at);
      if (begin == text.npos) break;
      const auto end = closing(text, begin);
      if (!end) {
        whole += text.substr(begin);
        break;
      }
      Outcome part = reference(inner(text, begin), key);
      if (!part || !*part) return part;
      whole += shown(**part);
      if (whole.size() > kExpandedBytesMax) return circle(key);
      at = *end + 1;
    }
    return std::optional<json>(std::move(whole));
  }

  static std::string inner(const std::string& text, std::size_t begin) {
    const std::size_t end = closing(text, begin).value_or(text.size());
    return text.substr(begin + 2, end - begin - 2);
  }

  // What stands between "${" and "}".
  Outcome reference(const std::string& name, const std::string& key) {
    const std::size_t colon = name.find(':');
    if (colon == name.npos) {
      if (name.find("${") != name.npos) return unknown(name);
      return value(absolute(trimmed(name), key));
    }
    const std::string_view resolver = trimmed(std::string_view(name).substr(0, colon));
    const auto arguments = arguments_of(std::string_view(name).substr(colon + 1));
    if (resolver == "oc.env") return variable(arguments);
    if (resolver == "oc.select") return select(arguments, key);
    if (resolver == "mul") return product(arguments, key);
    return unknown(name);
  }

  Outcome unknown(const std::string& name) {
    why = "`${" + name + "}` is not understood";
    return std::optional<json>();
  }

  Outcome variable(const std::vector<std::string_view>& arguments) {
    if (arguments[0] == "HOME") return std::optional<json>("$HOME");
    if (arguments.size() > 1) return std::optional<json>(plain(arguments[1]));
    why = "the environment variable " + std::string(arguments[0]) + " is not known here";
    return std::optional<json>();
  }

  Outcome select(const std::vector<std::string_view>& arguments, const std::string& key) {
    const std::string name = absolute(arguments[0], key);
    if (config_.find(name)) return value(name);
    return std::optional<json>(arguments.size() > 1 ? plain(arguments[1]) : json());
  }

  Outcome product(const std::vector<std::string_view>& arguments, const std::string& key) {
    double product = 1;
    for (const std::string_view argument : arguments) {
      Outcome factor = expand(plain(argument), key);
      if (!factor || !*factor) return factor;
      if (!(*factor)->is_number()) return unknown("mul:…");
      product *= (*factor)->get<double>();
    }
    const auto whole = static_cast<std::int64_t>(product);
    return std::optional<json>(static_cast<double>(whole) == product ? json(whole) : json(product));
  }

  static json plain(std::string_view text) {
    if (text.find("${") != text.npos) return std::string(text);
    return job::yaml_value_of(text).value_or(std::string(text));
  }

  const ForeignConfig& config_;
  std::map<std::string, std::optional<json>, std::less<>> done_;
  std::vector<std::string> under_way_;
};

}  // namespace

Result<Resolved> resolve(const ForeignConfig& config) {
  Resolved resolved;
  Resolver resolver(config);
  for (const ForeignValue& given : config.values()) {
    auto value = resolver.value(given.key);
    if (!value) return value.error();
    if (*value)
      resolved.values.emplace(given.key, **std::move(value));
    else
      resolved.unknown.push_back({resolver.why, given.where, given.key});
  }
  return resolved;
}

}  // namespace tandem::translate
