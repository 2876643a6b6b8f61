#include "actors/runs/batch_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "runtime/base/file.h"
#include "tests/actors/runs/recorded_batches.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

const RecordedJob kJob{.version = "1.2.3", .device = "cpu", .yaml = "name: a\n"};

class BatchLogTest : public testing::Test {
 protected:
  BatchLogWriter writer(const RecordedJob& job = kJob) const {
    auto opened = BatchLogWriter::open(run_, job);
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }
  BatchLogReader reader() const {
    auto opened = BatchLogReader::open(run_);
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }
  static void keep(BatchLogWriter& log, const RecordedBatch& batch) {
    const auto kept = log.keep(batch.step, batch.payloads);
    EXPECT_TRUE(kept) << kept.error().message;
  }
  static std::string bytes_of(const RecordedBatch& batch) { return wire::encode(batch); }
  void expect_read(std::int64_t step, const RecordedBatch& batch) const {
    const auto read = reader().read(StepId{step});
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(bytes_of(*read), bytes_of(batch)) << "step " << step;
  }
  fs::path file(int number) const {
    return batch_log_folder(run_) / ("batches-00000" + std::to_string(number) + ".log");
  }

  const RunFolder folder_;
  const fs::path run_ = folder_.run("a-1");
};

TEST_F(BatchLogTest, BatchesComeBackAsTheyWere_BL1) {
  BatchLogWriter log = writer();
  keep(log, recorded_batch(0, 3));
  keep(log, recorded_batch(1, 0));
  keep(log, recorded_batch(2, 5, 1000));
  ASSERT_TRUE(log.sync());
  expect_read(0, recorded_batch(0, 3));
  expect_read(1, recorded_batch(1, 0));
  expect_read(2, recorded_batch(2, 5, 1000));
  const BatchLogReader read = reader();
  EXPECT_EQ(read.bytes(), fs::file_size(file(1)));
  EXPECT_EQ(log.bytes(), read.bytes());
  EXPECT_EQ(read.steps(), 3);
  EXPECT_EQ(read.first(), StepId{0});
  ASSERT_TRUE(read.job_of(StepId{2}));
  EXPECT_EQ(*read.job_of(StepId{2}), kJob);
  EXPECT_EQ(*read.first_job(), kJob);
}

TEST_F(BatchLogTest, ARunWithoutARecordHasNone) {
  const auto none = BatchLogReader::open(run_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  writer();
  EXPECT_FALSE(reader().first());
  const auto read = reader().read(StepId{4});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
  EXPECT_NE(read.error().message.find("step 5 is not recorded"), std::string::npos);
}

TEST_F(BatchLogTest, ALargeBatchIsInSeveralParts_BL1) {
  const std::size_t padding = kBatchPartBytes / 5;
  BatchLogWriter log = writer();
  keep(log, recorded_batch(0, 7, padding));
  keep(log, recorded_batch(1, 2));
  expect_read(0, recorded_batch(0, 7, padding));
  expect_read(1, recorded_batch(1, 2));
}

TEST_F(BatchLogTest, AFileThatIsFullIsFollowedByAnother_BL1) {
  auto log = BatchLogWriter::open(run_, kJob, {.file_bytes = 200});
  ASSERT_TRUE(log);
  for (int step = 0; step < 6; ++step) keep(*log, recorded_batch(step, 2));
  ASSERT_TRUE(fs::exists(file(3)));
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(batch_log_folder(run_)))
    bytes += entry.file_size();
  EXPECT_EQ(log->bytes(), bytes);
  EXPECT_EQ(reader().bytes(), bytes);
  for (int step = 0; step < 6; ++step) expect_read(step, recorded_batch(step, 2));
  EXPECT_GT(writer().bytes(), bytes) << "the next process counts them too";
}

TEST_F(BatchLogTest, BeyondItsLimitTheOldestFilesGo_BL4) {
  constexpr std::uint64_t kMax = 4000;
  const auto bytes = [this] {
    std::uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(batch_log_folder(run_)))
      sum += entry.file_size();
    return sum;
  };
  int step = 0;
  std::uint64_t largest = 0;  // batch
  for (int process = 0; process < 3; ++process) {
    auto log = BatchLogWriter::open(run_, kJob, {.bytes = kMax});
    ASSERT_TRUE(log);
    EXPECT_EQ(log->first_after_gone().has_value(), process > 0);
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t before = bytes();
      keep(*log, recorded_batch(step++, 2));
      const std::uint64_t after = bytes();
      largest = std::max(largest, after > before ? after - before : 0);
      ASSERT_LE(after, kMax + largest);
      ASSERT_EQ(log->bytes(), after);
      if (const auto first = log->first_after_gone()) {
        ASSERT_EQ(first, reader().first());
      }
    }
  }
  const auto first = reader().first();
  ASSERT_TRUE(first);
  EXPECT_GT(first->value, 80);
  for (std::int64_t kept = first->value; kept < step; ++kept)
    expect_read(kept, recorded_batch(kept, 2));
  // The run goes back to a checkpoint whose batches have gone.
  auto log = BatchLogWriter::open(run_, kJob, {.bytes = kMax});
  ASSERT_TRUE(log);
  for (int again = 60; again < 80; ++again) {
    keep(*log, recorded_batch(again, 2));
    ASSERT_EQ(log->first_after_gone(), reader().first());
    ASSERT_LE(log->first_after_gone(), StepId{again});
  }
}

