// The script runs here, by a program in the place of ssh that starts what it is told on this
// machine, with a cache of its own. That real hosts take it is shown by tests/e2e/ssh_test.cc.
#include "actors/launch/host_script.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "actors/launch/ssh_hosts.h"
#include "runtime/base/digest.h"
#include "runtime/base/shell_word.h"

namespace tandem::launch {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class HostScript : public testing::Test {
 protected:
  HostScript() {
    std::string made = (fs::temp_directory_path() / "tandem-host-XXXXXX").string();
    root_ = mkdtemp(made.data());
    // The last word is the command for the host.
    write(root_ / "ssh",
          "#!/bin/sh\nfor word; do :; done\nXDG_CACHE_HOME=" + (root_ / "cache").string() +
              " PATH=/usr/bin:/bin exec sh -c \"$word\"\n");
    // In the place of the agent: it keeps what it was given, and ends when it is told to.
    write(root_ / "shared/tandem",
          "#!/bin/sh\ntest \"$1\" = --version && { echo tandem 9; exit; }\n"
          "echo \"$*\" >\"$TANDEM_HOME/words\"\ncp -r \"$TANDEM_HOME/keys\" \"$TANDEM_HOME/kept\"\n"
          "env >\"$TANDEM_HOME/variables\"\n"
          "test \"$3\" = wait || exit 0\ntrap 'exit 143' TERM\nwhile :; do sleep 0.1; done\n");
    program_ = {.tree = "tree-1",
                .entry = "tandem",
                .sha256 = digest(root_ / "shared/tandem"),
                .file = (root_ / "shared/tandem").string(),
                .program = (root_ / "shared/tandem").string()};
  }
  ~HostScript() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
  }
  static std::string digest(const fs::path& path) {
    const std::string text = content(path);
    return sha256_hex(std::as_bytes(std::span(text)));
  }
  SshSettings settings() const { return {.command = (root_ / "ssh").string(), .options = {}}; }
  // The input of a connection that is told these lines.
  fs::path input(const char* name, const std::vector<std::string>& lines) const {
    std::string text;
    for (const auto& part : {script_lines(), program_lines(program_), lines})
      for (const std::string& line : part) text += line + "\n";
    write(root_ / name, text);
    return root_ / name;
  }
  static FILE* start(const std::vector<std::string>& argv, const fs::path& input) {
    std::string command;
    for (const std::string& one : argv) command += shell_word(one) + " ";
    return ::popen((command + "<" + input.string()).c_str(), "r");
  }
  // The lines of ours that a connection prints which is told these lines, and then lost.
  std::vector<HostLine> connection(const std::vector<std::string>& lines) const {
    FILE* const pipe = start(connect_argv(settings(), host_, root_ / "s"), input("input", lines));
    std::vector<HostLine> said;
    std::array<char, 1024> line{};
    while (fgets(line.data(), line.size(), pipe)) {
      std::string text = line.data();
      text.pop_back();
      if (const auto one = parse_host_line(text)) said.push_back(*one);
    }
    pclose(pipe);
    return said;
  }
  int copy(const std::string& tree) const {
    return pclose(
        start(copy_argv(settings(), host_, root_ / "s", root_ / "build", tree), "/dev/null"));
  }
  HostAgent agent(const std::string& controller) const {
    return {.name = "gpu-1",
            .controller = controller,
            .cluster = "c1",
            .controller_public = "public-key",
            .node_secret = "secret-key"};
  }
  fs::path state() const { return root_ / "cache/tandem/hosts/c1/gpu-1"; }

  const SshHost host_{.target = "gpu-1", .port = {}, .name = "gpu-1"};
  fs::path root_;
  HostProgram program_;
};

TEST_F(HostScript, AProgramOfASharedFileSystemIsUsedAsItIs) {
  const auto said = connection(start_lines(agent("10.0.0.1:7420")));
  ASSERT_EQ(said.size(), 4);
  EXPECT_FALSE(std::get<said::Machine>(said[0]).id.empty());
  EXPECT_EQ(std::get<said::Found>(said[1]).program, program_.program);
  EXPECT_FALSE(std::get<said::Running>(said[2]).taken_over);
  EXPECT_EQ(std::get<said::Ended>(said[3]).code, 0);
  EXPECT_EQ(content(state() / "words"), "node --controller 10.0.0.1:7420 --join --name gpu-1\n");
}

