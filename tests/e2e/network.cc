#include "tests/e2e/network.h"

#include <unistd.h>

namespace tandem::e2e {
namespace {

// $1: the mark in the names. Interfaces end with their namespaces.
constexpr const char* kBuild = R"(
set -e
a="$1-a" b="$1-b" between="$1-r"
for host in "$a" "$b" "$between"; do ip netns add "$host"; ip -n "$host" link set lo up; done
link() {  # HOST SUBNET: HOST is .2 and the namespace between is .1
  ip link add up0 netns "$1" type veth peer name "to$2" netns "$between"
  ip -n "$1" addr add "10.71.$2.2/24" dev up0
  ip -n "$between" addr add "10.71.$2.1/24" dev "to$2"
  ip -n "$1" link set up0 up
  ip -n "$between" link set "to$2" up
  ip -n "$1" route add default via "10.71.$2.1"
}
link "$a" 1
link "$b" 2
ip netns exec "$between" sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
)";
constexpr const char* kRemove = R"(for host in a b r; do ip netns del "$1-$host"; done)";
constexpr const char* kForward = R"(echo "$1" > /proc/sys/net/ipv4/ip_forward)";

}  // namespace

Words Network::on(const std::string& host) const {
  return {"ip", "netns", "exec", mark_ + "-" + host};
}

bool Network::build() const {
  return home_.start_program({"sh", "-c", kBuild, "sh", mark_}).wait().code == 0;
}

std::unique_ptr<Network> Network::make(const Home& home) {
  auto network =
      std::unique_ptr<Network>(new Network(home, "tandem-test-" + std::to_string(getpid())));
  return network->build() ? std::move(network) : nullptr;
}

Network::~Network() { home_.start_program({"sh", "-c", kRemove, "sh", mark_}).wait(); }

bool Network::forward(bool packets) const {
  const Words command{"sh", "-c", kForward, "sh", packets ? "1" : "0"};
  return home_.start_program(on("r") + command).wait().code == 0;
}

bool Network::cut_for(std::chrono::seconds time) const {
  if (!cut()) return false;
  home_.start_program({"sleep", std::to_string(time.count())}).wait();
  return heal();
}

}  // namespace tandem::e2e
