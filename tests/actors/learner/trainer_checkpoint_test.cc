// Checkpoints of the trainer: which are kept and which is read. Files are damaged, cut or left
// half-written on purpose, to show that a load takes the next older checkpoint (CP-1, CP-2).
#include "actors/learner/trainer_checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <thread>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/wire/codec.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::learner {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kArrayBytes = 40'000;

CheckpointContent content_of(StepId step, std::span<const std::byte> bytes) {
  return {.state = {.step = step},
          .weights = bytes,
          .m = bytes,
          .v = bytes,
          .reference = {},
          .older = {},
          .save_model = [](const fs::path& directory) {
            return write_file_atomic(directory / "config.json", std::string_view("{}"));
          }};
}

// trainer/state.bin as format 2 wrote it.
struct StateOfFormat2 {
  std::uint32_t format = 2;
  StepId step;
  std::uint64_t optimizer_steps = 0, seed = 0;
  std::uint64_t weights_checksum = 0, m_checksum = 0, v_checksum = 0, reference_checksum = 0;
  std::vector<std::uint64_t> older_checksums;
};
TANDEM_WIRE(StateOfFormat2, format, step, optimizer_steps, seed, weights_checksum, m_checksum,
            v_checksum, reference_checksum, older_checksums)

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class TrainerCheckpoint : public ::testing::Test {
 protected:
  TrainerCheckpoint() {
    config_.directory = model::testing::scratch_folder("checkpoints") / "checkpoints";
  }
  void write(std::int64_t step) {
    const auto written = write_checkpoint(config_, content_of(StepId{step}, bytes_));
    ASSERT_TRUE(written) << written.error().message;
  }
  std::optional<TrainerState> read() {
    std::vector<std::byte> read(kArrayBytes);
    const auto state = read_checkpoint(config_, [&](const fs::path& path, const TrainerState& s) {
      return read_array(m_file(path), s.m_checksum, read);
    });
    EXPECT_TRUE(state) << state.error().message;
    if (*state) {
      EXPECT_EQ(read, bytes_);
    }
    return *state;
  }

  CheckpointConfig config_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kArrayBytes, std::byte{7});
};

TEST_F(TrainerCheckpoint, KeepsTheNewest) {
  EXPECT_FALSE(read());
  for (const std::int64_t step : {0, 5, 10, 15}) write(step);
  EXPECT_EQ(names_in(config_.directory), (std::vector<std::string>{"step-10", "step-15"}));
  EXPECT_EQ(read()->step, StepId{15});
  config_.resume = ResumeMode::kDisable;
  EXPECT_FALSE(read());
}

TEST_F(TrainerCheckpoint, ASteppedBackRunReplacesItsFuture) {
  for (const std::int64_t step : {5, 10}) write(step);
  write(5);
  EXPECT_EQ(names_in(config_.directory), std::vector<std::string>{"step-5"});
}

