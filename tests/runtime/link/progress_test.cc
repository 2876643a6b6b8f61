#include "runtime/link/progress.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem::link {
namespace {

using namespace std::chrono_literals;

Time at(Duration time) { return Time{} + time; }

TEST(Progress, KnowsTheLongestPieceOfEachKindOfWork) {
  Progress progress;
  EXPECT_EQ(progress.report().phase, "idle");
  progress.enter("decode", at(1s));
  EXPECT_EQ(progress.report().pieces, 0u);
  progress.beat(at(3s));
  progress.enter("save", at(4s));
  progress.enter("idle", at(9s));
  progress.enter(std::string_view("decode").data(), at(30s));
  const ProgressReport report = progress.report();
  EXPECT_EQ(report.phase, "decode");
  EXPECT_EQ(report.since, at(30s));
  EXPECT_EQ(report.pieces, 2u);
  EXPECT_EQ(report.longest, 2s) << "the wait from 9 s to 30 s was no work";
  progress.enter("save", at(31s));
  EXPECT_EQ(progress.report().longest, 5s);
  EXPECT_EQ(progress.report().counter, 6u);
}

TEST(Progress, HasAPlaceForEachKindUpToALimit) {
  static const char* const kNames[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                       "j", "k", "l", "m", "n", "o", "p", "q"};
  Progress progress;
  for (const char* name : kNames) {
    progress.enter(name, at(1s));
    EXPECT_EQ(progress.report().phase, name);
  }
  progress.enter("a", at(2s));
  EXPECT_EQ(progress.report().pieces, 1u);
}

// A worker that is looked at twice a second or so.
class Looked : public testing::Test {
 protected:
  Duration look(Duration time) { return stillness.look(progress.report(), at(time)).still; }

  Progress progress;
  Duration waited{};
  Stillness stillness{[this] { return waited; }};
};

TEST_F(Looked, IsStillSinceItsLastSignOfProgress) {
  progress.enter("train", at(0s));
  EXPECT_EQ(look(0s), 0s);
  EXPECT_EQ(look(200ms), 200ms);
  EXPECT_EQ(look(400ms), 400ms);
  progress.beat(at(500ms));
  EXPECT_EQ(look(600ms), 0s);
  EXPECT_EQ(look(800ms), 200ms);
  progress.enter("idle", at(900ms));
  EXPECT_EQ(look(1000ms), 0s);
  EXPECT_EQ(look(1200ms), 0s) << "who waits for others is not still";
}

TEST_F(Looked, IsNotStillWhileTheProcessIsStopped_PS1) {
  progress.enter("train", at(0s));
  EXPECT_EQ(look(200ms), 0s);
  EXPECT_EQ(look(60s), Stillness::kLookMax) << "the thread that looks was stopped as well";
  EXPECT_EQ(look(60s + 200ms), Stillness::kLookMax + 200ms);
}

TEST_F(Looked, IsNotStillWhileItWaitsForAProcessor_PS1) {
  waited = 7s;  // before
  progress.enter("train", at(0s));
  EXPECT_EQ(look(200ms), 0s);
  waited += 150ms;
  EXPECT_EQ(look(400ms), 50ms);
  EXPECT_EQ(look(600ms), 250ms);
  waited = 1s;  // a thread has ended, with its part of the sum
  EXPECT_EQ(look(800ms), 600ms);
}

TEST_F(Looked, IsStillInTheEndHoweverManyOfItsThreadsWait) {
  progress.enter("train", at(0s));
  EXPECT_EQ(look(0s), 0s);
  for (int second = 1; second <= 120; ++second) {
    waited += 4s;  // of four threads that spin
    look(1s * second);
  }
  EXPECT_EQ(look(120s), 120 * Stillness::kLookMax / Stillness::kCountedPart);
}

TEST(Phase, OfAPeerIsAShortWord) {
  for (const char* fine : {"idle", "warm_start", "decode", "Generate"})
    EXPECT_TRUE(is_phase(fine)) << fine;
  for (const std::string& wrong : {std::string("two words"), std::string("a\nevent=forged"),
                                   std::string("\"quoted\""), std::string(kPhaseBytesMax + 1, 'x')})
    EXPECT_FALSE(is_phase(wrong)) << wrong;
}

}  // namespace
}  // namespace tandem::link
