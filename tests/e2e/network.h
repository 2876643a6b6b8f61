// Two hosts and the network between them, on this machine: two network namespaces and a third one
// that forwards between them, or drops everything without a word, as a cut cable does.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {

enum class Family { kIpv4, kIpv6 };

class Network {
 public:
  // The hosts have addresses of this kind alone. Returns null where this process may not make
  // namespaces, or `ip` or the kind is missing; `home` runs the commands.
  static std::unique_ptr<Network> make(const Home& home, Family family = Family::kIpv4);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // The words that start a command on a host.
  Words on_first() const { return on("a"); }
  Words on_second() const { return on("b"); }
  std::string first_address() const { return address(1); }
  std::string second_address() const { return address(2); }

  // Cuts the hosts off from each other, until heal(). Both return false where that failed.
  bool cut() const { return forward(false); }
  bool heal() const { return forward(true); }
  // Cuts them off for so long, and returns after it.
  bool cut_for(std::chrono::seconds time) const;

 private:
  Network(const Home& home, std::string mark, Family family)
      : home_(home), mark_(std::move(mark)), family_(family) {}
  std::string address(int subnet) const;
  Words on(const std::string& host) const;
  bool build() const;
  bool forward(bool packets) const;

  const Home& home_;
  const std::string mark_;  // the mark in the names of this process's namespaces
  const Family family_;
};

}  // namespace tandem::e2e
