#include "runtime/link/endpoint.h"

#include <gtest/gtest.h>

namespace tandem::link {
namespace {

TEST(Endpoint, is_read_as_it_is_written) {
  for (const char* text : {"127.0.0.1:7420", "localhost:80", "gpu-1.lab:1", "[fd00::1]:7420",
                           "[::1]:0", "[::]:65535", "[::ffff:10.0.0.1]:9", "ipc:///run/x/link"}) {
    const auto read = parse_endpoint(text);
    ASSERT_TRUE(read) << text << ": " << render(read.error());
    EXPECT_EQ(to_string(*read), text);
  }
  EXPECT_EQ(parse_endpoint("[fd00::1]:7420").value(), (Endpoint{"fd00::1", 7420}));
  EXPECT_EQ(parse_endpoint("http://[fd00::1]:80/").value(), (Endpoint{"fd00::1", 80}));
}

TEST(Endpoint, that_is_none_is_refused_with_an_example_of_each_kind) {
  for (const char* text :
       {"", "host", ":80", "host:", "host:99999", "host:8x", "fd00::1", "fd00::1:7420", "[fd00::1]",
        "[fd00::1]7420", "[fd00::1:7420", "fd00::1]:7420", "[]:7420", "[host]:7420",
        "[10.0.0.1]:7420", "[fe80::1%eth0]:7420", "[fd00::1]]:7420", "[[fd00::1]:7420",
        "ipc://x"}) {
    const auto read = parse_endpoint(text);
    EXPECT_FALSE(read) << text;
  }
  EXPECT_NE(parse_endpoint("fd00::1:7420").error().help.find("[fd00::1]:7420"), std::string::npos);
}

TEST(Endpoint, tells_addresses_names_and_others_apart) {
  for (const char* text : {"10.0.0.1", "0.0.0.0", "fd00::1", "::", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(is_address(text)) << text;
    EXPECT_TRUE(is_host(text)) << text;
  }
  for (const char* text : {"gpu-1", "head.lab.example", "a"}) {
    EXPECT_FALSE(is_address(text)) << text;
    EXPECT_TRUE(is_host(text)) << text;
  }
  for (const char* text : {"", "-a", "no_host", "a b", "[fd00::1]", "fd00::1%eth0", "fd00::g",
                           "10.0.0.1:1", ":::", "a/b"}) {
    EXPECT_FALSE(is_address(text)) << text;
    EXPECT_FALSE(is_host(text)) << text;
  }
}

TEST(Endpoint, knows_addresses_that_no_other_host_reaches) {
  for (const char* text : {"127.0.0.1", "127.1.2.3", "::1"}) EXPECT_TRUE(is_loopback(text)) << text;
  for (const char* text : {"10.0.0.1", "fd00::1", "localhost", "::"})
    EXPECT_FALSE(is_loopback(text)) << text;
  for (const char* text : {"0.0.0.0", "::"}) EXPECT_TRUE(is_any(text)) << text;
  for (const char* text : {"10.0.0.1", "::1", "any"}) EXPECT_FALSE(is_any(text)) << text;
}

TEST(Endpoint, finds_the_way_to_this_host_by_either_kind) {
  const auto by_4 = way_to({"127.0.0.1", 7420});
  ASSERT_TRUE(by_4) << render(by_4.error());
  EXPECT_EQ(by_4->ours, "127.0.0.1");
  EXPECT_EQ(by_4->theirs, "127.0.0.1");
  const auto by_6 = way_to({"::1", 7420});
  if (!by_6) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(by_6->ours, "::1");
  EXPECT_EQ(by_6->theirs, "::1");
}

// ZeroMQ looks a name up by itself, unless that has no address of IPv4.
TEST(Endpoint, stays_as_it_is_where_zeromq_can_dial_it) {
  for (const char* text : {"127.0.0.1:7420", "[::1]:7420", "localhost:7420", "ipc:///run/x/link"}) {
    const Endpoint at = parse_endpoint(text).value();
    EXPECT_EQ(in_known_family(at), at) << text;
  }
}

}  // namespace
}  // namespace tandem::link
