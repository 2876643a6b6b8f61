#include "actors/api/http_answers.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/log.h"

namespace tandem::api {

using nlohmann::json;

namespace {

// Feeds all open streams, one look each kWatchInterval.
class StreamFeeder {
 public:
  using Inbox = std::variant<AddStream>;
  void handle(actor::Context& cx, AddStream add) {
    streams_.push_back(std::move(add));
    // The first stream starts the timer, which stops when there is none left.
    if (streams_.size() == 1) feed(cx);
  }

 private:
  // A library's exception ends this stream and no other.
  static bool fed(AddStream& s, Time round) {
    try {
      return s.feed(*s.stream, round);
    } catch (const std::exception& e) {
      log::error("event=stream_failed what=\"{}\"", e.what());
      return false;
    }
  }
  void feed(actor::Context& cx) {
    const Time round = cx.now();
    std::size_t unsent = 0;
    for (const AddStream& s : streams_) unsent += s.stream->unsent_bytes();
    std::vector<AddStream> passed_over, kept;
    for (AddStream& s : streams_) {
      const bool may_feed = s.stream->unsent_bytes() == 0 && unsent < kUnsentBytesMax;
      if (!s.stream->open() || (may_feed && !fed(s, round))) {
        s.stream->close();
        continue;
      }
      if (may_feed) unsent += s.stream->unsent_bytes();
      (may_feed ? kept : passed_over).push_back(std::move(s));
    }
    streams_ = std::move(passed_over);
    std::ranges::move(kept, std::back_inserter(streams_));
    if (!streams_.empty()) cx.after(kWatchInterval, [this](actor::Context& then) { feed(then); });
  }
  // Open streams, first those that were passed over in the last round.
  std::vector<AddStream> streams_;
};
static_assert(actor::Actor<StreamFeeder>);

}  // namespace

http::HttpResponse ok(const json& body) {
  return {.status = 200, .content_type = "application/json", .body = dump_json(body) + "\n"};
}

Error no_such(const std::string& kind, const std::string& name) {
  return {ErrorCode::kNotFound, "there is no " + kind + " " + name, "",
          "tandem get " + kind + "s lists them"};
}

HttpStreams::HttpStreams(actor::System& system)
    : feeder_(system.spawn<StreamFeeder>("http_streams",
                                         [] { return std::make_unique<StreamFeeder>(); })) {}

http::HttpStreaming HttpStreams::stream(Feed feed) const {
  http::HttpStreaming streaming;
  streaming.start = [feeder = feeder_,
                     feed = std::move(feed)](std::shared_ptr<http::HttpStream> stream) {
    // The feeder's mailbox is full, or the system is ending.
    if (feeder.tell(AddStream{stream, feed}) != actor::Delivery::kAccepted) stream->close();
  };
  return streaming;
}

}  // namespace tandem::api
