#include "scheduler/fleet/crash_loop.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

Time crash_at(std::int64_t s) { return Time{} + Duration(std::chrono::seconds(s)); }

ActorStatus status(ActorState state, std::int64_t since, Reason reason = Working{}) {
  return {.state = state, .since = crash_at(since), .reason = std::move(reason)};
}

const CrashLoop kOnce{.deaths = 1, .since = crash_at(10), .cause = "exited with code 1"};
const CrashLoop kOften{
    .deaths = 4, .since = crash_at(10), .cause = "killed for want of memory at 2 GiB"};

TEST(CrashLoop, SaysHowOftenWhyAndWhatComesNext) {  // CL-1
  EXPECT_EQ(text(kOften, status(ActorState::kBackoff, 50, Backoff{crash_at(58), 4, 5, "x"}),
                 crash_at(50)),
            "restarted 3 times in 40 s (killed for want of memory at 2 GiB); next try in 8 s");
  EXPECT_EQ(text(kOften, status(ActorState::kInitializing, 58, LoadingModel{}), crash_at(60)),
            "restarted 4 times in 50 s (killed for want of memory at 2 GiB); it is starting again "
            "since 2 s");
  EXPECT_EQ(text(kOften, status(ActorState::kReady, 60), crash_at(65)),
            "restarted 4 times in 55 s (killed for want of memory at 2 GiB); it works again since "
            "5 s");
  EXPECT_EQ(text(kOften, status(ActorState::kQueued, 60, WaitingForJobs{2}), crash_at(65)),
            "restarted 3 times in 55 s (killed for want of memory at 2 GiB); next try waits: 2 "
            "jobs are queued before it");
}

TEST(CrashLoop, OneDeathIsToldUntilItIsMended) {  // CL-1
  EXPECT_EQ(
      text(kOnce, status(ActorState::kBackoff, 10, Backoff{crash_at(11), 1, 5, "x"}), crash_at(10)),
      "died (exited with code 1); next try in 1 s");
  EXPECT_EQ(text(kOnce, status(ActorState::kStarting, 11), crash_at(13)),
            "restarted once in 3 s (exited with code 1); it is starting again since 2 s");
  EXPECT_EQ(text(kOnce, status(ActorState::kReady, 14), crash_at(14)), std::nullopt);
  EXPECT_FALSE(loops(kOnce, status(ActorState::kBackoff, 10), crash_at(10)));
}

TEST(CrashLoop, AnActorThatHasOutlivedItsControllerIsNotStartingAgain) {  // CL-1
  EXPECT_EQ(text(kOften, status(ActorState::kStarting, 58, Returning{"gpu-3", crash_at(80)}),
                 crash_at(60)),
            "restarted 4 times in 50 s (killed for want of memory at 2 GiB); it has outlived its "
            "controller on node gpu-3, and is waited for at most 20.0 s");
}

TEST(CrashLoop, EndsWithAHealthyLifeAndWithTheActor) {  // CL-1
  EXPECT_TRUE(loops(kOften, status(ActorState::kReady, 60), crash_at(119)));
  EXPECT_FALSE(loops(kOften, status(ActorState::kReady, 60), crash_at(120)));
  EXPECT_EQ(text(kOften, status(ActorState::kReady, 60), crash_at(120)), std::nullopt);
  EXPECT_EQ(text(kOften, status(ActorState::kFailed, 60), crash_at(61)), std::nullopt);
  EXPECT_EQ(text({}, status(ActorState::kBackoff, 60), crash_at(61)), std::nullopt);
}

}  // namespace
}  // namespace tandem::scheduler
