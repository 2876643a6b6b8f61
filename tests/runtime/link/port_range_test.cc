#include "runtime/link/port_range.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace tandem::link {
namespace {

TEST(PortRange, is_read_as_it_is_written) {
  for (const char* text : {"7420-7499", "1-65535", "80-80"})
    EXPECT_EQ(to_string(parse_port_range(text).value()), text);
  EXPECT_EQ(to_string(PortRange{}), "");
  EXPECT_TRUE(PortRange{}.has(1));
  const PortRange some{7420, 7499};
  for (const int port : {7420, 7499}) EXPECT_TRUE(some.has(port));
  for (const int port : {0, 7419, 7500}) EXPECT_FALSE(some.has(port));
}

TEST(PortRange, that_is_none_is_refused_with_an_example) {
  for (const char* text : {"", "-", "7420", "7420-", "-7499", "0-10", "1-65536", "a-b", "7499-7420",
                           "7420-7499x", "7420 - 7499", "1-2-3"}) {
    const auto read = parse_port_range(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().help.find("7420-7499"), std::string::npos);
  }
}

// A host whose ports of the set are taken.
Result<Endpoint> try_to_listen(const Endpoint& at, const std::set<int>& taken,
                               std::vector<int>& tried) {
  tried.push_back(at.port);
  if (!taken.contains(at.port)) return at;
  return listen_error(at, EADDRINUSE);
}

TEST(PortRange, PN_1_a_free_port_of_the_range_is_taken) {
  const PortRange ports{7420, 7424};
  std::vector<int> tried;
  const auto at = listen_within(ports, {}, [&](const Endpoint& place) {
    return try_to_listen(place, {7420, 7421, 7423, 7424}, tried);
  });
  ASSERT_TRUE(at);
  EXPECT_EQ(at->port, 7422);
}

TEST(PortRange, PN_1_a_range_without_a_free_port_is_named) {
  std::vector<int> tried;
  const auto at = listen_within({7420, 7422}, {}, [&](const Endpoint& place) {
    return try_to_listen(place, {7420, 7421, 7422}, tried);
  });
  ASSERT_FALSE(at);
  EXPECT_NE(at.error().message.find("7420-7422"), std::string::npos) << at.error().message;
  EXPECT_EQ(std::set<int>(tried.begin(), tried.end()), (std::set<int>{7420, 7421, 7422}));
  EXPECT_EQ(tried.size(), 3u);
}

TEST(PortRange, a_named_port_and_another_fault_are_not_tried_again) {
  std::vector<int> tried;
  const auto taken = [&](const Endpoint& place) { return try_to_listen(place, {9000}, tried); };
  EXPECT_FALSE(listen_within({7420, 7422}, {.port = 9000}, taken));
  EXPECT_EQ(tried, std::vector<int>{9000}) << "a port that is named";
  int calls = 0;
  const auto foreign = [&](const Endpoint& place) -> Result<Endpoint> {
    ++calls;
    return listen_error(place, EADDRNOTAVAIL);
  };
  EXPECT_FALSE(listen_within({7420, 7422}, {.host = "192.0.2.1"}, foreign));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(
      listen_within({}, {}, [](const Endpoint& place) { return Result<Endpoint>(place); })->port,
      0);
}

}  // namespace
}  // namespace tandem::link
