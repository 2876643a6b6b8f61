#include "actors/cli/evaluation_view.h"

#include <gtest/gtest.h>

#include <vector>

#include "actors/cli/table.h"
#include "actors/cli/views.h"
#include "runtime/base/json.h"
#include "tests/actors/cli/api_objects.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr Screen kPipe{kUnlimitedWidth, 1'700'000'000'000};

TEST(EvaluationView, OneCompletionOfEachPromptIsALine) {
  json answer{
      {"mean", 0.5}, {"prompts", 100}, {"scored", 97}, {"failed", 3}, {"failure", "no\x1b"}};
  EXPECT_EQ(render_evaluation(answer, 80),
            "mean reward 0.5 over 97 of 100 prompts, 3 failed, the first: no\\u001b\n");
  answer["mean"] = nullptr;
  EXPECT_EQ(render_evaluation(answer, 80), "");
}

TEST(EvaluationView, HowSureTheMeanIsAndWhatTheMajoritySays) {
  const json answer{{"mean", 0.5},
                    {"stderr", 0.0125},
                    {"mean_with_failures", 0.25},
                    {"maj@2", 0.5},
                    {"maj@16", 0.75},
                    {"failure_reward", -1.0},
                    {"prompts", 100},
                    {"scored", 1500},
                    {"failed", 100},
                    {"failure", "no"},
                    {"extra", {{"right", 0.5}, {"format", 1.0}}}};
  EXPECT_EQ(render_evaluation(answer, 80),
            "mean reward 0.5 over 1500 of 1600 completions of 100 prompts, 100 failed, the first: "
            "no\n"
            "standard error 0.0125\n"
            "mean reward 0.25 with -1 for each failure\n"
            "extra: format 1.000  right 0.500\n"
            "maj@2 0.500  maj@16 0.750\n");
}

TEST(EvaluationView, SamplesAndSourcesHaveATable) {
  const json answer{{"mean", 0.5},
                    {"greedy", 0.25},
                    {"pass@1", 0.5},
                    {"pass@2", 0.6},
                    {"pass@10", 0.875},
                    {"prompts", 2},
                    {"scored", 20},
                    {"failed", 2},
                    {"failure", "late"},
                    {"sources",
                     {{"code", {{"mean", nullptr}, {"scored", 0}, {"failed", 2}}},
                      {"math",
                       {{"mean", 0.5},
                        {"greedy", 0.25},
                        {"pass@1", 0.5},
                        {"pass@2", 0.6},
                        {"pass@10", 0.875},
                        {"scored", 20},
                        {"failed", 0}}}}}};
  EXPECT_EQ(render_evaluation(answer, kUnlimitedWidth),
            "mean reward 0.5 over 20 of 22 completions of 2 prompts, 2 failed, the first: late\n"
            "greedy 0.250\n"
            "pass@1 0.500  pass@2 0.600  pass@10 0.875\n"
            "\n"
            "SOURCE   MEAN  GREEDY  PASS@1  PASS@2  PASS@10  SCORED  FAILED\n"
            "code        -       -       -       -        -       0       2\n"
            "math    0.500   0.250   0.500   0.600    0.875      20       0\n");
  const std::string narrow = render_evaluation(answer, 60);
  for (const std::string& line : lines_of(narrow.substr(narrow.find("\n\n"))))
    EXPECT_LE(display_width(line), 60) << line;
}

TEST(Samples, OfAnEvaluationSayWhichCompletionTheyAre) {
  const json samples = json::array({{{"step", 5},
                                     {"reward", 1.0},
                                     {"prompt", "1+1="},
                                     {"completion", "2"},
                                     {"eval", "final"},
                                     {"sample", 3},
                                     {"greedy", false},
                                     {"data_source", "math"}},
                                    {{"step", 5},
                                     {"reward", 0.0},
                                     {"prompt", "1+1="},
                                     {"completion", "3"},
                                     {"eval", "final"},
                                     {"sample", nullptr},
                                     {"greedy", true}}});
  const auto lines = lines_of(render_samples(samples, OutputForm::kTable, kPipe));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[0].find("STEP  SAMPLE  SOURCE  REWARD"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("3       math"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("greedy  -"), std::string::npos) << lines[2];
  EXPECT_EQ(lines[0].find("ERROR"), std::string::npos);
  const std::string wide = render_samples(samples, OutputForm::kWide, kPipe);
  EXPECT_NE(wide.find("sample 3  from math"), std::string::npos) << wide;
}

}  // namespace
}  // namespace tandem::cli
