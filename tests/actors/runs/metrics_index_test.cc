// Plots of runs with a long history, and of files that are damaged, rewritten or taken away; the
// same lines in pages.
//
// Tests actors/runs/metrics_index.h, actors/runs/metrics_page.h.
#include "actors/runs/metrics_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "actors/runs/metrics_page.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

constexpr StepRange kAll{0, std::int64_t{1} << 53};
constexpr std::uint64_t kMarks = 8 * kMarkBytes;  // more than two looks at the marks read

std::string line(std::int64_t step, double reward) {
  return R"({"step":)" + std::to_string(step) + R"(,"critic/rewards/mean":)" +
         std::to_string(reward) + R"(,"actor/lr":0.5})" + "\n";
}

double reward_at(std::int64_t step) {
  return std::floor(1000 * std::sin(static_cast<double>(step)));
}

std::string history(std::int64_t steps) {
  std::string text;
  for (std::int64_t step = 1; step <= steps; ++step) text += line(step, reward_at(step));
  return text;
}

TEST(MetricsLine, TheScannerReadsWhatAParserReads) {
  MetricsLine fast, slow;
  const auto both = [&](const std::string& flat, const std::string& loose) {
    ASSERT_TRUE(read_metrics_line(flat, fast)) << flat;
    ASSERT_TRUE(read_metrics_line(loose, slow)) << loose;
    EXPECT_EQ(fast.step, slow.step);
    EXPECT_EQ(fast.values, slow.values);
  };
  both(R"({"a":1,"b/c":-2.5e-3,"d":null,"step":7,"z":1e300})",
       R"( { "a" : 1, "b/c" : -2.5e-3, "d" : null, "step" : 7, "z" : 1e300 } )");
  both(R"({"step":0})", R"({ "step" : 0 })");
  for (const char* const none :
       {"", "{", "{}", "{\"step\":1", "{\"step\":1}x", "{\"step\":1.5}", "{\"step\":-1}",
        "{\"step\":1,}", "{\"step\":1,\"a\":-inf}", "{\"step\":1,\"a\":nan}", "{\"a\":1}", "[1]",
        "{\"step\":99999999999999999999}", "{\"step\":1,\"\xff\":1}"})
    EXPECT_FALSE(read_metrics_line(none, fast)) << none;
  ASSERT_TRUE(read_metrics_line(R"({"step":4,"say":"x","list":[1],"b":true,"y":2})", fast));
  EXPECT_EQ(fast.values, (std::vector<std::pair<std::string, double>>{{"y", 2}}));
}

class MetricsIndexTest : public testing::Test {
 protected:
  void append(const std::string& text) const { folder_.append(run_ / "metrics.jsonl", text); }
  MetricSeries rewards(std::size_t points = kPointsMax, StepRange range = kAll) const {
    return index_.series("critic/rewards/mean", range, points);
  }
  void refresh() { ASSERT_TRUE(index_.refresh(run_)); }

  const RunFolder folder_;
  const fs::path run_ = folder_.run("a-1");
  MetricsIndex index_;
};

