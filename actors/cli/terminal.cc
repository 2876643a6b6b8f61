// Signals arrive as bytes of a signalfd beside the keys, so that one poll() waits for both and no
// handler runs: the chosen signals are blocked while the object exists. A stop (Ctrl-Z) restores
// the user's screen first and enters again when the process is continued.
#include "actors/cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "runtime/base/check.h"

namespace tandem::cli {
namespace {

// The alternate screen, without a cursor and without line wrap.
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr const char* kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kEraseRest = "\x1b[K";  // erases the rest of the line
constexpr const char* kEraseBelow = "\x1b[J";
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

// An arrow key is sent as ESC [ A. A byte that follows ESC within this time is part of a sequence
// and not a key of its own.
constexpr int kSequenceMs = 20;

bool is_dumb() {
  const char* term = std::getenv("TERM");
  return !term || std::string_view(term).empty() || std::string_view(term) == "dumb";
}

bool readable(int descriptor, int timeout_ms) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, timeout_ms) > 0;
}

}  // namespace

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return !is_dumb() && (!no_colour || !*no_colour);
}

std::unique_ptr<Terminal> Terminal::open(int input, int output) {
  if (is_dumb() || ::isatty(input) == 0 || ::isatty(output) == 0) return nullptr;
  return std::unique_ptr<Terminal>(new Terminal(input, output));
}

Terminal::Terminal(int input, int output) : input_(input), output_(output) {
  sigset_t chosen;
  sigemptyset(&chosen);
  for (const int signal : kSignals) sigaddset(&chosen, signal);
  CHECK(pthread_sigmask(SIG_BLOCK, &chosen, &saved_mask_) == 0);
  signals_ = ::signalfd(-1, &chosen, SFD_CLOEXEC | SFD_NONBLOCK);
  CHECK(signals_ >= 0);
  CHECK(::tcgetattr(input_, &saved_) == 0);
  enter();
}

Terminal::~Terminal() {
  leave();
  ::close(signals_);
  CHECK(pthread_sigmask(SIG_SETMASK, &saved_mask_, nullptr) == 0);
}

void Terminal::enter() {
  termios raw = saved_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(input_, TCSANOW, &raw);
  write(kEnter);
}

void Terminal::leave() {
  write(kLeave);
  ::tcsetattr(input_, TCSANOW, &saved_);
}

ScreenSize Terminal::size() const {
  winsize size{};
  if (::ioctl(output_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

// Line by line, so that the screen does not flicker. A line is erased before it is written: behind
// a line as wide as the screen the cursor still stands on its last character. No newline follows
// the last line, which would scroll a full screen.
void Terminal::draw(const std::string& frame) {
  std::string bytes = kHome;
  std::string_view rest = frame;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const bool last = end + 1 >= rest.size();
    bytes += std::string(last ? kEraseBelow : kEraseRest).append(rest.substr(0, end));
    if (!last) bytes += "\r\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  write(bytes);
}

void Terminal::write(const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t some = ::write(output_, bytes.data() + done, bytes.size() - done);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return;  // the terminal is gone; SIGHUP reports that
    done += static_cast<std::size_t>(some);
  }
}

TerminalEvent Terminal::read_signal() {
  signalfd_siginfo info{};
  if (::read(signals_, &info, sizeof info) != sizeof info) return Resized{};
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGWINCH) return Resized{};
  if (signal != SIGTSTP) return EndAsked{signal};
  leave();
  ::kill(::getpid(), SIGSTOP);
  enter();  // it was continued
  return Resized{};
}

std::optional<TerminalEvent> Terminal::read_key() {
  char c = 0;
  // The end of the input: the terminal has been closed.
  if (::read(input_, &c, 1) != 1) return EndAsked{SIGHUP};
  if (c != '\x1b') return c;
  if (!readable(input_, kSequenceMs)) return PressedKey::kEscape;
  if (::read(input_, &c, 1) != 1 || (c != '[' && c != 'O')) return PressedKey::kEscape;
  // The last byte of a sequence is a letter or '~'; the bytes before it are parameters. A sequence
  // that is not known here is read whole and ignored.
  do {
    if (!readable(input_, kSequenceMs) || ::read(input_, &c, 1) != 1) return std::nullopt;
  } while (c < '@');
  if (c == 'A') return PressedKey::kUp;
  if (c == 'B') return PressedKey::kDown;
  if (c == 'C') return PressedKey::kRight;
  if (c == 'D') return PressedKey::kLeft;
  return std::nullopt;
}

std::optional<TerminalEvent> Terminal::await(Duration timeout) {
  const auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  pollfd both[] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                   {.fd = input_, .events = POLLIN, .revents = 0}};
  if (::poll(both, 2, static_cast<int>(std::max<std::int64_t>(timeout_ms, 0))) <= 0)
    return std::nullopt;
  // Signals first: keys that wait do not delay the end.
  if (both[0].revents != 0) return read_signal();
  return read_key();
}

}  // namespace tandem::cli
