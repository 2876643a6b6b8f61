#include "tests/e2e/network.h"

#include <unistd.h>

namespace tandem::e2e {
namespace {

// $1: the mark in the names, $2: the hosts' subnets up to their number, $3: what follows it, up to
// the host's number, $4: the bits of a subnet. Interfaces end with their namespaces.
constexpr const char* kBuild = R"(
set -e
a="$1-a" b="$1-b" between="$1-r" front="$2" middle="$3" bits="$4"
nodad=
case "$front" in *:*) nodad=nodad ;; esac # an address that is asked about first is late
for host in "$a" "$b" "$between"; do ip netns add "$host"; ip -n "$host" link set lo up; done
link() {  # HOST SUBNET: HOST is 2 and the namespace between is 1
  ip link add up0 netns "$1" type veth peer name "to$2" netns "$between"
  ip -n "$1" addr add "$front$2${middle}2/$bits" dev up0 $nodad
  ip -n "$between" addr add "$front$2${middle}1/$bits" dev "to$2" $nodad
  ip -n "$1" link set up0 up
  ip -n "$between" link set "to$2" up
  ip -n "$1" route add default via "$front$2${middle}1"
}
link "$a" 1
link "$b" 2
)";
constexpr const char* kRemove = R"(for host in a b r; do ip netns del "$1-$host"; done)";
constexpr const char* kForward = R"(echo "$1" > "$2")";

}  // namespace

Words Network::on(const std::string& host) const {
  return {"ip", "netns", "exec", mark_ + "-" + host};
}

std::string Network::address(int subnet) const {
  const std::string number = std::to_string(subnet);
  return family_ == Family::kIpv4 ? "10.71." + number + ".2" : "fd71:0:0:" + number + "::2";
}

bool Network::build() const {
  const Words subnets =
      family_ == Family::kIpv4 ? Words{"10.71.", ".", "24"} : Words{"fd71:0:0:", "::", "64"};
  return home_.start_program(Words{"sh", "-c", kBuild, "sh", mark_} + subnets).wait().code == 0 &&
         forward(true);
}

std::unique_ptr<Network> Network::make(const Home& home, Family family) {
  const std::string mark = "tandem-test-" + std::to_string(getpid());
  auto network = std::unique_ptr<Network>(new Network(home, mark, family));
  return network->build() ? std::move(network) : nullptr;
}

Network::~Network() { home_.start_program({"sh", "-c", kRemove, "sh", mark_}).wait(); }

bool Network::forward(bool packets) const {
  const Words command{"sh",
                      "-c",
                      kForward,
                      "sh",
                      packets ? "1" : "0",
                      family_ == Family::kIpv4 ? "/proc/sys/net/ipv4/ip_forward"
                                               : "/proc/sys/net/ipv6/conf/all/forwarding"};
  return home_.start_program(on("r") + command).wait().code == 0;
}

bool Network::cut_for(std::chrono::seconds time) const {
  if (!cut()) return false;
  home_.start_program({"sleep", std::to_string(time.count())}).wait();
  return heal();
}

}  // namespace tandem::e2e
