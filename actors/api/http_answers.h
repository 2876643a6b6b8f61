// The parts that the HTTP API's routes share: whole answers, and streams of lines. One actor feeds
// all streams, so that no server thread waits for a slow client.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>

#include "runtime/actor/system.h"
#include "runtime/http/http_server.h"

namespace tandem::api {

inline constexpr Duration kApiAskTimeout = std::chrono::seconds(5);
inline constexpr Duration kWatchInterval = std::chrono::milliseconds(250);

// A response with status 200, and an Error for the one with 404.
http::HttpResponse ok(const nlohmann::json& body);
Error no_such(const std::string& kind, const std::string& name);

inline constexpr std::size_t kUnsentBytesMax = 16 << 20;  // and what one feed writes more

// Writes the lines that are new. Returns false to end the stream. Called in the feeding actor's
// turns, so it must not wait long. `round` is the same for all streams that are fed together.
//
// Not called while lines of before wait for the client, nor while kUnsentBytesMax wait for all
// clients together: slow clients are told less often, and cost memory that has a bound.
using Feed = std::function<bool(http::HttpStream&, Time round)>;

// A message to the feeding actor: one open stream and the function that feeds it.
struct AddStream {
  std::shared_ptr<http::HttpStream> stream;
  Feed feed;
};

class HttpStreams {
 public:
  explicit HttpStreams(actor::System& system);  // spawns "http_streams", which feeds them
  // A stream that is fed at once, or with the others, and then every kWatchInterval until the
  // client goes or the feed ends it.
  http::HttpStreaming stream(Feed feed) const;

 private:
  actor::Ref<std::variant<AddStream>> feeder_;
};

}  // namespace tandem::api
