#include "actors/forecast/host_load.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::forecast {
namespace {

TEST(HostLoad, MoreThreadsThanCoresSlowAllDown) {
  HostLoad host(2);
  std::vector<std::string> told;
  for (const char* const name : {"a", "b", "c"})
    host.join(name, [&told, name] { told.emplace_back(name); });
  host.work("a", 1);
  host.work("b", 1);
  EXPECT_EQ(host.slowdown(), 1);
  EXPECT_TRUE(told.empty());
  host.work("c", 1);
  EXPECT_EQ(host.slowdown(), 1.5);
  EXPECT_EQ(told, (std::vector<std::string>{"a", "b"}));  // c knows it
  host.leave("a");
  EXPECT_EQ(host.slowdown(), 1);
  EXPECT_EQ(told.size(), 4u);
  host.work("a", 5);  // it has left
  EXPECT_EQ(host.slowdown(), 1);
}

TEST(HostLoad, WithoutSharedCoresNothingIsSlower) {
  HostLoad host(0);
  host.join("a", [] { FAIL(); });
  host.join("b", [] { FAIL(); });
  host.work("a", 1000);
  host.work("b", 1000);
  EXPECT_EQ(host.slowdown(), 1);
}

}  // namespace
}  // namespace tandem::forecast
