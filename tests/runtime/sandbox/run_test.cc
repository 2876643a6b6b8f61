#include "runtime/sandbox/run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/sandbox/probe.h"

namespace tandem::sandbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Duration kLong = 100s;  // ends a hang

// The machine's own plan; a machine without one cannot run these tests.
class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    const Layers layers = probe_layers();
    const auto made = plan_of(SandboxMode::kAuto, layers);
    if (!made) GTEST_SKIP() << render(made.error());
    plan = *made;
  }
  Outcome shell(const std::string& script, const std::string& input = "",
                const Profile& profile = {}) {
    const auto outcome =
        run(plan, profile, {.argv = {"/bin/sh", "-c", script}, .input = input, .deadline = kLong});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? *outcome : Outcome{};
  }
  Plan plan;
};

TEST_F(RunTest, InputGoesInAndOutputComesBack) {
  const std::string input(3u << 18, 'x');  // more than a pipe holds
  const Outcome outcome = shell("cat; echo problem >&2; exit 3", input);
  EXPECT_EQ(outcome.end, RunEnd::kExited);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.output, input);
  EXPECT_EQ(outcome.errors, "problem\n");
  EXPECT_GT(outcome.memory_bytes_peak, 0u);
}

// Another thread starts processes, each of which has copies of all pipes for a moment.
TEST_F(RunTest, AProcessThatIsBeingStartedElsewhereIsNoSurvivor) {
  std::atomic<bool> done = false;
  std::thread starter([&] {
    while (!done) {
      const pid_t pid = fork();
      if (pid == 0) {
        const Time until = steady_now() + 50ms;  // as a start takes on a busy machine
        while (steady_now() < until) {
        }
        _exit(0);
      }
      waitpid(pid, nullptr, 0);
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(shell("echo out").output, "out\n");
  done = true;
  starter.join();
}

TEST_F(RunTest, AProgramThatReadsNothingEndsAsItEnds) {
  const Outcome outcome = shell("exit 0", std::string(1u << 20, 'x'));
  EXPECT_EQ(outcome.end, RunEnd::kExited);
  EXPECT_EQ(outcome.code, 0);
}

TEST_F(RunTest, TheScratchFolderIsHomeAndWorkingFolderAndEmptyEachTime_XB5) {
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome =
        shell("ls -A; echo x > file && cat file && [ \"$PWD\" = \"$HOME\" ] && echo home");
    EXPECT_EQ(outcome.output, "x\nhome\n") << outcome.errors;
  }
}

TEST_F(RunTest, TheEnvironmentIsTheOneGiven) {
  const auto outcome =
      run(plan, {},
          {.argv = {"/usr/bin/env"}, .environment = {"A=b", "HOME=/root"}, .deadline = kLong});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_NE(outcome->output.find("A=b\n"), std::string::npos);
  EXPECT_EQ(outcome->output.find("/root"), std::string::npos);
  EXPECT_EQ(std::ranges::count(outcome->output, '\n'), 3) << outcome->output;
}

TEST_F(RunTest, ASignalIsToldAsItsNumber) {
  const Outcome outcome = shell("kill -SEGV $$");
  EXPECT_EQ(outcome.end, RunEnd::kSignal);
  EXPECT_EQ(outcome.code, SIGSEGV);
}

TEST_F(RunTest, AProgramThatIsNotThereIsAnErrorOfTheStart) {
  const auto outcome = run(plan, {}, {.argv = {"/usr/bin/no-such-program"}, .deadline = kLong});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kFailed);
  EXPECT_NE(outcome.error().message.find("executing the program: No such file"), std::string::npos)
      << outcome.error().message;
}

TEST_F(RunTest, AStopEndsARun) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const OwnedFd read_end(ends[0]), write_end(ends[1]);
  ASSERT_EQ(write(write_end.get(), "x", 1), 1);
  const auto outcome =
      run(plan, {}, {.argv = {"/bin/sleep", "1000"}, .deadline = kLong, .stop = read_end.get()});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->end, RunEnd::kStopped);
}

TEST_F(RunTest, AProgramRunsFromMemory) {
  const auto bytes = read_file("/bin/echo");
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto program = executable_of(*bytes);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_NE(write(program->get(), "x", 1), 1) << "it is sealed";
  const auto outcome =
      run(plan, {}, {.argv = {"echo", "said"}, .deadline = kLong, .executable = program->get()});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->output, "said\n");
}

TEST_F(RunTest, WithoutASandboxTheProgramSeesTheMachineAndItsGroupEndsWithIt_XB6) {
  const auto outcome = run(
      no_sandbox(), {},
      {.argv = {"/bin/sh", "-c", "ls -d /etc/passwd; sleep 1000 & sleep 1000"}, .deadline = 500ms});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->end, RunEnd::kDeadline);
  EXPECT_EQ(outcome->output, "/etc/passwd\n");
}

TEST_F(RunTest, ReadableFoldersAreInViewAndHiddenOnesAreNot) {
  std::string name = (fs::temp_directory_path() / "tandem-run-XXXXXX").string();
  const fs::path root = fs::canonical(mkdtemp(name.data()));
  chmod(root.c_str(), 0755);
  fs::create_directories(root / "job/runs");
  std::ofstream(root / "job/script") << "the script\n";
  std::ofstream(root / "job/runs/token") << "the token\n";
  const std::string script =
      "cat " + (root / "job/script").string() + "; cat " + (root / "job/runs/token").string();
  const Profile open{.readable = {root / "job"}};
  EXPECT_EQ(shell(script, "", open).output, "the script\nthe token\n");
  const Profile hidden{.readable = {root / "job"}, .hidden = {root / "job/runs"}};
  EXPECT_EQ(shell(script, "", hidden).output, "the script\n");
  fs::remove_all(root);
}

}  // namespace
}  // namespace tandem::sandbox
