// A stream keeps a reader of the log and the unfinished line at the end; each turn of the feed
// reads what was appended since. Lines leave whole, unless one is longer than a read.
#include "actors/api/log_answers.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <utility>

namespace tandem::api {

namespace fs = std::filesystem;
using http::HttpAnswer;
using http::HttpResponse;
using http::HttpStream;

namespace {

constexpr const char* kText = "text/plain; charset=utf-8";

// The part of a log that a query asks for. If the beginning was left out for its size, a first line
// says how much.
Result<node::LogTail> part_of(const fs::path& path, const LogQuery& query, std::size_t bytes_max) {
  // Lines by time are found in the text, so all of it is read, up to the bound.
  const bool all = !query.tail || query.since_s;
  const auto lines = static_cast<std::size_t>(query.tail.value_or(0));
  auto part =
      node::tail_log(path, all ? std::numeric_limits<std::size_t>::max() : lines, bytes_max);
  if (!part) return part.error();
  std::size_t begin = 0;
  if (query.since_s) {
    begin = node::lines_since(part->text, unix_ms() - *query.since_s * 1000);
    std::size_t start = part->text.size();
    // With both limits the shorter part is the answer: go back `tail` lines from the end.
    for (std::size_t line = 0; query.tail && line < lines && start > begin; ++line) {
      const std::size_t newline = start < 2 ? std::string::npos : part->text.rfind('\n', start - 2);
      start = newline == std::string::npos ? 0 : newline + 1;
    }
    if (query.tail) begin = std::max(begin, start);
  }
  const std::uint64_t left_out = part->left_out;
  part->text.erase(0, begin);
  part->begin += begin;
  if (all && begin == 0 && left_out > 0) {
    part->begin -= left_out;
    part->text.insert(0, "[the first " + std::to_string(left_out) +
                             " bytes are left out; all is in " + path.string() + "*]\n");
  }
  return part;
}

}  // namespace

Result<LogQuery> log_query(const http::HttpRequest& request) {
  const auto tail = query_number(request, kLogTail);
  if (!tail) return tail.error();
  const auto since = query_number(request, kLogSince);
  if (!since) return since.error();
  const std::string from = query_text(request, kLogFrom);
  const auto position = node::parse_log_position(from);
  if (!position && !from.empty())
    return Error{ErrorCode::kInvalid, "`from` is INCARNATION:BYTES, not `" + from + "`"};
  return LogQuery{.tail = *tail,
                  .since_s = *since,
                  .follow = query_flag(request, kLogFollow),
                  .previous = query_flag(request, kLogPrevious),
                  .from = position};
}

Result<NamedLog> find_log(const fs::path& logs, const std::string& wanted, bool previous) {
  const auto listed = node::logs_in(logs);
  const auto of = [&](const std::string& actor) {
    return std::find_if(listed.begin(), listed.end(),
                        [&](const node::ActorLogs& l) { return l.actor == actor; });
  };
  Error none{ErrorCode::kNotFound, "there is no log of " + wanted, logs.string(),
             "its run says which there are: `actors` in GET /api/v1/runs/ID"};
  auto actor = of(wanted);
  std::optional<Incarnation> named;
  if (actor == listed.end()) {
    const std::size_t slash = wanted.rfind('/');
    if (slash == std::string::npos) return none;
    // The path may end with the number of an incarnation.
    actor = of(wanted.substr(0, slash));
    Incarnation incarnation;
    const char* const end = wanted.data() + wanted.size();
    const auto [stop, failure] = std::from_chars(wanted.data() + slash + 1, end, incarnation.value);
    if (actor == listed.end() || failure != std::errc{} || stop != end) return none;
    // The incarnations of a log are sorted.
    if (!std::ranges::binary_search(actor->incarnations, incarnation)) return none;
    named = incarnation;
  }
  const Incarnation chosen = named.value_or(actor->incarnations.back());
  if (!previous) return NamedLog{actor->actor, chosen};
  const auto before = node::previous_log(logs, actor->actor, chosen);
  if (!before) return Error{ErrorCode::kNotFound, wanted + " has had no earlier incarnation"};
  return NamedLog{actor->actor, *before};
}

HttpAnswer log_answer(const HttpStreams* streams, const fs::path& path, Incarnation incarnation,
                      const LogQuery& query, std::function<bool()> over) {
  if (query.follow && !streams)
    return http::error_response(
        Error{ErrorCode::kUnreachable, "a log is followed through a controller, and none runs"});
  const bool goes_on = query.follow && query.from;
  auto part = goes_on && query.from->incarnation == incarnation
                  ? node::log_from(path, query.from->bytes)
                  : part_of(path, goes_on ? LogQuery() : query,
                            query.follow ? kLogFollowBytesMax : kLogAnswerBytesMax);
  if (!query.follow) {
    if (!part)
      return http::error_response(
          Error{ErrorCode::kNotFound, part.error().message, part.error().where});
    return HttpResponse{.content_type = kText, .body = std::move(part->text)};
  }
  // An actor that has not begun has no log yet.
  auto rest =
      std::make_shared<node::LogReader>(part ? std::move(part->rest) : node::LogReader(path));
  const node::LogPosition position{incarnation, part ? part->begin : 0};
  auto partial = std::make_shared<std::string>(part ? std::move(part->text) : "");
  auto streaming = streams->stream([rest, partial, over = std::move(over)](HttpStream& out,
                                                                           Time now) {
    bool last = over();  // asked before reading: bytes written until then are read below
    if (const auto more = rest->more(now)) {
      partial->append(more->text);
      last = last && more->at_end;
    }
    std::size_t begin = 0;
    for (std::size_t end; (end = partial->find('\n', begin)) != std::string::npos; begin = end + 1)
      if (!out.write(partial->substr(begin, end - begin))) return false;
    partial->erase(0, begin);
    const bool too_long = partial->size() > node::kLogReadBytesMax;
    if ((last || too_long) && !partial->empty())
      if (!out.write(std::exchange(*partial, ""))) return false;
    return !last;
  });
  streaming.content_type = kText;
  streaming.headers[node::kLogPositionHeader] = to_string(position);
  return streaming;
}

}  // namespace tandem::api
