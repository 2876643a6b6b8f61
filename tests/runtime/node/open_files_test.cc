// The limit of this process, and those of real shells that are started in each way.
#include "runtime/node/open_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>

#include "runtime/base/file.h"
#include "runtime/node/line_child.h"
#include "runtime/node/process_host.h"
#include "runtime/node/program_output.h"

namespace tandem::node {
namespace {

constexpr rlim_t kFound = 256;
constexpr Duration kPatience = std::chrono::seconds(60);
// posix_spawn returns when the program runs, and its limit is set after that.
const std::string kWaitsForItsLimit =
    "until [ $(ulimit -Sn) = " + std::to_string(kFound) + " ]; do :; done; echo has it";

rlimit limit_now() {
  rlimit limit{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit;
}

// Begins with a soft limit of kFound, and ends with the limit of before.
class OpenFiles : public testing::Test {
 protected:
  OpenFiles() : before_(limit_now()), raised_(std::min(before_.rlim_max, kOpenFilesMax)) {
    unsetenv(kOpenFilesVariable);
    const rlimit found{.rlim_cur = kFound, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &found), 0);
  }
  ~OpenFiles() override {
    unsetenv(kOpenFilesVariable);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0);
  }

  const rlimit before_;
  const rlim_t raised_;
};

TEST_F(OpenFiles, TheSoftLimitIsRaisedAndTheFormerOneRemembered) {
  EXPECT_FALSE(open_files_of_programs());
  for (int time = 0; time < 2; ++time) {  // the second time as in a child
    raise_open_files();
    EXPECT_EQ(limit_now().rlim_cur, raised_);
    EXPECT_EQ(limit_now().rlim_max, before_.rlim_max);
    ASSERT_TRUE(open_files_of_programs());
    EXPECT_EQ(open_files_of_programs()->rlim_cur, kFound);
    EXPECT_EQ(open_files_of_programs()->rlim_max, before_.rlim_max);
  }
}

TEST_F(OpenFiles, AVariableThatIsNoNumberIsNoLimit) {
  for (const char* odd : {"", "many", "256 files", "-1"}) {
    setenv(kOpenFilesVariable, odd, 1);
    EXPECT_FALSE(open_files_of_programs()) << odd;
  }
}

std::string first_line(const ChildLimits& limits) {
  link::IoThread io;
  std::promise<std::string> said;
  const auto child = process_spawner(io)(
      {.argv = {"sh", "-c", "ulimit -Sn; cat"}, .limits = limits},
      {.line = [&](std::string l) { said.set_value(l); }, .ended = [](const ChildEnd&) {}});
  EXPECT_TRUE(child) << render(child.error());
  auto line = said.get_future();
  EXPECT_EQ(line.wait_for(kPatience), std::future_status::ready);
  return line.get();
}

TEST_F(OpenFiles, AProgramThatSpeaksInLinesHasTheFormerLimit_OF1) {
  raise_open_files();
  EXPECT_EQ(first_line({}), std::to_string(kFound));
  EXPECT_EQ(first_line({.open_files = 100}), "100");
}

TEST_F(OpenFiles, AProgramWhoseOutputIsReadHasTheFormerLimit_OF1) {
  raise_open_files();
  const auto input = open_regular("/proc/self/exe");
  const auto output = ProgramOutput::start(
      {.argv = {"sh", "-c", kWaitsForItsLimit}, .environment = {}, .silence_max = kPatience},
      input.value().fd);
  ASSERT_TRUE(output) << render(output.error());
  std::array<char, 100> text{};
  const auto got = (*output)->read(text);
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(std::string(text.data(), *got), "has it\n");
}

TEST_F(OpenFiles, AProcessOfAUserHasTheFormerLimitAndARankTheRaisedOne_OF1) {
  raise_open_files();
  PosixProcessHost host;
  const auto ends_well = [&](bool users_program, const std::string& script) {
    std::promise<ExitStatus> ended;
    const auto started =
        host.spawn({.name = "a shell",
                    .argv = {"sh", "-c", script},
                    .environment = {},
                    .log_path = "/dev/null",
                    .working_directory = {},
                    .users_program = users_program},
                   [&](ProcessId, const ExitStatus& status) { ended.set_value(status); });
    EXPECT_TRUE(started) << render(started.error());
    auto end = ended.get_future();
    EXPECT_EQ(end.wait_for(kPatience), std::future_status::ready);
    return end.get().code == 0;
  };
  EXPECT_TRUE(ends_well(true, kWaitsForItsLimit));
  EXPECT_TRUE(ends_well(false, "test $(ulimit -Sn) = " + std::to_string(raised_) + " && test $" +
                                   kOpenFilesVariable + " = " + std::to_string(kFound)));
}

}  // namespace
}  // namespace tandem::node
