// What the HTTP API's routes share: whole answers, the values of a query, and streams of lines that
// one actor feeds, so that no server thread waits.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/actor/system.h"
#include "runtime/net/http_server.h"

namespace tandem::actors {

inline constexpr Duration kApiAskTimeout = std::chrono::seconds(5);
inline constexpr Duration kWatchInterval = std::chrono::milliseconds(250);

runtime::HttpResponse ok(const nlohmann::json& body);
Error no_such(const std::string& kind, const std::string& name);
std::string joined(const std::vector<std::string>& parts, std::size_t from, std::size_t to);

std::string query_text(const runtime::HttpRequest& request, const std::string& key);  // "": absent
// "1" or without a value.
bool query_flag(const runtime::HttpRequest& request, const std::string& key);
struct Bounds {
  std::int64_t least = 0, most = 0;
};
// None where it is absent. Errors: kInvalid, no whole number within the bounds.
Result<std::optional<std::int64_t>> query_number(const runtime::HttpRequest& request,
                                                 const std::string& key, Bounds bounds);

// Writes what is new; false ends the stream.
using Feed = std::function<bool(runtime::HttpStream&)>;

struct AddStream {
  std::shared_ptr<runtime::HttpStream> stream;
  Feed feed;
};

class HttpStreams {
 public:
  explicit HttpStreams(runtime::System& system);  // spawns "http_streams", which feeds them
  // A stream that is fed once each kWatchInterval.
  runtime::HttpStreaming stream(Feed feed) const;

 private:
  runtime::Ref<std::variant<AddStream>> feeder_;
};

}  // namespace tandem::actors
