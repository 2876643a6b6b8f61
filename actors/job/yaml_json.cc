// The text grows as the tree is walked, and the walk ends where the text is too long or the tree
// too deep: an alias may repeat a part of a document any number of times, and may contain itself.
#include "actors/job/yaml_json.h"

#include <set>
#include <variant>
#include <vector>

#include "actors/job/print_job.h"
#include "actors/job/yaml_merge.h"
#include "runtime/base/json.h"

namespace tandem::job {
namespace {

// A reader of YAML need not take a longer key that stands before its colon in one line.
constexpr std::size_t kKeyBytesMax = 256;

class JsonText {
 public:
  explicit JsonText(const std::string& name) : name_(name) {}
  using Failure = std::optional<ValueError>;

  Failure add(const YAML::Node& node, std::size_t depth) {
    if (text.size() > kJsonObjectBytesMax || depth > kNestingMax)
      return failure(node, "is too large",
                     "at most " + std::to_string(kJsonObjectBytesMax >> 10) + " KiB as JSON, and " +
                         std::to_string(kNestingMax) + " levels");
    if (node.IsMap()) return add_map(node, depth);
    if (node.IsSequence()) return add_list(node, depth);
    return add_scalar(node);
  }

  std::string text;

 private:
  Failure failure(const YAML::Node& at, const std::string& what, std::string help) const {
    return ValueError{"`" + name_ + "` " + what, std::move(help), at.Mark()};
  }

  Failure add_map(const YAML::Node& map, std::size_t depth) {
    std::set<std::string> keys;
    text += '{';
    const auto members = members_of(map);
    if (const auto* wrong = std::get_if<ValueError>(&members)) return *wrong;
    for (const auto& [name, value] : std::get<std::vector<YamlMember>>(members)) {
      if (!name.IsScalar() || name.Scalar().size() > kKeyBytesMax)
        return failure(name, "has a key that is no short text, " + describe(name),
                       "a key is a word of at most " + std::to_string(kKeyBytesMax) + " bytes");
      const std::string& key = name.Scalar();
      if (!keys.insert(key).second) return failure(name, "has `" + key + "` twice", "remove one");
      text += (keys.size() > 1 ? ", " : "") + dump_json(key) + ": ";
      if (Failure failed = add(value, depth + 1)) return failed;
    }
    text += '}';
    return {};
  }

  Failure add_list(const YAML::Node& list, std::size_t depth) {
    text += '[';
    bool first = true;
    for (const YAML::Node& item : list) {
      if (!std::exchange(first, false)) text += ", ";
      if (Failure failed = add(item, depth + 1)) return failed;
    }
    text += ']';
    return {};
  }

  Failure add_scalar(const YAML::Node& node) {
    const auto value = plain_value(node);
    if (value && value->kind == PlainValue::kNoNumber)
      return failure(node, "has " + node.Scalar() + ", which is no number of JSON",
                     "put it in quotes if a text is meant");
    text += value ? value->json : dump_json(node.Scalar());
    return {};
  }

  const std::string name_;
};

}  // namespace

std::optional<ValueError> json_of(const YAML::Node& map, const std::string& name,
                                  JsonObject& object) {
  JsonText json(name);
  if (auto failure = json.add(map, 0)) return failure;
  if (json.text.size() > kJsonObjectBytesMax)
    return ValueError{
        "`" + name + "` is too large: " + std::to_string(json.text.size()) + " bytes as JSON",
        "at most " + std::to_string(kJsonObjectBytesMax >> 10) + " KiB", map.Mark()};
  object.text = std::move(json.text);
  return {};
}

}  // namespace tandem::job
