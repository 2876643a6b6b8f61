// The trace of a run directory as a file and on standard output, and what is refused.
#include "actors/main/timeline_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "actors/runs/run_journal.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/runs/run_folder.h"
#include "tests/actors/timeline/made_run.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Made {
  Result<int> code = 0;
  std::string out, err;
};

class TimelineCommandTest : public testing::Test {
 protected:
  // A run of some fifty steps.
  TimelineCommandTest() {
    auto journal = runs::RunJournal::open(run_.string());
    timeline::MadeRun made(5);
    while (made.committed() < 50)
      for (const exchange::JournalEntry& entry : made.next())
        EXPECT_TRUE(
            journal->append(std::span(&entry.event, 1), entry.time_ms, sqlite::Durability::kKill));
  }

  Made make(TimelineCommand command, bool terminal = false) const {
    std::ostringstream out, err;
    Made made;
    made.code = command.run({.console = {.out = out, .err = err, .terminal = terminal}});
    made.out = out.str();
    made.err = err.str();
    return made;
  }
  static std::size_t events_of(const std::string& text) {
    const json trace = parse_json(text);
    return trace.is_object() ? trace["traceEvents"].size() : 0;
  }

  const runs::RunFolder folder_;
  const fs::path run_ = folder_.run("made-1");
};

TEST_F(TimelineCommandTest, WritesAFileAndSaysHowToOpenIt) {
  const fs::path file = folder_.home / "trace.json";
  runs::RunFolder::replace(file, "before");
  const Made made = make({.named = run_, .output = file.string()});
  ASSERT_TRUE(made.code) << made.code.error().message;
  const auto text = read_file(file);
  ASSERT_TRUE(text);
  EXPECT_GT(events_of(*text), 1000u);
  EXPECT_EQ(parse_json(*text)["otherData"]["run"], "made-1");
  EXPECT_NE(made.err.find("events to step"), std::string::npos) << made.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.home), {}), 2) << "and `runs`, no more";
}

TEST_F(TimelineCommandTest, WritesToStandardOutputTheSame) {
  const fs::path file = folder_.home / "trace.json";
  ASSERT_TRUE(make({.named = run_, .output = file.string()}).code);
  EXPECT_EQ(make({.named = run_, .output = "-"}).out, *read_file(file));
}

TEST_F(TimelineCommandTest, APartHasFewerEvents) {
  const Made whole = make({.named = run_, .output = "-"});
  const Made part = make({.named = run_,
                          .output = "-",
                          .from = {.step = 20, .seconds = {}},
                          .to = {.step = 22, .seconds = {}}});
  EXPECT_GT(events_of(part.out), 50u);
  EXPECT_LT(events_of(part.out), events_of(whole.out) / 2);
}

TEST_F(TimelineCommandTest, RefusesATerminalAndRunsThatAreNotThere) {
  const Made terminal = make({.named = run_, .output = "-"}, true);
  ASSERT_FALSE(terminal.code);
  EXPECT_EQ(terminal.code.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(terminal.out, "");
  const Made none = make({.named = folder_.home / "none", .output = "-"});
  ASSERT_FALSE(none.code);
  EXPECT_EQ(none.code.error().code, ErrorCode::kNotFound);
  const Made beyond = make({.named = run_, .output = "-", .from = {.step = 10'000, .seconds = {}}});
  ASSERT_FALSE(beyond.code);
  EXPECT_EQ(beyond.out, "");
}

// A job's directory is made when the job is submitted, its journal when it begins.
TEST_F(TimelineCommandTest, SaysOfARunWithoutAJournalWhy) {
  const auto refusal_of = [&](const char* id, const char* yaml) {
    runs::RunFolder::replace(folder_.run(id) / "job.yaml", yaml);
    const Made made = make({.named = folder_.run(id), .output = "-"});
    EXPECT_FALSE(made.code);
    EXPECT_EQ(made.out, "");
    return made.code ? std::string() : made.code.error().message;
  };
  EXPECT_EQ(refusal_of("queued-1", "name: queued\n"),
            "the run has not begun, so it has no journal yet: its job is queued or starts, or it "
            "ended before it began");
  EXPECT_EQ(refusal_of("counters-1", "name: counters\nactors: { counter: { command: [sh] } }\n"),
            "the run is one of actors alone, which has no journal and so no timeline");
}

TEST_F(TimelineCommandTest, NamesTheMissingDirectoryOfItsOutput) {
  const fs::path folder = folder_.home / "none";
  const Made made = make({.named = run_, .output = (folder / "trace.json").string()});
  ASSERT_FALSE(made.code);
  EXPECT_EQ(made.code.error().message,
            "cannot create file: there is no directory " + folder.string());
  EXPECT_EQ(made.code.error().where, (folder / "trace.json").string());
}

TEST(TraceBoundTest, IsAStepOrATime) {
  EXPECT_EQ(parse_trace_bound("--from", "40")->step, 40);
  EXPECT_EQ(parse_trace_bound("--from", "90s")->seconds, 90);
  EXPECT_EQ(parse_trace_bound("--from", "10m")->seconds, 600);
  for (const char* wrong : {"0", "-3", "x", "", "5 m", "99999999999999999999"}) {
    const auto bound = parse_trace_bound("--from", wrong);
    ASSERT_FALSE(bound) << wrong;
    EXPECT_EQ(bound.error().code, ErrorCode::kInvalid);
    EXPECT_NE(bound.error().message.find("--from"), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::app
