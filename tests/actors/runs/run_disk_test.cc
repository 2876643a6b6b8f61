#include "actors/runs/run_disk.h"

#include <gtest/gtest.h>

#include "actors/runs/run_files.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/node/log_rotation.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

TEST(RunDisk, CountsBytesByPartsAndSaysWhatHasGone) {
  const RunFolder folder;
  const fs::path run = folder.home / "runs" / "sums-1";
  EXPECT_EQ(disk_json(run)["bytes"], 0) << "a run that is not there";
  for (const char* const name : {"checkpoints/step-4/trainer", "logs"})
    fs::create_directories(run / name);
  const auto put = [&](const char* name, std::size_t bytes) {
    ASSERT_TRUE(write_file_atomic(run / name, std::string(bytes, 'x')));
  };
  put("checkpoints/step-4/trainer/m.bin", 100);
  put("checkpoints/step-4/model.safetensors", 10);
  put("job.yaml", 7);
  put("metrics.index", 5);
  put("logs/rollout.0.3.log", 1000);
  fs::create_directory_symlink("/", run / "root");  // is not followed
  const nlohmann::json before = disk_json(run);
  EXPECT_EQ(before["bytes"], 1122);
  EXPECT_EQ(
      before["parts"],
      nlohmann::json::parse(R"({"checkpoints": 110, "logs": 1000, "metrics": 5, "other": 7})"));
  EXPECT_EQ(before["dropped"], nlohmann::json::object());

  ASSERT_TRUE(node::rotate_log(run / "logs/rollout.0.3.log", 1));
  const auto files =
      RunFiles::open(run.string(), {}, {.samples_bytes = 1000, .journal_bytes = 1000});
  const std::vector<exchange::JournalEvent> events(50, exchange::LeaseExpired{GroupId{1}});
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE((*files)->sample(R"({"step": 1})"));
    ASSERT_TRUE((*files)->journal(events, sqlite::Durability::kKill));
  }
  const nlohmann::json dropped = disk_json(run)["dropped"];
  EXPECT_EQ(dropped["logs/rollout.0.3.log"]["bytes"], 1000);
  EXPECT_EQ(dropped["samples.jsonl"]["bytes"], 12 * dropped["samples.jsonl"]["lines"].get<int>());
  EXPECT_GT(dropped["samples.jsonl"]["lines"], 100);
  EXPECT_GT(dropped["journal.sqlite"]["archived"], 0);
  EXPECT_FALSE(dropped.contains("metrics.jsonl"));
}

}  // namespace
}  // namespace tandem::runs