TEST_F(HostScript, ItsRanksListenInTheRangeOfPorts) {
  HostAgent ranged = agent("10.0.0.1:7420");
  ranged.ports = "7420-7499";
  connection(start_lines(ranged));
  EXPECT_EQ(content(state() / "words"),
            "node --controller 10.0.0.1:7420 --join --name gpu-1 --ports 7420-7499\n");
}

TEST_F(HostScript, KeysAreFilesOfTheAgentAlone_HO2) {
  connection(start_lines(agent("10.0.0.1:7420")));
  EXPECT_EQ(content(state() / "kept/controller.public"), "public-key\n");
  EXPECT_EQ(content(state() / "kept/node.secret"), "secret-key\n");
  EXPECT_EQ(fs::status(state() / "kept/node.secret").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(content(state() / "variables").find("secret-key"), std::string::npos);
  for (const std::string& word : connect_argv(settings(), host_, root_ / "s"))
    EXPECT_EQ(word.find("secret-key"), std::string::npos);
  EXPECT_FALSE(fs::exists(state() / "keys")) << "they end with the agent";
}

TEST_F(HostScript, AnotherBuildIsNoneOfOurs) {
  program_.sha256 = std::string(64, '0');
  const auto said = connection({});
  ASSERT_EQ(said.size(), 2);
  EXPECT_TRUE(std::holds_alternative<said::NotFound>(said[1]));
}

TEST_F(HostScript, ACopyIsFoundAndOneThatIsDamagedIsNot) {
  write(root_ / "build/tandem", content(program_.file));
  write(root_ / "build/SHA256SUMS", program_.sha256 + "  tandem\n");
  program_.file = (root_ / "not/here").string();
  EXPECT_EQ(copy(program_.tree), 0);
  const auto said = connection({});
  ASSERT_EQ(said.size(), 2);
  EXPECT_EQ(std::get<said::Found>(said[1]).program,
            (root_ / "cache/tandem/bin/tree-1/tandem").string());

  write(root_ / "build/SHA256SUMS", std::string(64, '0') + "  tandem\n");
  EXPECT_NE(copy("tree-2"), 0);
  EXPECT_FALSE(fs::exists(root_ / "cache/tandem/bin/tree-2"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "cache/tandem/bin"), {}), 1)
      << "nothing half is left";
}

TEST_F(HostScript, AnAgentThatIsToldToEndEnds) {
  auto lines = start_lines(agent("wait"));
  lines.emplace_back("end");
  const auto said = connection(lines);
  ASSERT_EQ(said.size(), 4);
  EXPECT_EQ(std::get<said::Ended>(said[3]).code, 143);
}

// That one which nobody takes over ends is shown by tests/e2e/ssh_test.cc.
TEST_F(HostScript, AnAgentWhoseConnectionIsLostIsTakenOverByTheNextOne_HO3) {
  auto lines = start_lines(agent("wait"));
  FILE* const first = start(connect_argv(settings(), host_, root_ / "s"), input("lost", lines));
  std::string begun;
  std::array<char, 1024> line{};
  while (begun.find("running") == std::string::npos && fgets(line.data(), line.size(), first))
    begun = line.data();
  begun.pop_back();
  lines.emplace_back("end");
  const auto said = connection(lines);
  pclose(first);
  ASSERT_EQ(said.size(), 4);
  const auto& running = std::get<said::Running>(said[2]);
  EXPECT_TRUE(running.taken_over);
  EXPECT_EQ(running.pid, std::get<said::Running>(*parse_host_line(begun)).pid);
  EXPECT_EQ(std::get<said::Ended>(said[3]).code, std::nullopt) << "it was the first one's child";
}

TEST(HostLines, OtherLinesMeanNothing) {
  for (const char* const line : {"", "Welcome to gpu-1", "tandem-host", "tandem-host later 1"})
    EXPECT_FALSE(parse_host_line(line)) << line;
}

}  // namespace
}  // namespace tandem::launch
