// A row of a run's journal, which a disk may have damaged: the value of its column `body`, packed
// or not. Checked: what decodes, encodes to bytes that decode to the same; its columns for people
// can be made. Whether an event fits those before it is no part of this
// (actors/exchange/state/misfit.h).
#include "actors/exchange/journal_rows.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/check.h"
#include "runtime/wire/codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {

void journal(std::string_view input) {
  const auto events = runs::RunJournal::events_in(sqlite::Sqlite::Blob{std::string(input)});
  if (!events) {
    CHECK(events.error().code == ErrorCode::kInvalid && !events.error().message.empty());
    return;
  }
  CHECK(!events->empty());
  for (const exchange::JournalEvent& event : *events) {
    const std::string encoded = wire::encode(event);
    const auto again = wire::decode<exchange::JournalEvent>(encoded);
    CHECK(again.has_value() && wire::encode(*again) == encoded);
    const exchange::JournalRows rows = exchange::rows_of(event);
    for (const exchange::JournalRow& group : rows.of_groups)
      CHECK(!group.kind.empty() && group.kind == rows.of_groups.front().kind);
    (void)exchange::level_of(event);
  }
}

}  // namespace tandem::fuzz
