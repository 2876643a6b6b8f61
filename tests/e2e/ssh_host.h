// A host that ssh reaches, on this machine: a real sshd in the second namespace of a Network, with
// keys of its own, whose users have a cache of their own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/network.h"

namespace tandem::e2e {

class SshHost {
 public:
  enum class Files {
    kShared,  // it sees this machine's files, as hosts with a shared file system do
    kOwn,     // it does not see the program that is tested
  };
  // Returns null where there is no sshd here, or this process may not start one. Its files are
  // below `home`, which outlives it.
  static std::unique_ptr<SshHost> make(const Home& home, const Network& network, Files files);
  ~SshHost();  // kills all that runs there
  SshHost(const SshHost&) = delete;
  SshHost& operator=(const SshHost&) = delete;

  std::string name() const { return network_.second_address(); }
  // The value of --ssh by which the host is reached.
  std::string ssh() const { return "ssh -F " + (folder_ / "config").string(); }
  // The processes there besides sshd.
  std::string processes() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  SshHost(const Home& home, const Network& network)
      : home_(home), network_(network), folder_(home.path() / "ssh-host") {}

  const Home& home_;
  const Network& network_;
  const std::filesystem::path folder_;
};

}  // namespace tandem::e2e
