#include "actors/api/http_answers.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <iterator>
#include <utility>

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

std::string joined(const std::vector<std::string>& parts, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += (i > from ? "/" : "") + parts[i];
  return text;
}

std::string query_text(const http::HttpRequest& request, const std::string& key) {
  const auto it = request.query.find(key);
  return it == request.query.end() ? "" : it->second;
}

bool query_flag(const http::HttpRequest& request, const std::string& key) {
  const std::string value = query_text(request, key);
  return request.query.contains(key) && value != "0" && value != "false";
}

Result<std::optional<std::int64_t>> query_number(const http::HttpRequest& request,
                                                 const std::string& key, Bounds bounds) {
  const std::string text = query_text(request, key);
  if (text.empty()) return std::optional<std::int64_t>();
  std::int64_t value = 0;
  // The whole text must be the number: "5x" and "5.0" are none.
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc{} && stop == text.data() + text.size();
  if (whole && value >= bounds.least && value <= bounds.most) return std::optional(value);
  return Error{ErrorCode::kInvalid, key + "=" + text + " is no whole number from " +
                                        std::to_string(bounds.least) + " to " +
                                        std::to_string(bounds.most)};
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