TEST_F(TrainerCheckpoint, DamageIsRefusedAndTheOlderOneTaken_CP2) {
  for (const std::int64_t step : {5, 10}) write(step);
  fs::resize_file(m_file(config_.directory / "step-10"), 100);
  EXPECT_EQ(read()->step, StepId{5});
  config_.resume = ResumeMode::kPath;
  config_.resume_path = config_.directory / "step-10";
  const auto refused = read_checkpoint(config_, [](const fs::path& path, const TrainerState& s) {
    std::vector<std::byte> read(kArrayBytes);
    return read_array(m_file(path), s.m_checksum, read);
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_NE(refused.error().message.find("step-10"), std::string::npos);
}

// Else the damaged one would count as one of the two, and the only whole one would go.
TEST_F(TrainerCheckpoint, ADamagedOneGoesBeforeAWholeOne) {
  write(10);
  write(20);
  fs::resize_file(m_file(config_.directory / "step-20"), 10);
  ASSERT_EQ(read()->step, StepId{10});
  config_.refused = checkpoints_after(config_, StepId{10});
  EXPECT_EQ(config_.refused, std::vector{StepId{20}});
  write(30);
  EXPECT_EQ(names_in(config_.directory), (std::vector<std::string>{"step-10", "step-30"}));
  config_.refused = {StepId{30}};
  write(30);  // it is whole now
  EXPECT_EQ(names_in(config_.directory), (std::vector<std::string>{"step-10", "step-30"}));
}

TEST_F(TrainerCheckpoint, OneOfAnotherJobEndsTheSearchAndStays) {
  for (const std::int64_t step : {5, 10}) write(step);
  const auto refused = read_checkpoint(config_, [](const fs::path&, const TrainerState&) {
    return Error{.code = ErrorCode::kInvalid, .message = "it is of another model"};
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_NE(refused.error().message.find("step-10: it is of another model"), std::string::npos);
  EXPECT_EQ(names_in(config_.directory), (std::vector<std::string>{"step-10", "step-5"}));
}

TEST_F(TrainerCheckpoint, OlderVersionsLieBesideTheMoments) {
  const std::vector<std::byte> four(8, std::byte{4}), five(8, std::byte{5});
  CheckpointContent content = content_of(StepId{6}, bytes_);
  content.older = {four, five};
  ASSERT_TRUE(write_checkpoint(config_, content));
  const auto state = read();
  ASSERT_EQ(state->older_checksums.size(), 2u);
  std::vector<std::byte> read_back(8);
  const fs::path checkpoint = config_.directory / "step-6";
  ASSERT_TRUE(
      read_array(older_file(checkpoint, PolicyVersion{5}), state->older_checksums[1], read_back));
  EXPECT_EQ(read_back, five);
  EXPECT_TRUE(
      read_array(older_file(checkpoint, PolicyVersion{4}), state->older_checksums[0], read_back));
  EXPECT_EQ(read_back, four);
}

TEST_F(TrainerCheckpoint, TheCountsOfSkippedStepsAreKept) {
  CheckpointContent content = content_of(StepId{6}, bytes_);
  content.state.skipped = {.total = 7, .in_row = 2};
  ASSERT_TRUE(write_checkpoint(config_, content));
  const auto state = read();
  EXPECT_EQ(state->skipped.total, 7u);
  EXPECT_EQ(state->skipped.in_row, 2u);
}

TEST_F(TrainerCheckpoint, OneOfFormat2HasSkippedNoStep) {
  write(6);
  const std::uint64_t sum = checksum64(bytes_);
  const StateOfFormat2 former{.step = StepId{6},
                              .optimizer_steps = 6,
                              .seed = 9,
                              .weights_checksum = sum,
                              .m_checksum = sum,
                              .v_checksum = sum,
                              .older_checksums = {1, 2}};
  ASSERT_TRUE(write_file_atomic(config_.directory / "step-6/trainer/state.bin",
                                std::string_view(wire::encode(former))));
  const auto state = read();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->step, StepId{6});
  EXPECT_EQ(state->optimizer_steps, 6u);
  EXPECT_EQ(state->seed, 9u);
  EXPECT_EQ(state->older_checksums, former.older_checksums);
  EXPECT_EQ(state->skipped.total, 0u);
  EXPECT_EQ(state->skipped.in_row, 0u);
}

TEST_F(TrainerCheckpoint, AHalfWrittenOneIsNeverSeen) {
  write(5);
  fs::create_directories(config_.directory / ".step-9.partial/trainer");
  fs::create_directories(config_.directory / "step-9x");
  EXPECT_EQ(read()->step, StepId{5});
  write(6);
  EXPECT_EQ(names_in(config_.directory), (std::vector<std::string>{"step-5", "step-6", "step-9x"}));
}

// The former learner is stopped amid a save, wakes up beside its successor, and saves once more.
TEST_F(TrainerCheckpoint, AFormerLearnerWritesAndRemovesNothing_CP3) {
  const auto claimed = [&] {
    CheckpointConfig config = config_;
    config.claim = claim_checkpoints(config_).value();
    return config;
  };
  const CheckpointConfig former = claimed();
  ASSERT_TRUE(write_checkpoint(former, content_of(StepId{9}, bytes_)));
  std::vector<std::string> left;
  CheckpointContent content = content_of(StepId{12}, bytes_);
  content.save_model = [&](const fs::path& path) {
    const CheckpointConfig next = claimed();
    EXPECT_TRUE(write_checkpoint(next, content_of(StepId{10}, bytes_)));
    EXPECT_TRUE(write_checkpoint(next, content_of(StepId{11}, bytes_)));
    fs::create_directories(config_.directory / ".step-13.next.partial");  // it writes another one
    left = names_in(config_.directory);
    fs::create_directories(path / "trainer");  // as if the former one had been stopped behind it
    return Result<void>();
  };
  const auto woken = write_checkpoint(former, std::move(content));
  ASSERT_FALSE(woken);
  EXPECT_EQ(woken.error().code, ErrorCode::kUnauthorised);
  EXPECT_EQ(woken.error().message,
            "cannot save checkpoint step-12: another learner has taken the run over");
  EXPECT_EQ(names_in(config_.directory), left);
  EXPECT_FALSE(write_checkpoint(former, content_of(StepId{10}, bytes_)));
  EXPECT_EQ(names_in(config_.directory), left);
  EXPECT_EQ(left,
            (std::vector<std::string>{".owner", ".step-13.next.partial", "step-10", "step-11"}));
}

// What claim_checkpoints() gives where the disk takes nothing: the claim is not in the file yet.
CheckpointConfig begun(CheckpointConfig config, std::string former) {
  config.claim = {.id = "begun", .former = std::move(former)};
  return config;
}

TEST_F(TrainerCheckpoint, AClaimThatTheDiskDidNotTakeIsMadeByTheFirstSave_CP3) {
  for (const bool has_former : {false, true}) {
    SCOPED_TRACE(has_former);
    fs::remove_all(config_.directory);
    CheckpointConfig former = config_;
    if (has_former) {
      former.claim = claim_checkpoints(config_).value();
      ASSERT_TRUE(write_checkpoint(former, content_of(StepId{1}, bytes_)));
      fs::create_directories(config_.directory / ".step-2.former.partial");
    }
    const CheckpointConfig late = begun(config_, former.claim.id);
    EXPECT_TRUE(write_checkpoint(late, content_of(StepId{3}, bytes_)));
    EXPECT_EQ(read_file(config_.directory / ".owner").value(), "begun");
    EXPECT_FALSE(fs::exists(config_.directory / ".step-2.former.partial"));
    if (has_former) {
      EXPECT_FALSE(write_checkpoint(former, content_of(StepId{4}, bytes_)));
    }
    const CheckpointClaim next = claim_checkpoints(config_).value();
    EXPECT_EQ(next.former, "begun");
    EXPECT_FALSE(write_checkpoint(late, content_of(StepId{5}, bytes_)));
    EXPECT_EQ(read()->step, StepId{3});
  }
}

TEST_F(TrainerCheckpoint, AClaimThatIsOnlyBegunGivesWayToAnotherLearners_CP3) {
  for (const bool has_former : {false, true}) {
    SCOPED_TRACE(has_former);
    fs::remove_all(config_.directory);
    const std::string former = has_former ? claim_checkpoints(config_).value().id : "";
    CheckpointConfig next = config_;
    next.claim = claim_checkpoints(config_).value();
    ASSERT_TRUE(write_checkpoint(next, content_of(StepId{1}, bytes_)));
    fs::create_directories(config_.directory / ".step-2.next.partial");
    const std::vector<std::string> left = names_in(config_.directory);
    const auto woken = write_checkpoint(begun(config_, former), content_of(StepId{1}, bytes_));
    ASSERT_FALSE(woken);
    EXPECT_EQ(woken.error().code, ErrorCode::kUnauthorised);
    EXPECT_EQ(names_in(config_.directory), left);
    EXPECT_EQ(read_file(config_.directory / ".owner").value(), next.claim.id);
  }
}

// The file system refuses the claim in a child process alone, where no file can grow.
TEST_F(TrainerCheckpoint, WithoutItsClaimASaveFailsByTheDisksError_CP3) {
  const CheckpointClaim former = claim_checkpoints(config_).value();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4, 4};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto saved =
        write_checkpoint(begun(config_, former.id), content_of(StepId{9}, std::span(bytes_)));
    _exit(!saved && saved.error().os_error == EFBIG &&
                  saved.error().where.find(".owner") != std::string::npos
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(names_in(config_.directory), std::vector<std::string>{".owner"});
  EXPECT_EQ(read_file(config_.directory / ".owner").value(), former.id);
}

TEST_F(TrainerCheckpoint, OneThatIsWrittenAgainIsThereAllTheTime_CP1) {
  write(5);
  const fs::path state = config_.directory / "step-5/trainer/state.bin";
  std::atomic<bool> done = false;
  int absent = 0;
  std::thread watcher([&] {
    while (!done) absent += access(state.c_str(), F_OK) != 0 ? 1 : 0;
  });
  for (int i = 0; i < 100; ++i) write(5);
  done = true;
  watcher.join();
  EXPECT_EQ(absent, 0);
  EXPECT_EQ(names_in(config_.directory), std::vector<std::string>{"step-5"});
}

// A file-size limit in a child process stands for the full disk: write() fails the same way.
TEST_F(TrainerCheckpoint, AFailedWriteLeavesTheEarlierOnes_CP1_TR3) {
  write(5);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = write_checkpoint(config_, content_of(StepId{9}, bytes_));
    const bool said = !written &&
                      written.error().message.find("cannot save checkpoint step-9: ") == 0 &&
                      written.error().message.find("File too large") != std::string::npos;
    _exit(said ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(names_in(config_.directory), std::vector<std::string>{"step-5"});
  EXPECT_EQ(read()->step, StepId{5});
}

TEST_F(TrainerCheckpoint, KeepsThoseThatAreNamedBesidesTheNewest) {
  write(0);
  write(5);
  config_.keep = {StepId{5}, StepId{7}};
  for (const std::int64_t step : {10, 15, 20}) write(step);
  EXPECT_EQ(names_in(config_.directory),
            (std::vector<std::string>{"step-15", "step-20", "step-5"}));
  config_.keep = {StepId{15}};
  for (const std::int64_t step : {25, 30}) write(step);
  EXPECT_EQ(names_in(config_.directory),
            (std::vector<std::string>{"step-15", "step-25", "step-30"}))
      << "one that is no longer named goes with the next save";
}

}  // namespace
}  // namespace tandem::learner
