// A terminal as one screen that is drawn and read key by key: `tandem top`. While the object lives
// the terminal shows its other screen, has no cursor and hands over keys at once; whatever ends it
// (a return, an exception, a signal that await() reports) gives the user's screen back as it was.
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
struct Resized {};  // or continued after a stop: to be drawn anew
struct EndAsked {   // Ctrl-C, SIGTERM, a closed terminal
  int signal = 0;
};
// A character stands for itself. nullopt: nothing came in time.
using TerminalEvent = std::variant<char, PressedKey, Resized, EndAsked>;

class Terminal {
 public:
  // nullptr: one of the two is no terminal, or TERM says that it can do nothing ("dumb").
  static std::unique_ptr<Terminal> open(int input, int output);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  ScreenSize size() const;
  void draw(const std::string& frame);  // lines that end in "\n"; what was there is replaced
  std::optional<TerminalEvent> await(Duration timeout);

 private:
  Terminal(int input, int output);
  void enter();
  void leave();
  TerminalEvent read_signal();
  std::optional<TerminalEvent> read_key();
  void write(const std::string& bytes);

  const int input_, output_;
  int signals_ = -1;  // a signalfd
  termios saved_{};
  sigset_t saved_mask_{};
};

// NO_COLOR and TERM as users set them (no-color.org).
bool wants_colour();

}  // namespace tandem::cli
