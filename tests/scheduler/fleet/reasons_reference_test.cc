// docs/reasons.md has one row for each code that a user can meet, and no other.
//
// Tests scheduler/fleet/lifecycle.h, scheduler/fleet/ledger.h.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/result.h"
#include "scheduler/fleet/ledger.h"
#include "scheduler/fleet/lifecycle.h"
#include "scheduler/fleet/staleness.h"
#include "tests/reference_page.h"

namespace tandem::scheduler {
namespace {

constexpr const char* kPage = "reasons.md";
constexpr int kErrorCodes = static_cast<int>(ErrorCode::kUnreachable) + 1;

std::set<std::string> documented(const std::string& heading) {
  return codes_of(table_rows(kPage, heading));
}

// The names of an enum that begins at 0 and ends with `last`.
template <class Code>
std::set<std::string> names_up_to(Code last) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.insert(name(static_cast<Code>(i)));
  return names;
}

template <std::size_t... I>
std::set<std::string> reason_names(std::index_sequence<I...>) {
  std::set<std::string> names;
  (names.insert(reason_name(Reason(std::in_place_index<I>))), ...);
  return names;
}

TEST(ReasonsReference, HasEachReasonOfJobsAndActors) {
  auto names = reason_names(std::make_index_sequence<std::variant_size_v<Reason>>());
  // What the API says instead of a job's reason, and of a node's.
  names.insert({"CrashLoop", "DiskFull", "FilterKeepsGroups", "RewardFails", "Cordoned",
                "GpuCordoned", "HostEnds"});
  EXPECT_EQ(documented("Reasons of jobs, actors and nodes"), names);
}

TEST(ReasonsReference, HasEachWaitOfTheLearnerAndTheRollouts) {
  auto names = names_up_to(AdmitVerdict::kReplacementWaits);
  names.merge(names_up_to(FormVerdict::kAllStepsFormed));
  EXPECT_EQ(documented("Waits of the learner and the rollouts"), names);
}

TEST(ReasonsReference, HasEachReasonToDiscardOrRefuse) {
  EXPECT_EQ(documented("Discarded groups"),
            names_up_to(static_cast<DiscardReason>(kDiscardReasons - 1)));
  EXPECT_EQ(documented("Refused answers"), names_up_to(static_cast<Refusal>(kRefusals - 1)));
}

TEST(ReasonsReference, HasEachErrorWithItsExitCode) {
  std::map<std::string, std::string> errors;             // code: exit code
  std::set<std::string> exit_codes = {"0", "6", "130"};  // 6: import's
  for (int i = 0; i < kErrorCodes; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const std::string number = std::to_string(exit_code(code));
    errors[std::string("`") + tandem::name(code) + "`"] = number;
    exit_codes.insert(number);
  }
  std::map<std::string, std::string> rows;
  for (const TableRow& row : table_rows(kPage, "Errors")) rows[row.at(0)] = row.at(1);
  EXPECT_EQ(rows, errors);
  EXPECT_EQ(documented("Exit codes"), exit_codes);
}

}  // namespace
}  // namespace tandem::scheduler
