// The bounds of a trace in a journal, and which steps were lost.
#include "actors/timeline/run_survey.h"

#include <gtest/gtest.h>

namespace tandem::timeline {
namespace {

constexpr std::int64_t kBegun = 1'700'000'000'000;

// Step N is committed N seconds after the run began, up to step 10.
RunSurvey ten_steps(TraceBound from, TraceBound to) {
  RunSurvey survey(from, to);
  survey.take({kBegun, exchange::RunBegan{}});
  for (std::int64_t step = 0; step < 10; ++step)
    survey.take({kBegun + (step + 1) * 1000,
                 exchange::StepTrained{.step = StepId{step}, .groups = {GroupId{1}}}});
  return survey;
}

// In seconds since the run began.
std::pair<double, double> seconds_of(TraceBound from, TraceBound to) {
  const auto range = ten_steps(from, to).range();
  if (!range) return {-1, -1};
  const auto since = [](TraceTime at) { return static_cast<double>(at - from_ms(kBegun)) / 1e6; };
  return {since(range->first), since(range->last)};
}
TraceBound step(std::int64_t number) { return {.step = number, .seconds = {}}; }
TraceBound after(double seconds) { return {.step = {}, .seconds = seconds}; }

using Range = std::pair<double, double>;

TEST(RunSurveyTest, BoundsAreStepsOrTimes) {
  EXPECT_EQ(seconds_of({}, {}), Range(0, 10));
  EXPECT_EQ(seconds_of(step(1), step(1)), Range(0, 1));
  EXPECT_EQ(seconds_of(step(4), step(6)), Range(3, 6)) << "from the commit of step 3";
  EXPECT_EQ(seconds_of({}, step(99)), Range(0, 10));
  EXPECT_EQ(seconds_of(after(2.5), after(4)), Range(2.5, 4));
  EXPECT_EQ(seconds_of(after(2.5), after(1e30)), Range(2.5, 10));
  EXPECT_EQ(seconds_of(step(9), after(9)), Range(8, 9));
}

TEST(RunSurveyTest, RefusesBoundsThatTheRunDoesNotHave) {
  for (const auto& [from, to] : {std::pair{step(11), TraceBound{}},
                                 {step(7), step(5)},
                                 {after(11), TraceBound{}},
                                 {after(5), after(4)}}) {
    const auto range = ten_steps(from, to).range();
    ASSERT_FALSE(range);
    EXPECT_EQ(range.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(range.error().help.empty());
  }
  const auto empty = RunSurvey({}, {}).range();
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kNotFound);
}

TEST(RunSurveyTest, TheLastTrainingOfAStepCounts) {
  RunSurvey survey = ten_steps(step(4), step(5));
  survey.take({kBegun + 20'000, exchange::RunBegan{}});
  survey.take({kBegun + 20'000, exchange::RunResumed{.checkpoint = StepId{2}}});
  for (std::int64_t number = 2; number < 6; ++number)
    survey.take({kBegun + 20'000 + number * 1000,
                 exchange::StepTrained{.step = StepId{number}, .groups = {GroupId{1}}}});
  // A restarted learner repeats a step, which is no training of its own.
  survey.take({kBegun + 90'000, exchange::StepTrained{.step = StepId{2}}});
  const auto range = survey.range();
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, from_ms(kBegun + 22'000));
  EXPECT_EQ(range->last, from_ms(kBegun + 24'000));
  EXPECT_EQ(survey.last_step(), 10);
}

TEST(RunSurveyTest, StepsBehindACheckpointFromWhichALaterAttemptBeginsAreLost) {
  RunSurvey survey({}, {});
  survey.take({kBegun, exchange::RunBegan{}});
  survey.take({kBegun, exchange::RunResumed{.checkpoint = StepId{8}}});
  survey.take({kBegun, exchange::RunResumed{.checkpoint = StepId{4}}});
  EXPECT_FALSE(survey.is_lost(StepId{3}, 0));
  EXPECT_TRUE(survey.is_lost(StepId{4}, 0));
  EXPECT_TRUE(survey.is_lost(StepId{4}, 1));
  EXPECT_FALSE(survey.is_lost(StepId{9}, 2));
}

TEST(RunSurveyTest, KnowsAJournalWithoutItsFront) {
  RunSurvey survey({}, {});
  survey.take({kBegun, exchange::StepTrained{.step = StepId{41}, .groups = {GroupId{1}}}});
  EXPECT_FALSE(survey.is_whole());
  EXPECT_EQ(survey.first_step(), 42);
  EXPECT_TRUE(ten_steps({}, {}).is_whole());
}

}  // namespace
}  // namespace tandem::timeline
