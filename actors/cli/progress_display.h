// Shows one job while a command waits for its end: a bar that is drawn anew in place on a terminal;
// elsewhere a line when the job's state changes, and else every five seconds. Used by one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/base/clock.h"

namespace tandem::cli {

class ProgressDisplay {
 public:
  // The streams outlive the object. The bar goes to `out`, lines to `err`, so that a pipe gets data
  // alone. `columns` is the terminal's width now.
  ProgressDisplay(std::ostream& out, std::ostream& err, bool terminal,
                  std::function<int()> columns);

  // `job` is the JSON of docs/design/contract.md. `last`: a line is printed in any case.
  void show(const nlohmann::json& job, Time now, bool last = false);
  // Takes the bar away, so that other text may be printed.
  void erase();

 private:
  std::ostream& out_;
  std::ostream& err_;
  const bool terminal_;
  const std::function<int()> columns_;
  std::ptrdiff_t lines_ = 0;  // how many lines of the screen the bar takes
  Time printed_{};            // when the last line was printed
  std::string line_;          // the last line
  std::string state_;
};

}  // namespace tandem::cli
