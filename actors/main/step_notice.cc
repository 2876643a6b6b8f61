#include "actors/main/step_notice.h"

#include <ostream>
#include <utility>

#include "actors/cli/table.h"

namespace tandem::app {
namespace {

constexpr Duration kOnTerminal = std::chrono::milliseconds(200);  // between two notices
constexpr Duration kElsewhere = std::chrono::seconds(5);

}  // namespace

std::string step_notice(const std::string& what, std::int64_t done, std::int64_t of,
                        double seconds_per_step) {
  std::string text = what + (what.empty() ? "" : ": ") + "step " + std::to_string(done) + " of " +
                     std::to_string(of);
  if (seconds_per_step > 0)
    text += ", " + cli::age(seconds_per_step * static_cast<double>(of - done)) + " left";
  return text;
}

StepNotice::StepNotice(const cli::Console& console, std::string what)
    : console_(console), what_(std::move(what)), began_(steady_now()), shown_(began_) {}

void StepNotice::show(std::int64_t done, std::int64_t of) {
  const Time now = steady_now();
  if (now - shown_ < (console_.terminal ? kOnTerminal : kElsewhere)) return;
  shown_ = now;
  const auto steps = static_cast<double>(done - first_);
  const std::string text =
      step_notice(what_, done, of, steps > 0 ? seconds(now - began_) / steps : 0);
  if (console_.terminal)
    console_.err << "\r\x1b[K" << text << std::flush;
  else
    console_.err << text << std::endl;
}

void StepNotice::begin(std::int64_t done) {
  began_ = steady_now();
  first_ = done;
}

void StepNotice::erase() const {
  if (console_.terminal) console_.err << "\r\x1b[K" << std::flush;
}

}  // namespace tandem::app