TEST_F(MetricsIndexTest, AHundredThousandStepsAreReadOnce) {  // MX-1
  constexpr std::int64_t kSteps = 100'000;
  append(history(kSteps));
  const auto size = static_cast<std::uint64_t>(fs::file_size(run_ / "metrics.jsonl"));
  refresh();
  EXPECT_TRUE(index_.complete());
  EXPECT_LE(index_.bytes_read(), size + kMarks);
  const std::uint64_t before = index_.bytes_read();
  const std::string more = line(kSteps + 1, 7);
  append(more);
  refresh();
  EXPECT_LE(index_.bytes_read() - before, more.size() + kMarks);
  EXPECT_EQ(index_.steps()->last, kSteps + 1);

  index_.keep(run_, /*over=*/true);
  struct stat facts;
  ASSERT_EQ(stat((run_ / "metrics.index").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  MetricsIndex next;
  ASSERT_TRUE(next.refresh(run_));
  EXPECT_LE(next.bytes_read(), kMarks);
  EXPECT_EQ(next.keys(), index_.keys());
  EXPECT_EQ(next.series("critic/rewards/mean", kAll, 500).max, rewards(500).max);
}

TEST_F(MetricsIndexTest, EachBucketHasTheExtremesOfItsRows) {  // MX-2
  append(history(10'007));
  refresh();
  for (const std::size_t points : {std::size_t{1}, std::size_t{7}, std::size_t{500}, kPointsMax}) {
    const StepRange range{11, 9'876};
    const MetricSeries series = rewards(points, range);
    ASSERT_LE(series.steps.size(), points);
    ASSERT_EQ(series.steps.front(), range.first);
    for (std::size_t i = 0; i < series.steps.size(); ++i) {
      const std::int64_t end = i + 1 < series.steps.size() ? series.steps[i + 1] : range.last + 1;
      double least = 1e9, most = -1e9, sum = 0;
      for (std::int64_t step = series.steps[i]; step < end; ++step) {
        least = std::min(least, reward_at(step));
        most = std::max(most, reward_at(step));
        sum += reward_at(step);
      }
      ASSERT_EQ(series.min[i], least);
      ASSERT_EQ(series.max[i], most);
      ASSERT_NEAR(series.mean[i], sum / static_cast<double>(end - series.steps[i]), 1e-9);
    }
  }
  EXPECT_TRUE(rewards(10, {20'000, 30'000}).steps.empty());
  EXPECT_TRUE(rewards(10, {5, 4}).steps.empty());
  EXPECT_TRUE(index_.series("no/such", kAll, 10).steps.empty());
}

TEST_F(MetricsIndexTest, AValueThatIsNotThereIsAGap) {  // MX-2
  append(line(1, 1) + "{\"step\":2,\"critic/rewards/mean\":null}\n{\"step\":3}\n" + line(5, 5));
  refresh();
  const MetricSeries series = rewards();
  EXPECT_EQ(series.steps, (std::vector<std::int64_t>{1, 2, 3, 5}));
  EXPECT_EQ(series.min[0], 1);
  EXPECT_TRUE(std::isnan(series.min[1]) && std::isnan(series.max[1]) && std::isnan(series.mean[1]));
  EXPECT_TRUE(std::isnan(series.min[2]));
  EXPECT_EQ(series.max[3], 5);
}

TEST_F(MetricsIndexTest, TheLaterLineOfAStepWins) {
  append(line(1, 1) + line(2, 2) + line(3, 3));
  refresh();
  append("{\"step\":2,\"actor/lr\":1}\n" + line(3, 30) + line(4, 40));
  refresh();
  const MetricSeries series = rewards();
  EXPECT_EQ(series.steps, (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(std::isnan(series.mean[1]));  // the later line has none
  EXPECT_EQ(series.mean[2], 30);
  EXPECT_EQ(series.mean[3], 40);
}

TEST_F(MetricsIndexTest, AnEvaluationStandsAtItsVersion) {
  const auto evaluation = [](std::int64_t version) {
    return R"({"eval":"periodic","step":)" + std::to_string(version) + R"(,"val/reward/mean":)" +
           std::to_string(version) + "}\n";
  };
  append(evaluation(-1) + line(1, 1) + evaluation(0) + line(2, 2) + line(3, 3) + evaluation(2));
  refresh();
  const MetricSeries series = index_.series("val/reward/mean", kAll, kPointsMax);
  EXPECT_TRUE(series.steps.size() == 4 && std::isnan(series.mean[1])) << "no step has the figure";
  EXPECT_EQ(rewards().steps, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(std::isnan(rewards().mean[0]));
  EXPECT_EQ(rewards().mean[2], 2) << "the step's own figures stay";
  EXPECT_EQ(series.mean[0], 0);
  EXPECT_EQ(series.mean[2], 2);
  const MetricSeries all = index_.series("val/reward/mean", {-1, 3}, kPointsMax);
  EXPECT_EQ(all.steps, (std::vector<std::int64_t>{-1, 0, 1, 2, 3}));
  EXPECT_EQ(all.mean[0], -1);
}

TEST_F(MetricsIndexTest, AFileThatWasRewrittenIsReadAnew) {
  append(history(100));
  refresh();
  index_.keep(run_, true);
  // A resumed run does this: it writes a new file without the steps beyond its checkpoint.
  ASSERT_TRUE(write_file_atomic(run_ / "metrics.jsonl", history(50)));
  append(line(51, -1));
  refresh();
  EXPECT_EQ(index_.steps()->last, 51);
  EXPECT_EQ(rewards().mean.back(), -1);
  MetricsIndex next;  // the copy is of the old file
  ASSERT_TRUE(next.refresh(run_));
  EXPECT_EQ(next.steps()->last, 51);
  fs::remove(run_ / "metrics.jsonl");
  refresh();
  EXPECT_FALSE(index_.steps());
  EXPECT_TRUE(index_.keys().empty());
}

TEST_F(MetricsIndexTest, DamageCostsTheDamagedLinesAlone) {
  append(line(1, 1) + "\xff\xfe garbage \x80\n{\"step\":\"2\"}\n{\"step\":-3}\n[]\n\n" +
         std::string(2 * kLineBytesMax, '[') + "\n" +
         "{\"step\":4,\"critic/rewards/mean\":\"high\",\"k\xff\":1}\n" + line(5, 5) +
         "{\"step\":6,\"critic/rew");
  refresh();
  EXPECT_EQ(rewards().steps.front(), 1);
  EXPECT_EQ(rewards().steps.back(), 5);
  EXPECT_EQ(rewards().mean.back(), 5);
}

TEST_F(MetricsIndexTest, ADamagedIndexIsMadeAgain) {
  append(history(1000));
  refresh();
  index_.keep(run_, true);
  const std::string good = read_file(run_ / "metrics.index").value();
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
  for (const std::string& bad :
       {flipped, good.substr(0, good.size() / 2), std::string(), good + "x"}) {
    folder_.replace(run_ / "metrics.index", bad);
    MetricsIndex next;
    ASSERT_TRUE(next.refresh(run_));
    EXPECT_EQ(next.steps()->last, 1000);
    EXPECT_EQ(next.series("critic/rewards/mean", kAll, 1000).mean, rewards(1000).mean);
  }
}

TEST_F(MetricsIndexTest, LinksAreNotFollowed) {
  folder_.append(folder_.home / "elsewhere", history(10));
  fs::create_symlink(folder_.home / "elsewhere", run_ / "metrics.jsonl");
  EXPECT_FALSE(index_.refresh(run_).has_value());
  EXPECT_FALSE(index_.steps());
}

TEST_F(MetricsIndexTest, AnIndexThatIsFullKeepsItsPeaks) {  // MX-3
  constexpr std::size_t kCells = 1000;
  MetricsIndex small(kCells);
  for (std::int64_t step = 1; step <= 5000; ++step)
    append(line(step, step == 1777 ? 1e6 : step == 4321 ? -1e6 : reward_at(step)));
  ASSERT_TRUE(small.refresh(run_));
  EXPECT_LE(small.cells(), kCells);
  const MetricSeries series = small.series("critic/rewards/mean", kAll, kPointsMax);
  EXPECT_EQ(*std::max_element(series.max.begin(), series.max.end()), 1e6);
  EXPECT_EQ(*std::min_element(series.min.begin(), series.min.end()), -1e6);
  EXPECT_EQ(small.steps()->first, 1);
  EXPECT_EQ(small.steps()->last, 5000);
}

// Reads all pages; `at_page` is called before each.
Result<std::vector<nlohmann::json>> all_lines(const fs::path& run, MetricsPageQuery query,
                                              const std::function<void(int)>& at_page = {}) {
  std::vector<nlohmann::json> lines;
  for (int number = 0;; ++number) {
    if (at_page) at_page(number);
    const auto page = metrics_page(run, query);
    if (!page) return page.error();
    for (const nlohmann::json& line : (*page)["lines"]) lines.push_back(line);
    if ((*page)["next"].is_null()) return lines;
    query.after = (*page)["next"].get<std::string>();
  }
}

TEST(MetricsPage, PagesAreTheLinesOfOneFile) {  // MP-1
  const RunFolder folder;
  const fs::path run = folder.run("a-1");
  EXPECT_EQ(all_lines(run, {})->size(), 0U) << "no file yet";
  std::string text = "no json\n[1]\n{\"a/x\":1}\n";
  for (int step = 1; step <= 60; ++step)
    text += R"({"step":)" + std::to_string(step) + R"(,"a/x":)" + std::to_string(step) +
            R"(,"b":2,"pad":")" + std::string(200'000, '.') + "\"}\n";
  folder.append(run / "metrics.jsonl", text + R"({"step":61)");
  int pages = 0;
  const auto all = all_lines(run, {}, [&](int) { ++pages; });
  ASSERT_TRUE(all) << render(all.error());
  ASSERT_EQ(all->size(), 60U);
  EXPECT_GE(pages, 3);
  for (int step = 1; step <= 60; ++step)
    EXPECT_EQ((*all)[static_cast<std::size_t>(step - 1)]["step"], step);
  const auto some = all_lines(run, {.globs = {"c*", "a/?"}, .steps = {40, 41}});
  ASSERT_EQ(some->size(), 2U);
  EXPECT_EQ((*some)[1], nlohmann::json({{"step", 41}, {"a/x", 41}}));
  // A run that is resumed meanwhile cuts its file and writes on.
  const auto cut = all_lines(run, {}, [&](int page) {
    if (page == 1) folder.replace(run / "metrics.jsonl", "{\"step\":1}\n");
  });
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("replaced"), std::string::npos) << render(cut.error());
  for (const char* const wrong : {"x", "1.2.3", "1.2.3.4.5", "1.2.3.4.0x", "-1.2.3.4.0"})
    EXPECT_EQ(metrics_page(run, {.after = wrong}).error().code, ErrorCode::kInvalid) << wrong;
}

TEST(MetricsPage, GlobsMatchWholeKeys) {
  for (const auto& [glob, key] :
       std::vector<std::pair<std::string, std::string>>{{"*", ""},
                                                        {"a*", "a"},
                                                        {"*a", "ba"},
                                                        {"a*c*e", "abcde"},
                                                        {"a/?", "a/b"},
                                                        {"**", "x"},
                                                        {"*aab", "aaaab"}})
    EXPECT_TRUE(glob_matches(glob, key)) << glob << " " << key;
  for (const auto& [glob, key] : std::vector<std::pair<std::string, std::string>>{
           {"", "a"}, {"a", "ab"}, {"?", ""}, {"a*c", "abcd"}, {"a/?", "a/"}, {"A", "a"}})
    EXPECT_FALSE(glob_matches(glob, key)) << glob << " " << key;
  std::string stars;
  for (int i = 0; i < 500; ++i) stars += "a*";
  EXPECT_FALSE(glob_matches(stars + "b", std::string(2000, 'a'))) << "and that at once";
}

}  // namespace
}  // namespace tandem::runs
