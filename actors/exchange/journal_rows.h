// The rows that people read of an event in SQL: the columns of the view `journal`
// (docs/design/contract.md). Derived from the event; never read back by the program.
//
// An event of one group, or of the run, is one row. An event of many groups is a row a group
// besides, of kind `groups_kind`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "actors/messages/event_level.h"

namespace tandem::exchange {

// A set of columns; an empty one is NULL.
struct JournalRow {
  std::string kind;  // empty: the event has rows of its groups alone
  std::optional<std::int64_t> group;
  std::optional<std::int64_t> lease;
  std::string holder;                // "arith-1/rollout/0#3"
  std::optional<std::int64_t> step;  // the step of the batch, slot or checkpoint
  std::optional<std::int64_t> version;
  std::optional<std::int64_t> position;  // the prompt's place in the shuffled sequence
  std::string detail;  // a discard's reason, a checksum, a slot as "index/attempt", …
};

struct JournalRows {
  JournalRow of_event;
  std::vector<JournalRow> of_groups;  // all of one kind
};

JournalRows rows_of(const JournalEvent& event);

// How much the event wants to be looked at, where people read it as an event of the run.
messages::EventLevel level_of(const JournalEvent& event);
// For people.
std::string text_of(const SamplesFull& event);
std::string text_of(const MetricsThinned& event);
messages::EventLevel level_of(
    const messages::RewardFigures& evaluation);  // kWarning: some of it failed

}  // namespace tandem::exchange