TEST_F(BatchLogTest, AStepThatIsTrainedAnewCountsAsItWasTrainedLast_BL3) {
  BatchLogWriter first = writer();
  for (int step = 0; step < 4; ++step) keep(first, recorded_batch(step, 2));
  const RecordedJob other{.version = "1.2.3", .device = "cpu", .yaml = "name: b\n"};
  BatchLogWriter second = writer(other);
  keep(second, recorded_batch(2, 3));
  expect_read(1, recorded_batch(1, 2));
  expect_read(2, recorded_batch(2, 3));
  expect_read(3, recorded_batch(3, 2));
  EXPECT_EQ(*reader().job_of(StepId{1}), kJob);
  EXPECT_EQ(*reader().job_of(StepId{2}), other);
  EXPECT_EQ(*reader().first_job(), kJob);
}

// Whatever length the file was cut to, what is whole is read, and a cut batch never.
TEST_F(BatchLogTest, ATornEndHidesItsOwnBatchAlone_BL1_BL2) {
  std::uint64_t first_end = 0;
  {
    BatchLogWriter log = writer();
    keep(log, recorded_batch(0, 2));
    first_end = log.bytes();
    keep(log, recorded_batch(1, 2));
  }
  const std::string whole = *read_file(file(1));
  for (std::uint64_t size = first_end; size < whole.size(); ++size) {
    RunFolder::replace(file(1), whole.substr(0, size));
    expect_read(0, recorded_batch(0, 2));
    const auto torn = reader().read(StepId{1});
    ASSERT_FALSE(torn) << size;
    EXPECT_EQ(torn.error().code, ErrorCode::kNotFound);
    const bool told =
        torn.error().message.find("byte " + std::to_string(first_end)) != std::string::npos;
    EXPECT_EQ(told, size > first_end) << torn.error().message;
  }
  // The next process writes the batch again, behind the torn end.
  BatchLogWriter log = writer();
  keep(log, recorded_batch(1, 2));
  expect_read(1, recorded_batch(1, 2));
}

// A batch of several parts of which the last ones are missing does not take the place of a whole
// one.
TEST_F(BatchLogTest, ABatchWithoutItsLastPartIsNone_BL2_BL3) {
  const std::size_t padding = kBatchPartBytes / 2;
  const RecordedBatch large = recorded_batch(0, 5, padding);
  {
    BatchLogWriter log = writer();
    keep(log, large);
  }
  const std::string whole = *read_file(file(1));
  {
    BatchLogWriter log = writer();
    keep(log, recorded_batch(0, 5, padding));
  }
  const std::string again = *read_file(file(2));
  RunFolder::replace(file(2), again.substr(0, again.size() - 1));
  EXPECT_EQ(reader().steps(), 1);
  expect_read(0, large);
  EXPECT_EQ(whole, again);
}

// No flipped bit goes through: the batch is refused, or no longer found.
TEST_F(BatchLogTest, AFlippedBitIsToldWithItsPlace_BL2) {
  std::uint64_t start = 0;
  {
    BatchLogWriter log = writer();
    start = log.bytes();
    keep(log, recorded_batch(0, 2));
  }
  const std::string whole = *read_file(file(1));
  for (std::size_t at = start; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    RunFolder::replace(file(1), damaged);
    const auto read = reader().read(StepId{0});
    ASSERT_FALSE(read) << "byte " << at;
    const std::string told = read.error().message + read.error().where;
    EXPECT_NE(told.find(file(1).string() + ", byte "), std::string::npos) << told;
  }
}

TEST_F(BatchLogTest, AFileOfAnotherFormatIsRefusedByName) {
  { const BatchLogWriter log = writer(); }
  std::string bytes = *read_file(file(1));
  bytes[7] = '9';
  RunFolder::replace(file(1), bytes);
  const auto refused = BatchLogReader::open(run_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().where, file(1).string());
}

// A disk that takes only a part of a batch: the file ends as before, and the batch can be kept once
// there is room.
TEST_F(BatchLogTest, ABatchThatDoesNotFitIsTakenBackAndKeptLater_BL2) {
  BatchLogWriter log = writer();
  keep(log, recorded_batch(0, 2));
  const std::uint64_t before = log.bytes();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before + 20, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const RecordedBatch batch = recorded_batch(1, 2);
  const auto refused = log.keep(batch.step, batch.payloads);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, file(1).string());
  EXPECT_EQ(fs::file_size(file(1)), before);
  keep(log, batch);
  expect_read(0, recorded_batch(0, 2));
  expect_read(1, batch);
}

}  // namespace
}  // namespace tandem::runs
