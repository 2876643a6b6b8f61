// The batches that a run has trained, as they came to its learner, in RUN_DIR/replay: written by
// rank 0 of the learner under the job key `record: replay`, and read by `tandem replay`. The
// journal says which groups a batch has, their scores and the checksums of their payloads; here are
// the payloads.
//
//   batches-000001.log, batches-000002.log, …   in the order of writing
//     8 bytes that name the format
//     frames: a head of kHeadBytes, then a body (packed.h) with a checksum in the head
//
// The first frame of a file says by which job its batches were trained. A batch is one frame or
// several, so that no frame is large. Each process writes files of its own, so a torn end stays
// behind: the batch is then recorded again, in the next file.
//
//   BL-1  A batch that keep() has taken is read back as it was, whatever kills the process later,
//         until its file goes (BL-4).
//   BL-2  A batch that was not written whole, or is damaged, is never read: the error names the
//         file and the byte.
//   BL-3  Where a step was recorded several times, its last whole batch counts: the run went back
//         to a checkpoint and trained on from there.
//   BL-4  All files together have the limit's bytes at most, but for the job and the batch that
//         make the last one larger: the oldest files go before that, whole.
//
// The record may be deleted with its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/learner.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::runs {

inline constexpr std::size_t kHeadBytes = 48;
inline constexpr std::size_t kBatchPartBytes = 8u << 20;  // of payloads, unless one alone has more

std::filesystem::path batch_log_folder(const std::filesystem::path& run_dir);

// By what the batches of a file were trained.
struct RecordedJob {
  std::string version;  // of tandem
  std::string device;   // "cpu", or a GPU's name
  std::string yaml;     // the effective job file
  bool operator==(const RecordedJob&) const = default;
};
TANDEM_WIRE(RecordedJob, version, device, yaml)

struct RecordedBatch {
  messages::TrainStep step;
  std::vector<std::string> payloads;  // of step.groups, as the learner pulled them
};
TANDEM_WIRE(RecordedBatch, step, payloads)

struct BatchLogLimits {
  std::uint64_t bytes = std::uint64_t{32} << 30;  // of all files
  // A file with batches of as many bytes, or of a quarter of `bytes`, gets no further one.
  std::uint64_t file_bytes = std::uint64_t{64} << 20;
};

// Used by one thread.
class BatchLogWriter {
 public:
  // Makes the folder where it is missing, and the first file of this process.
  static Result<BatchLogWriter> open(const std::filesystem::path& run_dir, RecordedJob job,
                                     const BatchLogLimits& limits = {});

  // Appends a batch, which is in the operating system's hands on return. After an Error the batch
  // is not there, and may be kept again. kInvalid: a payload is too large for a frame.
  Result<void> keep(const messages::TrainStep& step, const std::vector<std::string>& payloads);
  // Waits until the disk has every batch that was kept.
  Result<void> sync();
  // The size of all files, those of earlier processes included, but for those that could not be
  // removed.
  std::uint64_t bytes() const { return former_bytes_ + end_; }
  // The lowest step that is there, once files have gone.
  std::optional<StepId> first_after_gone() const;

 private:
  BatchLogWriter(std::filesystem::path folder, RecordedJob job, const BatchLogLimits& limits);
  Result<void> begin_file();
  void make_room();
  Result<void> append(const std::string& frame);

  std::filesystem::path folder_;
  RecordedJob job_;
  BatchLogLimits limits_;
  struct Former {
    std::uint64_t bytes = 0;
    std::optional<StepId> first;  // its lowest step; none: it has no batch that counts (BL-3)
  };
  std::map<std::uint64_t, Former> former_;  // all other files, by number
  std::uint64_t former_bytes_ = 0;          // of all of them
  std::uint64_t number_ = 0;                // of the file that is open
  std::optional<StepId> first_;             // of that file
  bool said_full_ = false;
  std::filesystem::path path_;
  OwnedFd fd_;                         // empty after a failure that could not be taken back
  std::uint64_t begin_ = 0, end_ = 0;  // of the batches that are whole in the file
};

// The files as they were at open(); one that has gone since then, as those of a run that goes on
// may (BL-4), is told by the error. Used by one thread.
class BatchLogReader {
 public:
  // Reads all heads. kNotFound without a folder, kInvalid for a file of another format.
  static Result<BatchLogReader> open(const std::filesystem::path& run_dir);

  // The first file's job; nullopt where there is no file.
  const RecordedJob* first_job() const { return jobs_.empty() ? nullptr : &jobs_.begin()->second; }
  // The job by which the step was trained; null where the step is not recorded.
  const RecordedJob* job_of(StepId step) const;
  // The first step that is recorded; nullopt: none is.
  std::optional<StepId> first() const;
  // kNotFound where no whole batch of the step is there (any more), kInvalid where it is damaged;
  // both say where a file could not be read on.
  Result<RecordedBatch> read(StepId step) const;
  // The lowest step of each file whose batches are not recorded again in a later one.
  std::map<std::filesystem::path, StepId> first_steps() const;
  std::uint64_t bytes() const { return bytes_; }  // of all files
  std::int64_t steps() const { return std::ssize(batches_); }

 private:
  struct Frame {
    std::uint64_t offset = 0, bytes = 0, checksum = 0;  // of the body
  };
  struct Place {
    std::filesystem::path file;
    std::vector<Frame> parts;
  };
  Result<void> scan(const std::filesystem::path& file);

  std::map<StepId, Place> batches_;                    // whole ones
  std::map<std::filesystem::path, RecordedJob> jobs_;  // by file
  std::vector<std::string> torn_;  // "FILE, byte N": the files' ends that are no whole frame
  std::uint64_t bytes_ = 0;
};

}  // namespace tandem::runs
