#include "runtime/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <optional>
#include <thread>
#include <vector>

namespace tandem {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string pattern = testing::TempDir() + "file.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { std::filesystem::remove_all(directory_); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_),
                                                  std::filesystem::directory_iterator()));
  }

  std::filesystem::path directory_;
};

TEST_F(FileTest, AtomicReplacementIsANewFileWithTheWholeContent) {
  const std::filesystem::path path = directory_ / "state";
  ASSERT_TRUE(write_file_atomic(path, std::string_view("old")));
  const OwnedFd reader(::open(path.c_str(), O_RDONLY));
  ASSERT_TRUE(write_file_atomic(path, std::string_view("new and longer")));
  char seen[8] = {};
  // A reader that had the file open still reads the old one.
  EXPECT_EQ(::read(reader.get(), seen, sizeof seen), 3);
  EXPECT_EQ(read_file(path).value(), "new and longer");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, PartsAreWrittenOneAfterAnother) {
  const std::string header = "header,";
  const std::string body = "body";
  const std::vector<std::span<const std::byte>> parts = {
      std::as_bytes(std::span(header)), {}, std::as_bytes(std::span(body))};
  ASSERT_TRUE(write_file_atomic(directory_ / "parts", parts));
  EXPECT_EQ(read_file(directory_ / "parts").value(), "header,body");
}

TEST_F(FileTest, AFailedReplacementLeavesWhatWasThere) {
  const std::filesystem::path path = directory_ / "state";
  std::filesystem::create_directories(path / "full");  // rename cannot replace it
  const Result<void> failed = write_file_atomic(path, std::string_view("x"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().where, path.string());
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, ErrorsNameThePathAndTheReason) {
  const Result<std::string> absent = read_file(directory_ / "absent");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kFailed);
  EXPECT_EQ(absent.error().message, "cannot open file: No such file or directory");
  EXPECT_EQ(absent.error().where, (directory_ / "absent").string());
  // The directory that is missing is named, and the file that was asked for, not its temporary.
  const auto nowhere = write_file_atomic(directory_ / "absent" / "x", std::string_view("x"));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message,
            "cannot create file: there is no directory " + (directory_ / "absent").string());
  EXPECT_EQ(nowhere.error().where, (directory_ / "absent" / "x").string());
  EXPECT_EQ(nowhere.error().os_error, ENOENT);
}

TEST_F(FileTest, ReadsAFileOfTheRightSizeIntoMemory) {
  const std::filesystem::path path = directory_ / "five";
  ASSERT_TRUE(write_file_atomic(path, std::string_view("12345")));
  std::string five(5, 'x'), four(4, 'x'), six(6, 'x');
  const auto into = [&](std::string& text) {
    return read_file_into(path, std::as_writable_bytes(std::span(text)));
  };
  EXPECT_TRUE(into(five));
  EXPECT_EQ(five, "12345");
  EXPECT_EQ(into(four).error().message, "it has 5 bytes instead of 4");
  EXPECT_EQ(into(six).error().message, "it has 5 bytes instead of 6");
  EXPECT_EQ(read_file_into(directory_ / "absent", {}).error().message,
            "cannot open file: No such file or directory");
}

// FI-1. Each of these would be waited for, or read without an end, by a plain open and read.
TEST_F(FileTest, WhatIsNoRegularFileIsRefusedByNameFI1) {
  const std::filesystem::path fifo = directory_ / "fifo", zero = directory_ / "zero",
                              to_fifo = directory_ / "to_fifo", socket = directory_ / "socket";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", zero);
  std::filesystem::create_symlink(fifo, to_fifo);
  const OwnedFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(socket.native().size(), sizeof address.sun_path);
  socket.native().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);

  const std::pair<std::filesystem::path, const char*> kinds[] = {
      {fifo, "a FIFO"},         {to_fifo, "a FIFO"},  {zero, "a character device"},
      {directory_, "a folder"}, {socket, "a socket"},
  };
  for (const auto& [path, kind] : kinds) {
    const std::string message = std::string("it is ") + kind + ", not a regular file";
    std::string memory(8, 'x');
    for (const Error& error :
         {read_file(path).error(), open_regular(path).error(), refuse_irregular(path).error(),
          read_file_or_pipe(path, 100, Duration::zero()).error(),
          read_file_into(path, std::as_writable_bytes(std::span(memory))).error()}) {
      EXPECT_EQ(error.message, message);
      EXPECT_EQ(cause_of(error), message);
      EXPECT_EQ(error.where, path.string());
      EXPECT_FALSE(error.help.empty());
      EXPECT_EQ(error.code, ErrorCode::kFailed);
    }
    EXPECT_EQ(file_head(path, 4), "");
  }
  EXPECT_FALSE(write_file(fifo, std::span<const std::byte>{})) << "the open would wait for a reader";
  EXPECT_EQ(open_regular(to_fifo, Links::kRefused).error().os_error, ELOOP);
  EXPECT_TRUE(refuse_irregular(directory_ / "absent"));
}

