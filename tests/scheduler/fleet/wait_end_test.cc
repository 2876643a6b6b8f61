#include "scheduler/fleet/wait_end.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace tandem::scheduler {
namespace {

// The reasons of states that wait, and have no deadline. A new one needs a limit, or a name here.
const std::set<std::string> kWithoutDeadline = {
    "Submitted",        "WaitingForCapacity", "WaitingForJobs", "InfeasibleShape",
    "WaitingForGang",   "WaitingForSpawn",    "LoadingModel",   "WaitingForProgram",
    "StartingVerifier", "WaitingForActors",   "FormerEnding",   "NodeDrained",
    "Preempted",        "WaitingForJournal",  "NodeLost",       "Working"};

template <std::size_t... I>
std::set<std::string> without_deadline(std::index_sequence<I...>) {
  std::set<std::string> names;
  const auto look_at = [&](const Reason& reason) {
    const auto by = ended_by(reason);
    EXPECT_NE(deadline_of(reason).has_value(), by.has_value()) << reason_name(reason);
    if (by && *by != EndedBy::kOver) names.insert(reason_name(reason));
  };
  (look_at(Reason(std::in_place_index<I>)), ...);
  return names;
}

TEST(WaitEnd, EachReasonHasADeadlineOrNamesWhoEndsIt_WE1) {
  EXPECT_EQ(without_deadline(std::make_index_sequence<std::variant_size_v<Reason>>()),
            kWithoutDeadline);
}

TEST(WaitEnd, TheWordsDifferAndFitTheColumnOfADeadline) {
  std::set<std::string> seen;
  for (int i = 0; i <= static_cast<int>(EndedBy::kOver); ++i) {
    const char* const shown = words(static_cast<EndedBy>(i));
    EXPECT_LE(std::strlen(shown), 22u) << shown;
    EXPECT_TRUE(seen.insert(shown).second) << shown;
  }
}

}  // namespace
}  // namespace tandem::scheduler
