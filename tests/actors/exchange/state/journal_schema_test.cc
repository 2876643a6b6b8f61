// The events of a run's journal, and what stands for those that are summed up, can be read by every
// later version with the same kJournalSchema: tests/golden/journal_schema_N.txt has the fields of
// each event, in the order of JournalEvent, and then those of HistoryImage. An image of the run
// (run_image.h) is no part of it: of another version it is passed by, and the events are read.
//
// Tests actors/exchange/state/journal_event.h, actors/exchange/group_history.h.
#include <gtest/gtest.h>

#include <utility>

#include "actors/exchange/group_history.h"
#include "actors/exchange/state/journal_event.h"
#include "runtime/base/file.h"
#include "runtime/wire/schema.h"

namespace tandem::exchange {
namespace {

template <std::size_t... I>
std::string events_text(std::index_sequence<I...>) {
  std::string text;
  ((text += wire::wire_schema<std::variant_alternative_t<I, JournalEvent>>() + '\n'), ...);
  return text;
}

TEST(JournalSchema, AChangeOfAnEventTakesAnotherNumber) {
  const std::string path = std::string(TANDEM_SOURCE_DIR) + "/tests/golden/journal_schema_" +
                           std::to_string(kJournalSchema) + ".txt";
  const auto known = read_file(path);
  ASSERT_TRUE(known) << path;
  const std::string now =
      events_text(std::make_index_sequence<std::variant_size_v<JournalEvent>>()) +
      wire::wire_schema<HistoryImage>() + '\n';
  EXPECT_EQ(now, *known) << "a new event at the end of JournalEvent is a new line of " << path
                         << "; any other change takes another kJournalSchema";
}

}  // namespace
}  // namespace tandem::exchange
