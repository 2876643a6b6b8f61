#include "runtime/node/child_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/base/text.h"
#include "runtime/node/last_lines.h"

namespace tandem::node {
namespace {

TEST(ChildEnvironment, HoldsAFewOfOursAndWhatTheJobGives) {  // CE-1
  const char* const ours[] = {
      "PATH=/bin", "TANDEM_TOKEN=secret", "LC_ALL=C", "HF_TOKEN=secret", "PATHS=no", "LANG=C",
      nullptr};
  EXPECT_EQ(child_environment(ours, {{"LANG", "de"}, {"X", "1"}}),
            (std::vector<std::string>{"PATH=/bin", "LC_ALL=C", "LANG=de", "X=1"}));
  EXPECT_TRUE(child_environment(nullptr, {}).empty());
}

TEST(ChildUsage, IsReadOfALivingProcessAlone) {
  const auto own = usage_of(getpid());
  ASSERT_TRUE(own.has_value());
  EXPECT_GT(own->resident_bytes, 1u << 16);
  EXPECT_GE(own->cpu_seconds, 0);
  EXPECT_FALSE(usage_of(1 << 30).has_value());
}

TEST(UsageWatch, CountsCpuFromTheLastLine) {
  UsageWatch watch({.cpu_seconds_per_line = 10});
  watch.line_passed();
  EXPECT_FALSE(watch.judge({.cpu_seconds = 50})) << "its start";
  EXPECT_FALSE(watch.judge({.cpu_seconds = 60}));
  watch.line_passed();
  EXPECT_FALSE(watch.judge({.cpu_seconds = 65}));
  EXPECT_FALSE(watch.judge({.cpu_seconds = 75}));
  const auto why = watch.judge({.cpu_seconds = 76});
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(why->find("reward.limits.cpu_seconds_per_line: 10"), std::string::npos) << *why;
}

TEST(UsageWatch, NamesTheMemoryLimitAndWantsNothingWithoutLimits) {
  UsageWatch watch({.memory_bytes = 64 << 20});
  EXPECT_FALSE(watch.judge({.resident_bytes = 64 << 20}));
  const auto why = watch.judge({.resident_bytes = 65 << 20});
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(why->find("65 MiB"), std::string::npos) << *why;
  EXPECT_FALSE(UsageWatch({.open_files = 10}).wanted());
}

TEST(LastLines, KeepsTheLastBoundedOnesAsText) {
  LastLines last;
  EXPECT_TRUE(last.lines().empty());
  for (int i = 0; i < 100; ++i) last.add("line " + std::to_string(i) + "\n\n");
  last.add(std::string(100'000, 'x'));
  last.add("\nhalf of \xc3\x1b[31m");
  const auto lines = last.lines();
  ASSERT_EQ(lines.size(), kLastLines);
  EXPECT_EQ(lines[0], "line 94");
  EXPECT_LT(lines[6].size(), kLastLineBytesMax + 10);
  EXPECT_EQ(valid_utf8(lines[7]), lines[7]);
  EXPECT_EQ(lines[7].find('\x1b'), std::string::npos) << "no escape reaches a terminal";
}

}  // namespace
}  // namespace tandem::node
