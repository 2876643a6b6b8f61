// Feeds the watches of jobs, actors, nodes and groups: the objects of one round of feeding are made
// once for all watches, and each watch remembers what it has told already. So hundreds of watches
// cost the controller little more than one does. Watches are used in the turns of the actor that
// feeds the streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/api/cluster_picture.h"
#include "runtime/base/clock.h"
#include "runtime/http/http_server.h"

namespace tandem::api {

struct WatchedObject {
  std::string line;         // the object as JSON
  std::uint64_t state = 0;  // a digest of the object, without what changes with the time alone
};
std::vector<WatchedObject> watched_objects(const nlohmann::json& items);

// The objects as they are in the round of feeding of which somebody asked last.
class WatchedRound {
 public:
  explicit WatchedRound(std::function<Result<Picture>()> take) : take_(std::move(take)) {}

  // All objects of a kind, or the one of this name. Null if there is none of this name, or the
  // controller does not answer. Valid until the next call.
  const std::vector<WatchedObject>* objects(Time round, const std::string& kind,
                                            const std::string& name);

 private:
  using Asked = std::pair<std::string, std::string>;  // kind and name
  const std::function<Result<Picture>()> take_;
  std::optional<Time> round_;
  std::optional<Picture> picture_;  // the picture of that round; nullopt: it could not be taken
  std::map<Asked, std::optional<std::vector<WatchedObject>>> made_;
};

// One watch.
class Watch {
 public:
  // Writes the objects that are new, or have changed since the last call. False: the stream has
  // ended.
  bool tell(const std::vector<WatchedObject>& objects, http::HttpStream& out);
  // How many objects the last call had: objects that are gone are forgotten.
  std::size_t objects_remembered() const { return told_.size(); }

 private:
  std::vector<std::uint64_t> told_;  // their states, sorted
};

}  // namespace tandem::api
