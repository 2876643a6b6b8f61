// Logs of actors, living and ended, as HTTP answers: the end of a log, its newest part by time, and
// a stream that ends with the incarnation. No answer reads a whole log that is large.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "actors/controller/http_answers.h"
#include "runtime/node/log_files.h"

namespace tandem::actors {

inline constexpr std::size_t kLogAnswerBytesMax = std::size_t{4} << 20;
// Of what is there when a stream begins; its client's buffer holds twice as much.
inline constexpr std::size_t kLogFollowBytesMax = std::size_t{2} << 20;
inline constexpr std::int64_t kLogLinesMax = 1'000'000;

struct LogQuery {
  std::optional<std::int64_t> tail;     // lines
  std::optional<std::int64_t> since_s;  // not older than that
  bool follow = false;
  bool previous = false;  // the incarnation before
};
Result<LogQuery> log_query(const runtime::HttpRequest& request);

// Which log a path names: "rollout/0" (its newest incarnation) or "rollout/0/3". Only what the
// directory lists is found, so that no name leads out of it. Errors: kNotFound.
struct NamedLog {
  std::string actor;
  Incarnation incarnation;
};
Result<NamedLog> find_log(const std::filesystem::path& logs, const std::string& wanted,
                          bool previous);

// `over` says whether the incarnation can write no more; a stream ends after its last bytes.
runtime::HttpAnswer log_answer(const HttpStreams& streams, const std::filesystem::path& path,
                               const LogQuery& query, std::function<bool()> over);

}  // namespace tandem::actors
