// Logs of actors, running and ended, as HTTP answers: the end of a log, its newest part by time,
// and a stream that ends with the incarnation. No answer reads a large log as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "actors/api/http_answers.h"
#include "actors/api/query.h"
#include "runtime/node/log_files.h"

namespace tandem::api {

inline constexpr std::size_t kLogAnswerBytesMax = std::size_t{4} << 20;
// The most of an existing log that a stream begins with; the client's buffer holds twice as much.
inline constexpr std::size_t kLogFollowBytesMax = std::size_t{2} << 20;
inline constexpr std::int64_t kLogLinesMax = 1'000'000;

// The parameters of a query about a log.
inline constexpr std::int64_t kLogSinceMax = std::int64_t{100} * 365 * 24 * 3600;  // seconds
inline constexpr QueryParameter kLogTail{.name = "tail",
                                         .kind = QueryKind::kNumber,
                                         .about = "So many last lines.",
                                         .bounds = {0, kLogLinesMax}};
inline constexpr QueryParameter kLogSince{.name = "since",
                                          .kind = QueryKind::kNumber,
                                          .about = "Lines that are not older than so many seconds.",
                                          .bounds = {0, kLogSinceMax}};
inline constexpr QueryParameter kLogFollow{
    .name = "follow",
    .kind = QueryKind::kFlag,
    .about = "Goes on with new lines until the incarnation has ended."};
inline constexpr QueryParameter kLogPrevious{
    .name = "previous", .kind = QueryKind::kFlag, .about = "The log of the incarnation before."};

inline constexpr QueryParameter kLogFrom{
    .name = "from",
    .about =
        "With follow: goes on where another answer has broken off, as its header "
        "`tandem-log-position` and the bytes of its lines say: INCARNATION:BYTES. The log of "
        "another incarnation begins at its start."};

struct LogQuery {
  std::optional<std::int64_t> tail;     // so many last lines
  std::optional<std::int64_t> since_s;  // lines not older than so many seconds
  bool follow = false;
  bool previous = false;  // the incarnation before
  std::optional<node::LogPosition> from = {};
};
// Reads a query; kInvalid for a number out of its bounds, and for no position.
Result<LogQuery> log_query(const http::HttpRequest& request);

// The log that a path names: "rollout/0" (its newest incarnation) or "rollout/0/3". `previous` goes
// one incarnation back. Only logs that the directory lists are found, so that no name leads out of
// the directory. Fails with kNotFound.
struct NamedLog {
  std::string actor;
  Incarnation incarnation;
};
Result<NamedLog> find_log(const std::filesystem::path& logs, const std::string& wanted,
                          bool previous);

// `path` is the log of this incarnation. `over` says whether it can write no more; a stream ends
// after its last bytes. `over` is called in the turns of the feeding actor. Without `streams` a log
// cannot be followed.
http::HttpAnswer log_answer(const HttpStreams* streams, const std::filesystem::path& path,
                            Incarnation incarnation, const LogQuery& query,
                            std::function<bool()> over);

}  // namespace tandem::api
