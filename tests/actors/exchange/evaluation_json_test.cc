#include "actors/exchange/evaluation_json.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace tandem::exchange {
namespace {

const messages::EvaluationFigures kFigures{
    .all = {.mean = 0.1,
            .greedy = 0.25,
            .pass = {{1, 0.125}, {2, 0.5}, {16, 0.75}},
            .scored = 97,
            .failed = 3,
            .standard_error = 0.03,
            .majority = {{2, 0.5}, {16, 1}},
            .mean_with_failures = 0.0625,
            .extra = {{"format", 0.75}}},
    .sources = {{"code", {.failed = 3}},
                {"math", {.mean = 0.1, .pass = {{1, 0.5}}, .scored = 97}}}};

TEST(EvaluationJson, AFigureThatDoesNotExistHasNoKeyButTheMean) {
  EXPECT_EQ(figures_json(kFigures), parse_json(R"({
              "mean": 0.1, "greedy": 0.25, "pass@1": 0.125, "pass@2": 0.5, "pass@16": 0.75,
              "scored": 97, "failed": 3, "stderr": 0.03, "maj@2": 0.5, "maj@16": 1.0,
              "mean_with_failures": 0.0625, "extra": {"format": 0.75},
              "sources": {"code": {"mean": null, "scored": 0, "failed": 3},
                          "math": {"mean": 0.1, "pass@1": 0.5, "scored": 97, "failed": 0}}})"));
  EXPECT_EQ(figures_json({}), parse_json(R"({"mean": null, "scored": 0, "failed": 0})"));
}

TEST(EvaluationJson, EachFigureIsAKeyOfMetrics) {
  nlohmann::json line;
  add_metrics(line, kFigures);
  EXPECT_EQ(line, (nlohmann::json{{"val/reward/mean", 0.1},
                                  {"val/reward/greedy", 0.25},
                                  {"val/reward/pass@1", 0.125},
                                  {"val/reward/pass@2", 0.5},
                                  {"val/reward/pass@16", 0.75},
                                  {"val/reward/scored", 97},
                                  {"val/reward/failed", 3},
                                  {"val/reward/stderr", 0.03},
                                  {"val/reward/maj@2", 0.5},
                                  {"val/reward/maj@16", 1.0},
                                  {"val/reward/mean_with_failures", 0.0625},
                                  {"val/reward/extra/format/mean", 0.75},
                                  {"val/code/reward/scored", 0},
                                  {"val/code/reward/failed", 3},
                                  {"val/math/reward/mean", 0.1},
                                  {"val/math/reward/pass@1", 0.5},
                                  {"val/math/reward/scored", 97},
                                  {"val/math/reward/failed", 0}}));
}

TEST(EvaluationJson, APlainEvaluationHasAMeanAndNoMore) {
  EXPECT_FALSE(has_more_than_mean({.all = {.mean = 1, .scored = 3}}));
  EXPECT_TRUE(has_more_than_mean(kFigures));
  EXPECT_TRUE(has_more_than_mean({.sources = {{"a", {}}}}));
}

}  // namespace
}  // namespace tandem::exchange
