#include "actors/runs/run_events.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "actors/exchange/journal_rows.h"
#include "actors/runs/event_rows.h"
#include "actors/runs/run_journal.h"
#include "runtime/sqlite/sqlite.h"

namespace tandem::runs {

namespace fs = std::filesystem;

namespace {

// The level of the one event in the row of a milestone; kInfo where the row cannot be read.
messages::EventLevel level_of_row(const sqlite::Sqlite::Value& body) {
  const auto events = RunJournal::events_in(body);
  return events ? level_of(events->front()) : messages::EventLevel::kInfo;
}

}  // namespace

Result<std::vector<ClusterEvent>> journal_events(const fs::path& run_dir, const std::string& id,
                                                 const EventQuery& query) {
  std::vector<ClusterEvent> events;
  const auto journal = open_if_there(run_dir / "journal.sqlite");
  if (!journal) return journal.error();
  if (!*journal) return events;
  const auto done = (*journal)->query(
      std::string(
          "SELECT seq, time_ms, kind, step, detail, version, body FROM events WHERE kind IN ") +
          kMilestoneKinds + " AND seq > ?" + order_and_limit("seq", query),
      [&](const sqlite::Sqlite::Row& row) {
        std::string message = sqlite::text_of(row[2]);
        if (const std::string detail = sqlite::text_of(row[4]); !detail.empty())
          message += " " + detail;
        if (std::holds_alternative<std::int64_t>(row[3]))
          message += " at step " + std::to_string(sqlite::number_of(row[3]));
        if (std::holds_alternative<std::int64_t>(row[5]))
          message += " of version " + std::to_string(sqlite::number_of(row[5]));
        events.push_back({.seq = sqlite::number_of(row[0]),
                          .time_ms = sqlite::number_of(row[1]),
                          .kind = "run",
                          .subject = id,
                          .message = std::move(message),
                          .level = level_of_row(row[6])});
      },
      {query.since.value_or(-1)});
  if (!done) return done.error();
  put_in_order(events, query);
  return events;
}

std::map<std::string, std::set<std::uint64_t>> journal_holders(const fs::path& run_dir) {
  std::map<std::string, std::set<std::uint64_t>> holders;
  const auto journal = open_if_there(run_dir / "journal.sqlite");
  if (!journal || !*journal) return holders;
  // A damaged journal is no error: the names of log files tell the incarnations as well.
  (void)(*journal)->query(
      "SELECT DISTINCT holder FROM journal WHERE kind IN ('worker_up', 'learner_up') AND "
      "seq > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence) - ?",
      [&](const sqlite::Sqlite::Row& row) {  // "arith-1/rollout/0#3"
        const std::string holder = sqlite::text_of(row[0]);
        const std::size_t slash = holder.find('/'), mark = holder.rfind('#');
        if (slash == std::string::npos || mark == std::string::npos || mark < slash) return;
        std::uint64_t incarnation = 0;
        std::from_chars(holder.data() + mark + 1, holder.data() + holder.size(), incarnation);
        holders[holder.substr(slash + 1, mark - slash - 1)].insert(incarnation);
      },
      {kJournalRowsMax});
  return holders;
}

std::vector<ClusterEvent> merged(std::vector<ClusterEvent> a, std::vector<ClusterEvent> b,
                                 const EventQuery& query) {
  std::set<std::tuple<std::int64_t, std::string, std::string>> seen;
  // The same event may be in memory and in the journal.
  for (const ClusterEvent& event : a) seen.emplace(event.time_ms, event.subject, event.message);
  for (ClusterEvent& event : b)
    if (!seen.contains({event.time_ms, event.subject, event.message}))
      a.push_back(std::move(event));
  std::stable_sort(a.begin(), a.end(), [](const ClusterEvent& x, const ClusterEvent& y) {
    return x.time_ms < y.time_ms;
  });
  if (a.size() > query.limit) {
    if (query.since)
      a.resize(query.limit);
    else
      a.erase(a.begin(), a.end() - static_cast<std::ptrdiff_t>(query.limit));
  }
  return a;
}

}  // namespace tandem::runs
