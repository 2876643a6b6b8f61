// A terminal of the test's own: it types into one end of a pty and reads what a screen would get.
#include "actors/cli/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace tandem::cli {
namespace {

using namespace std::chrono_literals;

class TerminalTest : public ::testing::Test {
 protected:
  TerminalTest() {
    EXPECT_EQ(::setenv("TERM", "xterm", 1), 0);
    const winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&user_, &program_, nullptr, nullptr, &size), 0);
    EXPECT_EQ(::tcgetattr(program_, &before_), 0);
  }
  ~TerminalTest() override {
    ::close(user_);
    ::close(program_);
  }

  void type(const std::string& keys) {
    EXPECT_EQ(::write(user_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // The text that has been written to the screen and not yet been read.
  std::string shown() {
    std::string text;
    char bytes[4096];
    pollfd one{.fd = user_, .events = POLLIN, .revents = 0};
    while (::poll(&one, 1, 0) > 0) {
      const ssize_t some = ::read(user_, bytes, sizeof bytes);
      if (some <= 0) break;
      text.append(bytes, static_cast<std::size_t>(some));
    }
    return text;
  }
  void expect_as_before() {  // TE-1
    termios now{};
    ASSERT_EQ(::tcgetattr(program_, &now), 0);
    EXPECT_EQ(now.c_lflag, before_.c_lflag);
    sigset_t blocked;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    EXPECT_EQ(sigismember(&blocked, SIGINT), 0);
    const std::string text = shown();
    EXPECT_NE(text.find("\x1b[?1049l"), std::string::npos);
    EXPECT_NE(text.find("\x1b[?25h"), std::string::npos);
  }

  int user_ = -1, program_ = -1;
  termios before_{};
};

TEST_F(TerminalTest, TakesTheOtherScreenAndGivesTheUsersBack) {
  {
    const auto terminal = Terminal::open(program_, program_);
    ASSERT_TRUE(terminal);
    EXPECT_NE(shown().find("\x1b[?1049h"), std::string::npos);
    EXPECT_EQ(terminal->size().columns, 40);
    EXPECT_EQ(terminal->size().rows, 24);
    termios raw{};
    ASSERT_EQ(::tcgetattr(program_, &raw), 0);
    EXPECT_EQ(raw.c_lflag & (ICANON | ECHO), 0u);
  }
  expect_as_before();
}

TEST_F(TerminalTest, AnExceptionGivesTheScreenBack) {
  try {
    const auto terminal = Terminal::open(program_, program_);
    throw std::runtime_error("a frame that cannot be drawn");
  } catch (const std::runtime_error&) {
  }
  expect_as_before();
}

TEST_F(TerminalTest, KeysComeAtOnceAndOneByOne) {
  const auto terminal = Terminal::open(program_, program_);
  type("s\x1b[A\x1b[B\x1b[C\x1bOD\x1b[15~q");
  EXPECT_EQ(std::get<char>(*terminal->await(30s)), 's');
  for (const PressedKey key :
       {PressedKey::kUp, PressedKey::kDown, PressedKey::kRight, PressedKey::kLeft})
    EXPECT_EQ(std::get<PressedKey>(*terminal->await(30s)), key);
  EXPECT_FALSE(terminal->await(30s)) << "a function key means nothing here";
  EXPECT_EQ(std::get<char>(*terminal->await(30s)), 'q');
  EXPECT_FALSE(terminal->await(0s));
  type("\x1b");
  EXPECT_EQ(std::get<PressedKey>(*terminal->await(30s)), PressedKey::kEscape);
}

TEST_F(TerminalTest, SignalsAreReportedAndHarmNothing) {
  {
    const auto terminal = Terminal::open(program_, program_);
    ASSERT_EQ(::raise(SIGWINCH), 0);
    EXPECT_TRUE(std::holds_alternative<Resized>(*terminal->await(30s)));
    ASSERT_EQ(::raise(SIGTERM), 0);
    EXPECT_EQ(std::get<EndAsked>(*terminal->await(30s)).signal, SIGTERM);
  }
  expect_as_before();
}

TEST_F(TerminalTest, AClosedTerminalEndsIt) {
  const auto terminal = Terminal::open(program_, program_);
  ::close(user_);
  user_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(std::holds_alternative<EndAsked>(*terminal->await(30s)));
}

TEST_F(TerminalTest, AFrameFillsTheScreenWithoutScrollingIt) {
  const auto terminal = Terminal::open(program_, program_);
  (void)shown();
  terminal->draw("one\ntwo\n");
  EXPECT_EQ(shown(), "\x1b[H\x1b[Kone\r\r\n\x1b[Jtwo");  // the terminal adds a \r of its own
}

TEST_F(TerminalTest, ADumbTerminalAndAPipeHaveNoScreen) {
  EXPECT_EQ(Terminal::open(::open("/dev/null", O_RDWR | O_CLOEXEC), program_), nullptr);
  EXPECT_TRUE(wants_colour());
  ASSERT_EQ(::setenv("NO_COLOR", "1", 1), 0);
  EXPECT_FALSE(wants_colour());
  ASSERT_EQ(::unsetenv("NO_COLOR"), 0);
  ASSERT_EQ(::setenv("TERM", "dumb", 1), 0);
  EXPECT_EQ(Terminal::open(program_, program_), nullptr);
  EXPECT_FALSE(wants_colour());
  EXPECT_EQ(shown(), "");
}

}  // namespace
}  // namespace tandem::cli
