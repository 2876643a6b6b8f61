// A terminal as one screen that is drawn and read key by key, for `tandem top`. While the object
// exists the terminal shows its alternate screen, has no cursor and delivers keys at once. Whatever
// ends the object (a return, an exception, a signal that await() reports) restores the user's
// screen. At most one object exists at a time, and only the thread that made it uses it.
//
//   TE-1  The modes of the terminal and the signal mask are after the object as they were before.
#pragma once

#include <termios.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "runtime/base/clock.h"

namespace tandem::cli {

struct ScreenSize {
  int columns = 80;
  int rows = 24;
};

enum class PressedKey { kUp, kDown, kLeft, kRight, kEscape };
struct Resized {};  // or continued after a stop: the screen is to be drawn anew
struct EndAsked {   // Ctrl-C, SIGTERM, a closed terminal
  int signal = 0;
};
// A character stands for itself. await() returns nullopt if nothing came in time.
using TerminalEvent = std::variant<char, PressedKey, Resized, EndAsked>;

class Terminal {
 public:
  // Descriptors of the terminal, which stay open. nullptr: one of the two is no terminal, or TERM
  // says that the terminal can do nothing ("dumb").
  static std::unique_ptr<Terminal> open(int input, int output);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  ScreenSize size() const;
  void draw(const std::string& frame);  // lines that end in "\n"; replaces the last frame
  // The next key or signal within `timeout`.
  std::optional<TerminalEvent> await(Duration timeout);

 private:
  Terminal(int input, int output);
  // enter() and leave() switch modes and screen; also around a stop (Ctrl-Z).
  void enter();
  void leave();
  TerminalEvent read_signal();
  std::optional<TerminalEvent> read_key();
  void write(const std::string& bytes);

  const int input_, output_;
  int signals_ = -1;  // a signalfd; await() polls it beside the keys
  termios saved_{};
  sigset_t saved_mask_{};
};

// Whether colours are wanted, by NO_COLOR and TERM (no-color.org).
bool wants_colour();

}  // namespace tandem::cli
