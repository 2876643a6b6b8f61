// The hosts that `tandem up --hosts` is given, and the command lines of ssh that reach them. Pure:
// nothing is looked up.
//
// A host is [USER@]HOST[:PORT], as "gpu-1", "root@10.0.0.2:2222" or "[fd00::2]:22"; the port is
// ssh's. A list separates hosts by commas. A file has one in each line, behind `#` is a comment;
// `slots=N`, as files of mpirun and DeepSpeed have it, means nothing here and is said to be left
// out: an agent offers the whole host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::launch {

inline constexpr std::size_t kSshHostsMax = 1024;

struct SshHost {
  std::string target;  // what ssh takes: USER@HOST or HOST, an IPv6 address without brackets
  std::optional<std::int64_t> port;
  // Of its node: the host without the user, and with the port where the list has it several times.
  std::string name;
};

struct HostList {
  std::vector<SshHost> hosts;
  std::vector<std::string> warnings;  // of parts that mean nothing here
};

// Errors: kInvalid, with the host that is wrong, or that is there twice; in a file with its line.
Result<HostList> parse_hosts(std::string_view list);
Result<HostList> parse_hosts_file(std::string_view text, std::string_view origin);

struct SshSettings {
  std::string command = "ssh";       // a shell reads it: "ssh -i key -F config"
  std::vector<std::string> options;  // KEY=VALUE, as `ssh -o` takes them
};

// The connection to a host, at whose `control` path other commands join it. It never asks, gives up
// a host that does not answer, and ends with its standard input. Remotely it runs a script that it
// reads from its standard input up to a line with a single full stop; the lines behind that line
// are the script's own input. Thus neither the script nor a key stands in a command line.
std::vector<std::string> connect_argv(const SshSettings& settings, const SshHost& host,
                                      const std::filesystem::path& control);
// Over that connection: sends what the folder has as a tree of files of the host's cache, where
// `tree` names it. The tree appears there whole or not at all, after its SHA256SUMS were compared.
std::vector<std::string> copy_argv(const SshSettings& settings, const SshHost& host,
                                   const std::filesystem::path& control,
                                   const std::filesystem::path& folder, const std::string& tree);
// Prints the settings of ssh for the host, among them "hostname ADDRESS".
std::vector<std::string> settings_argv(const SshSettings& settings, const SshHost& host);
// That address; `host` itself where the text has none.
std::string address_in_settings(std::string_view text, const SshHost& host);

}  // namespace tandem::launch
