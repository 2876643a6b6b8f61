// Traces of whole simulated runs: the journals that the exchange of production writes, of runs that
// end, that go on, and whose processes die.
//
// Tests actors/timeline/timeline.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"
#include "tests/actors/timeline/traced.h"
#include "tests/seeds.h"

namespace tandem::timeline {
namespace {

const bool kQuiet = (log::mute(), true);

using Entries = std::vector<exchange::JournalEntry>;

Entries journal_of_a_run(std::uint64_t seed) {
  const auto cluster = controller::cluster_of(seed, controller::random_conditions(seed));
  const controller::Kills kills(*cluster, seed, {.later = 2});
  const std::string id = controller::run_job(*cluster, controller::random_job(seed));
  return cluster->run_of(id)->record.entries;
}

// Steps as metrics.jsonl counts them, that the journal has or the trace shows as trained.
std::set<std::string> committed(const Entries& entries) {
  std::set<std::string> steps;
  for (const exchange::JournalEntry& entry : entries)
    if (const auto* trained = std::get_if<exchange::StepTrained>(&entry.event))
      steps.insert("step " + std::to_string(trained->step.value + 1));
  return steps;
}
std::set<std::string> shown(const Traced& traced) {
  std::set<std::string> steps;
  for (const TraceEvent& event : traced.events)
    if (event.phase == TracePhase::kSpan && event.name.starts_with("step "))
      steps.insert(event.name);
  return steps;
}
bool includes(const std::set<std::string>& all, const std::set<std::string>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

TEST(TimelineSimulation, ARunThatHasEndedShowsEachStepAndEachPause) {
  for_seeds(12, [](std::uint64_t seed) {
    const Entries entries = journal_of_a_run(seed);
    const auto traced = trace_of(entries);
    ASSERT_TRUE(traced) << traced.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_orderly(*traced));
    EXPECT_TRUE(includes(shown(*traced), committed(entries)));
    std::int64_t paused = 0, drawn = 0;
    for (const exchange::JournalEntry& entry : entries)
      paused += std::holds_alternative<exchange::InstallPaused>(entry.event);
    for (const TraceEvent& event : traced->events)
      if (event.name.starts_with("installs"))
        drawn +=
            std::ranges::count(event.arguments, std::string_view("pause_s"),
                               [](const TraceArgument& of) { return std::string_view(of.key); });
    EXPECT_EQ(drawn, paused);
  });
}

// A journal that is read while its run goes on, or that a killed run has left, ends anywhere.
TEST(TimelineSimulation, AJournalThatEndsAnywhereHasAnOrderlyTrace) {
  for_seeds(12, [](std::uint64_t seed) {
    const Entries all = journal_of_a_run(seed);
    Rng rng(seed);
    for (int i = 0; i < 5; ++i) {
      const Entries entries(all.begin(),
                            all.begin() + static_cast<std::ptrdiff_t>(1 + rng.below(all.size())));
      const auto traced = trace_of(entries);
      ASSERT_TRUE(traced) << traced.error().message;
      ASSERT_NO_FATAL_FAILURE(expect_orderly(*traced));
      EXPECT_TRUE(includes(shown(*traced), committed(entries)));
    }
  });
}

TEST(TimelineSimulation, APartShowsTheStepsBetweenItsBounds) {
  for_seeds(12, [](std::uint64_t seed) {
    const Entries entries = journal_of_a_run(seed);
    const auto traced = trace_of(entries, {.from = {3, std::nullopt}, .to = {5, std::nullopt}});
    ASSERT_TRUE(traced) << traced.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_orderly(*traced));
    EXPECT_TRUE(includes(shown(*traced), {"step 3", "step 4", "step 5"}));
    EXPECT_FALSE(shown(*traced).contains("step 7"));
  });
}

}  // namespace
}  // namespace tandem::timeline
