// The tree is walked with a count of the values seen, since aliases may repeat a part of a document
// any number of times, or contain themselves: the walk ends at the limit, with an error.
#include "actors/job/yaml_leaves.h"

#include <set>
#include <variant>

#include "actors/job/yaml_document.h"
#include "actors/job/yaml_merge.h"
#include "actors/job/yaml_scalar.h"
#include "runtime/base/json.h"

namespace tandem::job {
namespace {

using nlohmann::json;

class YamlWalk {
 public:
  explicit YamlWalk(const YamlText& text) : text_(text) {}

  Result<void> add(const YAML::Node& node, const std::string& key, std::size_t depth) {
    if (!node.IsMap() || node.size() == 0) {
      auto value = value_of(node, depth);
      if (!value) return value.error();
      leaves.push_back({key, *std::move(value), node.Mark().line + 1});
      return {};
    }
    if (auto counted = count(node, depth); !counted) return counted;
    const auto members = members_of(node);
    if (const auto* wrong = std::get_if<ValueError>(&members))
      return fault(wrong->message, wrong->mark, wrong->help);
    std::set<std::string> names;
    for (const auto& [name, value] : std::get<std::vector<YamlMember>>(members)) {
      if (!name.IsScalar())
        return fault("a key is " + describe(name), name.Mark(), "keys are names");
      if (!names.insert(name.Scalar()).second)
        return fault("`" + name.Scalar() + "` is given twice", name.Mark(), "remove one");
      const std::string path = key.empty() ? name.Scalar() : key + "." + name.Scalar();
      if (auto added = add(value, path, depth + 1); !added) return added;
    }
    return {};
  }

  // A value as JSON, maps within lists among them.
  Result<json> value_of(const YAML::Node& node, std::size_t depth) {
    if (auto counted = count(node, depth); !counted) return counted.error();
    if (node.IsSequence()) {
      json list = json::array();
      for (const YAML::Node& item : node) {
        auto value = value_of(item, depth + 1);
        if (!value) return value;
        list.push_back(*std::move(value));
      }
      return list;
    }
    if (!node.IsMap()) return scalar(node);
    json map = json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar())
        return fault("a key is " + describe(member.first), member.first.Mark(), "keys are names");
      auto value = value_of(member.second, depth + 1);
      if (!value) return value;
      map[member.first.Scalar()] = *std::move(value);
    }
    return map;
  }

  std::vector<YamlLeaf> leaves;

 private:
  static json scalar(const YAML::Node& node) {
    const auto value = plain_value(node);
    if (!value || value->kind == PlainValue::kNoNumber) return node.Scalar();
    return parse_json(value->json);
  }

  Error fault(std::string message, const YAML::Mark& mark, std::string help) const {
    return {ErrorCode::kInvalid, std::move(message), yaml_place(text_, mark.line, mark.column),
            std::move(help)};
  }

  Result<void> count(const YAML::Node& at, std::size_t depth) {
    if (++seen_ <= kYamlLeavesMax && depth <= kNestingMax) return {};
    return fault("more than " + std::to_string(kYamlLeavesMax) + " values, or an alias of itself",
                 at.Mark(), "a configuration has some hundreds");
  }

  const YamlText& text_;
  std::size_t seen_ = 0;
};

}  // namespace

Result<std::vector<YamlLeaf>> yaml_leaves(std::string_view text, const std::string& origin) {
  const YamlText what{.name = origin, .noun = "the file", .too_long_help = "give a configuration"};
  const auto root = parse_yaml(text, what);
  if (!root) return root.error();
  YamlWalk walk(what);
  if (auto walked = walk.add(*root, "", 0); !walked) return walked.error();
  return std::move(walk.leaves);
}

std::optional<json> yaml_value_of(std::string_view text) {
  const YamlText what{.name = "", .has_lines = false};
  const auto root = parse_yaml(text, what);
  if (!root) return {};
  auto value = YamlWalk(what).value_of(*root, 0);
  if (!value) return {};
  return *std::move(value);
}

}  // namespace tandem::job
