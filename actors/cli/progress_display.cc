#include "actors/cli/progress_display.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "actors/cli/job_progress.h"
#include "runtime/base/json.h"

namespace tandem::cli {

namespace {

constexpr Duration kLineEvery = std::chrono::seconds(5);  // off a terminal
constexpr const char* kLineUpAndErased = "\x1b[1A\x1b[2K";

}  // namespace

ProgressDisplay::ProgressDisplay(std::ostream& out, std::ostream& err, bool terminal,
                                 std::function<int()> columns)
    : out_(out), err_(err), terminal_(terminal), columns_(std::move(columns)) {}

void ProgressDisplay::show(const nlohmann::json& job, Time now, bool last) {
  if (terminal_) {
    const std::string text = live_bar(job, columns_());
    erase();
    out_ << text << std::flush;
    lines_ = std::count(text.begin(), text.end(), '\n');
    return;
  }
  const std::string state = job.value("state", "");
  if (!last && state == state_ && now - printed_ < kLineEvery) return;
  std::string line = live_line(job);
  if (std::exchange(line_, line) == line) return;
  printed_ = now;
  state_ = state;
  err_ << line << std::endl;
}

void ProgressDisplay::erase() {
  for (; lines_ > 0; --lines_) out_ << kLineUpAndErased;
  out_ << std::flush;
}

}  // namespace tandem::cli
