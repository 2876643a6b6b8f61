// Frames of `tandem top` as whole screens, and what its keys choose.
#include "actors/cli/top.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "actors/cli/cells.h"
#include "actors/cli/table.h"
#include "tests/actors/cli/api_objects.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

json job(const std::string& id, const std::string& state, int step, json eta) {
  return {{"id", id},
          {"state", state},
          {"step", step},
          {"total_steps", 2500},
          {"reward_mean", 0.8125},
          {"eval", 0.79},
          {"staleness", {{"bound", 2}, {"max", 1}}},
          {"tokens_per_second", {{"generated", 120345.0}, {"trained", 60100.0}}},
          {"eta_seconds", std::move(eta)},
          {"created", kNow - 200'000}};
}

json actor(const std::string& name, const std::string& state, json cpu_percent, json memory_bytes,
           int restarts = 0) {
  return {{"name", name},
          {"job", name.substr(0, name.find('/'))},
          {"state", state},
          {"reason", state == "Backoff" ? "Backoff" : "Working"},
          {"message", state == "Backoff" ? "killed by signal 9 (Killed), again in 3 s" : ""},
          {"cpu_percent", std::move(cpu_percent)},
          {"memory_bytes", std::move(memory_bytes)},
          {"load", "256/256"},
          {"policy_version", 1204},
          {"restarts", restarts},
          {"created", kNow - 7'500'000}};
}

constexpr double kMebibyte = 1 << 20;

TopPicture picture() {
  return {
      .jobs = json::array(
          {job("arithmetic-grpo-1", "Succeeded", 2500, nullptr),
           job("arithmetic-grpo-2", "Running", 1204, 83),
           job("a-long-name-of-an-experiment-in-the-night-17", "WarmStart", 0, nullptr)}),
      .actors = json::array({actor("arithmetic-grpo-1/rollout/0", "Stopped", nullptr, nullptr),
                             actor("arithmetic-grpo-2/learner/0", "Busy", 98.6, 812.0 * kMebibyte),
                             actor("arithmetic-grpo-2/reward/0", "Ready", 0.2, 31.5 * kMebibyte),
                             actor("arithmetic-grpo-2/rollout/0", "Ready", 87.4, 640.0 * kMebibyte),
                             actor("arithmetic-grpo-2/rollout/1", "Backoff", nullptr, nullptr, 2),
                             actor("a-long-name-of-an-experiment-in-the-night-17/learner/0", "Busy",
                                   12, 2048.0 * kMebibyte)}),
      .nodes = json::array({{{"name", "vm"},
                             {"state", "Ready"},
                             {"cpus", 4.0},
                             {"memory_bytes", 8 * 1024 * kMebibyte},
                             {"gpus", json::array()},
                             {"leased", {{"cpus", 2.2}}}},
                            {{"name", "vm2"}, {"state", "Lost"}, {"cpus", 4.0}}}),
      .trouble = ""};
}

TopScreen screen(int columns, int rows) {
  return {.size = {columns, rows}, .colour = false, .now_ms = kNow};
}

std::string frame(const TopChoice& choice, const TopScreen& where) {
  std::string text;
  for (const std::string& line : top_lines(picture(), choice, where)) text += line + "\n";
  return text;
}

class Top : public ::testing::Test {
 protected:
  Top() {
    EXPECT_EQ(::setenv("TZ", "UTC", 1), 0);
    ::tzset();
  }
};

TEST_F(Top, AWarmStartShowsItsOwnStepsAndTime) {
  TopPicture warm = picture();
  warm.jobs[2]["warm_start"] = {{"step", 120}, {"max_steps", 500}, {"eta_seconds", 83}};
  const std::vector<std::string> lines = top_lines(warm, {}, screen(80, 24));
  EXPECT_EQ(lines[5],
            "2  a-long-nam…e-night-17  WarmStart  warm 120/500   0.812   120k    60.1k  1m23s");
}

TEST_F(Top, TheLearnersIdleTimeIsShownBesideThatWhichIsPredicted) {
  TopPicture now = picture();
  now.jobs[1]["rates"] = {{"trainer_idle_fraction", 0.312}};
  now.jobs[1]["predicted"] = {{"trainer_idle_fraction", 0.29}};
  const std::vector<std::string> lines = top_lines(now, {}, screen(160, 24));
  EXPECT_NE(lines[4].find("  1/2  31/29%   120k  "), std::string::npos) << lines[4];
}

TEST_F(Top, GpusThatAreGoneAreNotInUse) {
  TopPicture now = picture();
  now.nodes[0]["leased"]["gpus"] = 3.0;
  now.nodes[0]["gpus"] = {{{"leased", 1.0}, {"gone", false}},
                          {{"leased", 1.0}, {"gone", true}},
                          {{"leased", 1.0}, {"gone", false}}};
  const std::string line = top_lines(now, {}, screen(160, 24))[1];
  EXPECT_NE(line.find("  gpus 2/2"), std::string::npos) << line;
}

// clang-format off
TEST_F(Top, AScreenOf80By24) {
  EXPECT_EQ(frame({}, screen(80, 24)),
            "tandem top  22:13:20  2 jobs, 1 ended\n"
            "1 node (lost: vm2)  cpus 2.2/4 leased, 198% used  memory 3.4 GiB of 8.0 GiB used\n"
            "\n"
            "#  JOB                       STATE           STEP  REWARD  GEN/S  TRAIN/S    ETA\n"
            "1  arithmetic-grpo-2         Running    1204/2500   0.812   120k    60.1k  1m23s\n"
            "2  a-long-name…the-night-17  WarmStart     0/2500   0.812   120k    60.1k      -\n"
            "\n"
            "ACTOR                       STATE    CPU    MEMORY     LOAD  VERSION  REASON\n"
            "a-long-name-…-17/learner/0  Busy     12%   2.0 GiB  256/256     1204  Working\n"
            "arithmetic-g…o-2/learner/0  Busy     99%   812 MiB  256/256     1204  Working\n"
            "arithmetic-grpo-2/reward/0  Ready     0%  31.5 MiB  256/256     1204  Working\n"
            "arithmetic-g…o-2/rollout/0  Ready    87%   640 MiB  256/256     1204  Working\n"
            "arithmetic-g…o-2/rollout/1  Backoff    -         -  256/256     1204  Backoff: …\n"
            "\n\n\n\n\n\n\n\n\n\n"
            "q quit  s sort:name  j/k job:all  ? help\n");
}

TEST_F(Top, AScreenOf40By24) {
  EXPECT_EQ(frame({}, screen(40, 24)),
            "tandem top  22:13:20  2 jobs, 1 ended\n"
            "1 node (lost: vm2)  cpus 2.2/4 leased, …\n"
            "\n"
            "#  JOB              STATE           STEP\n"
            "1  arithme…-grpo-2  Running    1204/2500\n"
            "2  a-long-…ight-17  WarmStart     0/2500\n"
            "\n"
            "ACTOR             STATE    CPU    MEMORY\n"
            "a-long-…earner/0  Busy     12%   2.0 GiB\n"
            "arithme…earner/0  Busy     99%   812 MiB\n"
            "arithme…reward/0  Ready     0%  31.5 MiB\n"
            "arithme…ollout/0  Ready    87%   640 MiB\n"
            "arithme…ollout/1  Backoff    -         -\n"
            "\n\n\n\n\n\n\n\n\n\n"
            "q quit  s sort:name  j/k job:all  ? help\n");
}

TEST_F(Top, AScreenOf120By40WithOneJobByCpu) {
  EXPECT_EQ(frame({.sort = TopSort::kCpu, .job = "arithmetic-grpo-2"}, screen(120, 40)),
            "tandem top  22:13:20  2 jobs, 1 ended\n"
            "1 node (lost: vm2)  cpus 2.2/4 leased, 198% used  memory 3.4 GiB of 8.0 GiB used\n"
            "\n"
            "#  JOB                                    STATE           STEP  REWARD   EVAL  STALE  IDLE  GEN/S  TRAIN/S    ETA    AGE\n"
            "1  arithmetic-grpo-2                      Running    1204/2500   0.812  0.790    1/2     -   120k    60.1k  1m23s  3m20s\n"
            "2  a-long-name-of-an-…nt-in-the-night-17  WarmStart     0/2500   0.812  0.790    1/2     -   120k    60.1k      -  3m20s\n"
            "\n"
            "ACTOR      STATE    CPU    MEMORY     LOAD  VERSION  RESTARTS   AGE  REASON\n"
            "learner/0  Busy     99%   812 MiB  256/256     1204         0  2h5m  Working\n"
            "rollout/0  Ready    87%   640 MiB  256/256     1204         0  2h5m  Working\n"
            "reward/0   Ready     0%  31.5 MiB  256/256     1204         0  2h5m  Working\n"
            "rollout/1  Backoff    -         -  256/256     1204         2  2h5m  Backoff: killed by signal 9 (Killed), again in 3 s\n"
            "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
            "q quit  s sort:cpu  j/k job:arithmetic-grpo-2  ? help\n");
}

TEST_F(Top, APageHasEverythingAndNoKeys) {
  TopScreen page = screen(kUnlimitedWidth, kUnlimitedWidth);
  page.keys = false;
  EXPECT_EQ(frame({}, page),
            "tandem top  22:13:20  2 jobs, 1 ended\n"
            "1 node (lost: vm2)  cpus 2.2/4 leased, 198% used  memory 3.4 GiB of 8.0 GiB used\n"
            "\n"
            "#  JOB                                           STATE           STEP  REWARD   EVAL  STALE  IDLE  GEN/S  TRAIN/S    ETA    AGE\n"
            "1  arithmetic-grpo-2                             Running    1204/2500   0.812  0.790    1/2     -   120k    60.1k  1m23s  3m20s\n"
            "2  a-long-name-of-an-experiment-in-the-night-17  WarmStart     0/2500   0.812  0.790    1/2     -   120k    60.1k      -  3m20s\n"
            "\n"
            "ACTOR                                                   STATE    CPU    MEMORY     LOAD  VERSION  RESTARTS   AGE  REASON\n"
            "a-long-name-of-an-experiment-in-the-night-17/learner/0  Busy     12%   2.0 GiB  256/256     1204         0  2h5m  Working\n"
            "arithmetic-grpo-2/learner/0                             Busy     99%   812 MiB  256/256     1204         0  2h5m  Working\n"
            "arithmetic-grpo-2/reward/0                              Ready     0%  31.5 MiB  256/256     1204         0  2h5m  Working\n"
            "arithmetic-grpo-2/rollout/0                             Ready    87%   640 MiB  256/256     1204         0  2h5m  Working\n"
            "arithmetic-grpo-2/rollout/1                             Backoff    -         -  256/256     1204         2  2h5m  Backoff: killed by signal 9 (Killed), again in 3 s\n");
}
// clang-format on

TEST_F(Top, EveryScreenIsFilledAndNothingWraps) {  // TP-1
  TopPicture odd = picture();
  odd.jobs.push_back({{"id", nullptr}, {"state", 5}});
  odd.actors.push_back(7);
  odd.actors.push_back({{"name", "日本語/\x1b[2J\n"}, {"state", {1, 2}}});
  odd.nodes.push_back("x");
  for (const TopPicture& shown : {picture(), odd, TopPicture{}})
    for (int columns = 1; columns <= 130; columns += 7)
      for (const int rows : {1, 2, 5, 8, 10, 24, 60})
        for (const bool help : {false, true}) {
          const auto lines = top_lines(shown, {.help = help}, screen(columns, rows));
          ASSERT_EQ(lines.size(), static_cast<std::size_t>(rows)) << columns;
          for (const std::string& line : lines) {
            ASSERT_LE(display_width(line), columns) << line;
            ASSERT_EQ(line.find('\x1b'), std::string::npos) << line;
          }
        }
}

TEST_F(Top, ColumnsStayWhereTheyAreFromFrameToFrame) {
  TopWidths widths;
  TopScreen where = screen(120, 40);
  where.kept = &widths;
  TopPicture now = picture();
  const auto place_of = [&](const char* title) {
    for (const std::string& line : top_lines(now, {}, where))
      if (const std::size_t at = line.find(title); at != std::string::npos) return at;
    return std::string::npos;
  };
  const char* const kTitles[] = {"STATE", "REWARD", "MEMORY", "RESTARTS"};
  std::vector<std::size_t> wide;
  for (const char* const title : kTitles) wide.push_back(place_of(title));
  // The job with the longest name ends, and its actor with it.
  now.jobs.erase(2);
  now.actors.erase(5);
  for (std::size_t i = 0; i < std::size(kTitles); ++i) EXPECT_EQ(place_of(kTitles[i]), wide[i]);
  where.kept = nullptr;
  EXPECT_NE(place_of("REWARD"), wide[1]) << "a frame of its own is as narrow as it can be";
}

TEST_F(Top, ListsThatHaveNoRoomAreCounted) {
  TopPicture many = picture();
  for (int i = 2; i < 50; ++i)
    many.actors.push_back(
        actor("arithmetic-grpo-2/rollout/" + std::to_string(i), "Ready", 1, kMebibyte));
  const auto lines = top_lines(many, {}, screen(80, 24));
  ASSERT_EQ(lines.size(), 24u);
  // 14 of 53 actors have a line: of 24 rows, 10 are for the rest of the frame.
  EXPECT_EQ(lines[22], "… and 39 more actors");
  EXPECT_TRUE(lines[23].starts_with("q quit"));
}

TEST_F(Top, ColoursAreOnlyAroundTheText) {
  TopScreen coloured = screen(80, 24);
  coloured.colour = true;
  const TopChoice choice{.job = "arithmetic-grpo-2"};
  const auto plain = top_lines(picture(), choice, screen(80, 24));
  const auto lines = top_lines(picture(), choice, coloured);
  ASSERT_EQ(lines.size(), plain.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string bare = lines[i];
    for (std::size_t at = 0; (at = bare.find('\x1b')) != std::string::npos;)
      bare.erase(at, bare.find('m', at) + 1 - at);
    bare.erase(bare.find_last_not_of(' ') + 1);
    EXPECT_EQ(bare, plain[i]);
  }
  EXPECT_NE(lines[4].find("\x1b[7m"), std::string::npos) << "the chosen job is marked";
}

TEST_F(Top, AnOldPictureSaysWhy) {
  TopPicture old = picture();
  old.trouble = "no controller answers at 127.0.0.1:7422";
  EXPECT_EQ(top_lines(old, {}, screen(80, 24)).back(), old.trouble);
}

// The choice after some keys, one after the other.
TopChoice after(const std::vector<TerminalEvent>& keys, TopChoice choice = {}) {
  for (const TerminalEvent& key : keys) {
    const auto next = after_key(choice, picture(), key);
    EXPECT_TRUE(next);
    if (next) choice = *next;
  }
  return choice;
}

TEST_F(Top, KeysChooseTheOrderAndTheJob) {
  EXPECT_EQ(after({'s'}).sort, TopSort::kState);
  EXPECT_EQ(after({'s', PressedKey::kRight, 's'}).sort, TopSort::kMemory);
  EXPECT_EQ(after({'S'}).sort, TopSort::kRestarts);
  EXPECT_EQ(after({'s', PressedKey::kLeft}).sort, TopSort::kName);
  EXPECT_EQ(after({'j'}).job, "arithmetic-grpo-2") << "the first has ended";
  EXPECT_EQ(after({'2'}).job, "a-long-name-of-an-experiment-in-the-night-17");
  EXPECT_EQ(after({'k'}).job, "a-long-name-of-an-experiment-in-the-night-17");
  EXPECT_EQ(after({'j', PressedKey::kDown, 'j'}).job, "") << "all of them again";
  EXPECT_EQ(after({'1', '9'}).job, "arithmetic-grpo-2") << "there is no ninth";
  EXPECT_EQ(after({'1', '0'}).job, "");
  EXPECT_EQ(after({'x', Resized{}}).job, "");
  EXPECT_EQ(after({'s'}, {.job = "arithmetic-grpo-1"}).job, "") << "it has ended";
  EXPECT_TRUE(after({'?'}).help);
  EXPECT_FALSE(after({'?', '?'}).help);
  EXPECT_FALSE(after_key({}, picture(), 'q'));
  EXPECT_FALSE(after_key({}, picture(), PressedKey::kEscape));
}

}  // namespace
}  // namespace tandem::cli
