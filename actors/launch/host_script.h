// The script that runs on a host that `tandem up --hosts` reaches, and the lines that both sides
// say. It looks for the program, starts the agent, and waits for the agent's end or for the end of
// its own input, which is the end of the connection. Pure text; it needs sh, coreutils and tar.
//
//   HO-2  Keys and addresses come as lines of standard input, and are no words of a command line
//         and no variables: other users of the host do not see them.
//   HO-3  An agent whose connection has ended without a word is told to end after kAloneSeconds,
//         unless a new connection has taken it over by then. The work of its ranks goes on.
//
// Lines to the host: first the program that is looked for (program_lines()); then `look`, after a
// copy; `run` and start_lines(); once the agent runs `end` (its actors move first) or `now`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem::launch {

inline constexpr int kAloneSeconds = 30;

// This build, as the host looks for it.
struct HostProgram {
  std::string tree;     // the name of its files in the host's cache: a digest of all of them
  std::string entry;    // the program in that tree: "tandem", or "bin/tandem" of a bundle
  std::string sha256;   // of the executable file
  std::string file;     // that file here, where a shared file system has it too
  std::string program;  // the program here: the same file, or what starts it
};

// An agent as the host starts it.
struct HostAgent {
  std::string name;        // of its node
  std::string controller;  // ADDRESS:PORT
  std::string cluster;     // names the folder of its state on the host
  std::string controller_public, node_secret;
  std::string ports = {};  // as of `tandem node`; empty: any
};

// With the line that ends the script.
std::vector<std::string> script_lines();
std::vector<std::string> program_lines(const HostProgram& program);
std::vector<std::string> start_lines(const HostAgent& agent);

// What the host says.
namespace said {
struct Machine {
  std::string id;  // the same for two names of one machine
};
struct Found {
  std::string program;
};
struct NotFound {
  std::string other;  // the version of another build that is there; may be empty
};
struct Running {
  std::string pid;
  bool taken_over = false;  // from an earlier connection
};
struct Ended {
  std::optional<int> code;  // nothing: it was the child of another connection's script
  std::string why;          // its error; may be empty
};
struct Failed {
  std::string why;
};
}  // namespace said
using HostLine = std::variant<said::Machine, said::Found, said::NotFound, said::Running,
                              said::Ended, said::Failed>;

// Nothing for a line that is not the script's, such as a greeting of the login shell.
std::optional<HostLine> parse_host_line(std::string_view line);

}  // namespace tandem::launch
