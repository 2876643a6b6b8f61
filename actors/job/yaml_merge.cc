#include "actors/job/yaml_merge.h"

#include <optional>
#include <set>
#include <string>

namespace tandem::job {
namespace {

constexpr const char* kMergeKey = "<<";
constexpr int kMergedDeepMax = 64;  // an anchor may contain itself
// The most maps that are merged into one map: 64 maps that each merge the next one twice would be
// 2^64.
constexpr int kMergedMapsMax = 1000;

bool is_merge(const YAML::Node& key) { return is_plain(key) && key.Scalar() == kMergeKey; }

class Merger {
 public:
  std::optional<ValueError> add(const YAML::Node& map, int depth) {
    if (depth > kMergedDeepMax || ++maps_ > kMergedMapsMax)
      return ValueError{"`<<` merges too many maps, or maps that merge themselves",
                        "write the values out", map.Mark()};
    std::vector<YAML::Node> merged;
    std::set<std::string> own;
    for (const auto& member : map) {
      if (is_merge(member.first)) {
        merged.push_back(member.second);
        continue;
      }
      const std::string name = member.first.IsScalar() ? member.first.Scalar() : "";
      // A key that was given before hides this one; one that this map has twice stays, as an error.
      if (depth > 0 && !name.empty() && names_.contains(name)) continue;
      own.insert(name);
      members.emplace_back(member.first, member.second);
    }
    names_.merge(own);
    for (const YAML::Node& one : merged)
      if (auto failure = merge(one, depth)) return failure;
    return {};
  }

  std::vector<YamlMember> members;

 private:
  std::optional<ValueError> merge(const YAML::Node& value, int depth) {
    if (value.IsMap()) return add(value, depth + 1);
    if (!value.IsSequence())
      return ValueError{"`<<` merges a map or a list of maps, found " + describe(value),
                        "as in `<<: *defaults`", value.Mark()};
    for (const YAML::Node& one : value) {
      if (!one.IsMap())
        return ValueError{"`<<` merges maps, found " + describe(one), "as in `<<: [*one, *two]`",
                          one.Mark()};
      if (auto failure = add(one, depth + 1)) return failure;
    }
    return {};
  }

  std::set<std::string> names_;
  int maps_ = 0;
};

}  // namespace

std::variant<std::vector<YamlMember>, ValueError> members_of(const YAML::Node& map) {
  Merger merger;
  if (auto failure = merger.add(map, 0)) return *std::move(failure);
  return std::move(merger.members);
}

}  // namespace tandem::job
