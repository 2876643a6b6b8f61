#include "actors/api/watches.h"

#include <algorithm>
#include <string_view>

#include "runtime/base/json.h"

namespace tandem::api {

using nlohmann::json;

namespace {

// The object without the fields that only tell the time or change each second: a change of these
// alone is not told to a watcher.
std::string without_times(json item) {
  if (item.is_object())
    for (const char* const key :
         {"age_s", "created", "ended", "since", "cpu_percent", "memory_bytes"})
      item.erase(key);
  return dump_json(item);
}

std::optional<std::vector<WatchedObject>> made(const std::optional<Picture>& picture,
                                               const std::string& kind, const std::string& name) {
  if (!picture) return std::nullopt;
  if (name.empty()) return watched_objects(list(*picture, kind));
  auto one = find_one(*picture, kind, name);
  if (!one) return std::nullopt;
  return watched_objects(json::array({*std::move(one)}));
}

}  // namespace

// The text has the object's name too, so that no two objects have the same state.
std::vector<WatchedObject> watched_objects(const json& items) {
  std::vector<WatchedObject> objects;
  for (const json& item : items)
    objects.push_back({dump_json(item), std::hash<std::string>()(without_times(item))});
  return objects;
}

const std::vector<WatchedObject>* WatchedRound::objects(Time round, const std::string& kind,
                                                        const std::string& name) {
  if (round_ != round) {
    made_.clear();
    picture_.reset();
    if (auto taken = take_()) picture_ = *std::move(taken);
    round_ = round;
  }
  const auto [at, is_new] = made_.try_emplace({kind, name});
  if (is_new) at->second = made(picture_, kind, name);
  return at->second ? &*at->second : nullptr;
}

bool Watch::tell(const std::vector<WatchedObject>& objects, http::HttpStream& out) {
  std::vector<std::uint64_t> now;
  for (const WatchedObject& object : objects) {
    now.push_back(object.state);
    if (!std::ranges::binary_search(told_, object.state) && !out.write(object.line)) return false;
  }
  std::ranges::sort(now);
  told_ = std::move(now);
  return true;
}

}  // namespace tandem::api
