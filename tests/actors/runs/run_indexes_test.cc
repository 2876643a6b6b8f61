#include "actors/runs/run_indexes.h"

#include <thread>

#include "runtime/base/json.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

nlohmann::json last_step(RunIndexes& indexes, const std::filesystem::path& run) {
  const auto answer = indexes.metrics({run, true}, [](const MetricsIndex& index) {
    const auto steps = index.steps();
    return steps ? nlohmann::json(steps->last) : nlohmann::json();
  });
  return answer ? *answer : nlohmann::json("failed");
}

TEST(RunIndexes, TwoReadersAtOnceSeeWholeFiles) {
  const RunFolder folder;
  const auto run = folder.run("a-1");
  RunIndexes indexes;
  const auto read = [&] {
    std::int64_t seen = 0;
    for (int i = 0; i < 200; ++i) {
      const auto last = last_step(indexes, run);
      if (last.is_null()) continue;
      ASSERT_TRUE(last.is_number()) << last;
      ASSERT_GE(last.get<std::int64_t>(), seen);
      seen = last.get<std::int64_t>();
      const auto page = indexes.samples({run, true}, {.limit = 5});
      ASSERT_TRUE(page.has_value());
    }
  };
  std::thread first(read), second(read);
  for (int step = 1; step <= 500; ++step) {
    folder.append(run / "metrics.jsonl", "{\"step\":" + std::to_string(step) + ",\"x\":1}\n");
    folder.append(run / "samples.jsonl", "{\"step\":" + std::to_string(step) + "}\n");
  }
  first.join();
  second.join();
  EXPECT_EQ(last_step(indexes, run), 500);
}

TEST(RunIndexes, TheRunThatNobodyAskedForLongestGoesFirst) {
  const RunFolder folder;
  RunIndexes indexes(/*runs_max=*/2);
  for (const char* const id : {"a-1", "a-2", "a-3"}) {
    folder.append(folder.run(id) / "metrics.jsonl", "{\"step\":1,\"x\":1}\n");
    EXPECT_EQ(last_step(indexes, folder.run(id)), 1);
  }
  EXPECT_EQ(indexes.runs_held(), 2U);
  indexes.forget(folder.run("a-3"));
  EXPECT_EQ(indexes.runs_held(), 1U);

  RunIndexes few(/*runs_max=*/10, /*cells_max=*/3);  // one row of one key is two cells
  EXPECT_EQ(last_step(few, folder.run("a-1")), 1);
  EXPECT_EQ(last_step(few, folder.run("a-2")), 1);
  EXPECT_EQ(few.runs_held(), 1U);
}

}  // namespace
}  // namespace tandem::runs
