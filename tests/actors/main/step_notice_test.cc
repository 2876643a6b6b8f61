// Tests actors/main/step_notice.h.
#include "actors/main/step_notice.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tandem::app {
namespace {

TEST(StepNotice, SaysWhatIsLeftAsSoonAsThereIsARate) {
  EXPECT_EQ(step_notice("K = 2", 12, 50, 0.25), "K = 2: step 12 of 50, 9s left");
  EXPECT_EQ(step_notice("", 0, 50, 0), "step 0 of 50");
}

TEST(StepNotice, ShortWorkShowsNothing) {
  for (const bool terminal : {true, false}) {
    std::ostringstream out, err;
    const cli::Console console{.out = out, .err = err, .terminal = terminal, .width = {}};
    StepNotice notice(console, "job");
    notice.begin(0);
    notice.show(1, 2);
    EXPECT_EQ(err.str(), "");
    notice.erase();
    EXPECT_EQ(err.str(), terminal ? "\r\x1b[K" : "");
    EXPECT_EQ(out.str(), "");
  }
}

}  // namespace
}  // namespace tandem::app