TEST_F(FileTest, AFileIsReadUpToItsLimitFI1) {
  const std::filesystem::path path = directory_ / "five";
  ASSERT_TRUE(write_file_atomic(path, std::string_view("12345")));
  EXPECT_EQ(read_file(path, 5).value(), "12345");
  EXPECT_EQ(file_head(path, 3), "123");
  EXPECT_EQ(file_head(path, 8), "12345");
  const Result<std::string> longer = read_file(path, 4);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().message, "the file has 5 bytes; at most 4 are read");
  // A file without a size of its own, as those of /proc are.
  EXPECT_FALSE(read_file("/proc/self/status", 16));
  EXPECT_TRUE(read_file("/proc/self/status"));
  // A file with holes takes no room on the disk, and none in memory either.
  const OwnedFd holes(::open((directory_ / "holes").c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::ftruncate(holes.get(), off_t{1} << 40), 0);
  EXPECT_NE(read_file(directory_ / "holes").error().message.find("1099511627776 bytes"),
            std::string::npos);
}

TEST_F(FileTest, APipeIsReadWhereTheShellOpenedItAndIsNotWaitedForWithoutEnd) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  const std::filesystem::path path = "/dev/fd/" + std::to_string(reading.get());
  EXPECT_TRUE(is_descriptor(path));
  EXPECT_TRUE(is_descriptor("/dev/stdin"));
  EXPECT_FALSE(is_descriptor(directory_ / "fifo"));
  const auto silent = read_file_or_pipe(path, 100, Duration::zero());
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kTimedOut);
  ASSERT_EQ(::write(writing.get(), "name: a", 7), 7);
  EXPECT_FALSE(read_file_or_pipe(path, 6, Duration::zero())) << "longer than its limit";
  ASSERT_EQ(::write(writing.get(), "name: b", 7), 7);
  writing = OwnedFd();
  EXPECT_EQ(read_file_or_pipe(path, 100, Duration::zero()).value(), "name: b");
}

TEST_F(FileTest, ASecondTakerOfALockLearnsWhoHasIt) {
  const std::filesystem::path path = directory_ / "lock";
  std::optional<FileLock> first = FileLock::take(path, "the state in /x", "stop it").value();
  const Result<FileLock> second = FileLock::take(path, "the state in /x", "stop it");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "the state in /x is in use by process " + std::to_string(::getpid()));
  EXPECT_EQ(second.error().where, path.string());
  EXPECT_EQ(second.error().help, "stop it");
  EXPECT_TRUE(FileLock::held(path));
  first.reset();
  EXPECT_FALSE(FileLock::held(path));
  EXPECT_TRUE(FileLock::take(path, "the state in /x", "stop it"));
  EXPECT_FALSE(FileLock::held(directory_ / "absent"));
}

TEST_F(FileTest, ATakerWaitsForTheOwnersEnd) {
  using namespace std::chrono_literals;
  const std::filesystem::path path = directory_ / "lock";
  std::optional<FileLock> first = FileLock::take(path, "it", "").value();
  int waits = 0;
  const auto late = FileLock::take_within(path, "it", 0ms, [&](pid_t) { ++waits; });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimedOut);
  EXPECT_EQ(late.error().message, "it is in use by process " + std::to_string(::getpid()));
  EXPECT_EQ(waits, 0);
  const auto taken = FileLock::take_within(path, "it", 60s, [&](pid_t owner) {
    EXPECT_EQ(owner, ::getpid());
    if (++waits == 2) first.reset();
  });
  EXPECT_TRUE(taken);
  EXPECT_EQ(waits, 2);
  const auto nowhere = FileLock::take_within(directory_ / "absent/lock", "it", 60s, [](pid_t) {});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kFailed);
}

// Each round begins with the pid of a dead owner in the file, as after a kill.
TEST_F(FileTest, OfTwoTakersAtOnceTheLoserLearnsTheWinnersName) {
  const std::filesystem::path path = directory_ / "lock";
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(write_file(path, std::as_bytes(std::span(std::string_view("1234567\n")))));
    std::barrier together(2);
    std::array<std::optional<Result<FileLock>>, 2> taken;
    const auto take = [&](std::size_t which) {
      together.arrive_and_wait();
      taken[which] = FileLock::take(path, "it", "");
    };
    {
      const std::jthread other([&] { take(1); });
      take(0);
    }
    const std::size_t loser = taken[0]->has_value() ? 1 : 0;
    ASSERT_TRUE(taken[1 - loser]->has_value());
    ASSERT_FALSE(taken[loser]->has_value());
    ASSERT_EQ(taken[loser]->error().message,
              "it is in use by process " + std::to_string(::getpid()));
  }
}

}  // namespace
}  // namespace tandem
