#include "actors/launch/ssh_hosts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::launch {
namespace {

using Argv = std::vector<std::string>;

SshHost only(std::string_view text) {
  const auto list = parse_hosts(text);
  EXPECT_TRUE(list && list->hosts.size() == 1) << text;
  return list && list->hosts.size() == 1 ? list->hosts.front() : SshHost{};
}

std::string fault(std::string_view text) {
  const auto list = parse_hosts(text);
  return list ? "" : list.error().message;
}

std::size_t place(const Argv& argv, const std::string& word) {
  return static_cast<std::size_t>(std::ranges::find(argv, word) - argv.begin());
}

TEST(SshHosts, AHostHasAUserAndAPort) {
  const SshHost plain = only("gpu-1");
  EXPECT_EQ(plain.target, "gpu-1");
  EXPECT_EQ(plain.port, std::nullopt);
  EXPECT_EQ(plain.name, "gpu-1");
  const SshHost full = only("me@gpu-1.example:2222");
  EXPECT_EQ(full.target, "me@gpu-1.example");
  EXPECT_EQ(full.port, 2222);
  EXPECT_EQ(full.name, "gpu-1.example");
  const SshHost address = only("me@[fd00::2]:22");
  EXPECT_EQ(address.target, "me@fd00::2");
  EXPECT_EQ(address.port, 22);
  EXPECT_EQ(address.name, "fd00--2");
}

TEST(SshHosts, ContainersOfOneHostAreToldApartByTheirPorts) {
  const auto list = parse_hosts("h:2201, h:2202,other");
  ASSERT_TRUE(list);
  ASSERT_EQ(list->hosts.size(), 3);
  EXPECT_EQ(list->hosts[0].name, "h-2201");
  EXPECT_EQ(list->hosts[1].name, "h-2202");
  EXPECT_EQ(list->hosts[2].name, "other");
}

// A word that ssh would read as an option is no host, nor is one that a shell would read.
TEST(SshHosts, WhatIsNoHostIsRefused) {
  EXPECT_EQ(fault("-oProxyCommand=x"), "`-oProxyCommand=x` is no host: its name is none");
  EXPECT_EQ(fault("a@-b"), "`a@-b` is no host: its name is none");
  EXPECT_EQ(fault("a;b"), "`a;b` is no host: its name is none");
  EXPECT_EQ(fault("fd00::2"), "`fd00::2` is no host: an IPv6 address needs brackets");
  EXPECT_EQ(fault("[fd00::2"), "`[fd00::2` is no host: a bracket is open");
  EXPECT_EQ(fault("a:0"), "`a:0` is no host: `0` is no port");
  EXPECT_EQ(fault("a:"), "`a:` is no host: `` is no port");
  EXPECT_EQ(fault("a,,b"), "`` is no host: nothing is there");
  EXPECT_EQ(fault("a b"), "`a b` is no host: hosts are separated by commas");
  EXPECT_EQ(fault("a,me@a"), "`me@a` is there twice");
  EXPECT_EQ(fault("a:1,a:1"), "`a:1` is there twice");
}

TEST(SshHosts, AFileHasOneInEachLine) {
  const auto list = parse_hosts_file("# ours\ngpu-1 slots=8\n\n  gpu-2:2222  # the old one\n", "h");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->hosts.size(), 2);
  EXPECT_EQ(list->hosts[1].port, 2222);
  EXPECT_EQ(list->warnings,
            Argv{"h:2: `slots=8` is left out: the agent of a host offers all of it"});
  const auto wrong = parse_hosts_file("a\nb c\n", "h");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().where, "h:2");
  const auto none = parse_hosts_file("# nobody\n", "h");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().where, "h");
}

// ssh takes the first value of an option.
TEST(SshHosts, TheConnectionNeverAsksAndTheUsersOptionsGoBeforeDefaults) {
  const Argv argv = connect_argv({.command = "ssh -i 'my key'", .options = {"ConnectTimeout=3"}},
                                 {.target = "me@h", .port = 22, .name = "h"}, "/run/s1");
  EXPECT_EQ(argv[0], "sh");
  EXPECT_EQ(argv[2], "exec ssh -i 'my key' \"$@\" 2>&1");
  EXPECT_LT(place(argv, "BatchMode=yes"), place(argv, "ConnectTimeout=3"));
  EXPECT_LT(place(argv, "ControlPath=/run/s1"), place(argv, "ConnectTimeout=3"));
  EXPECT_LT(place(argv, "ConnectTimeout=3"), place(argv, "ConnectTimeout=10"));
  EXPECT_EQ(argv[argv.size() - 2], "me@h");
  EXPECT_EQ(argv[argv.size() - 3], "--");
  EXPECT_EQ(argv.back().find('\n'), std::string::npos) << "csh ends a quote at a line's end";
}

TEST(SshHosts, TheAddressIsThatOfTheSettingsElseTheHost) {
  const SshHost host{.target = "me@gpu-1", .port = {}, .name = "gpu-1"};
  EXPECT_EQ(address_in_settings("user me\nhostname 10.0.0.2\nport 22\n", host), "10.0.0.2");
  EXPECT_EQ(address_in_settings("", host), "gpu-1");
}

}  // namespace
}  // namespace tandem::launch
