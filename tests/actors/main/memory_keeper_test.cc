#include "actors/main/memory_keeper.h"

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

TEST(MemoryKeeper, GivesBackWhatHasBecomeFreeAndNotTheSameTwice) {
  GiveBackRule rule;
  EXPECT_FALSE(rule.due(20 * kMiB)) << "nothing has become free yet";
  EXPECT_FALSE(rule.due(27 * kMiB)) << "too little";
  EXPECT_TRUE(rule.due(28 * kMiB));
  EXPECT_FALSE(rule.due(28 * kMiB)) << "it is with the system already";
  EXPECT_FALSE(rule.due(2 * kMiB)) << "it was taken again, and used";
  EXPECT_FALSE(rule.due(9 * kMiB));
  EXPECT_TRUE(rule.due(200 * kMiB)) << "240 watches have ended";
  EXPECT_FALSE(rule.due(207 * kMiB));
}

}  // namespace
}  // namespace tandem::app
