// A file of recorded batches (RUN_DIR/replay/batches-000001.log), which a disk may have damaged or
// which a user copied from elsewhere. Checked: a batch of which the record tells can be read whole,
// with as many payloads as groups, or is an error; its job is known (BL-2). The checksums of heads
// are made right here: the fuzzer could not guess one.
#include "actors/runs/batch_log.h"
#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

constexpr std::string_view kFormat = "TANDEMB1";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string number(std::uint64_t value) {
  std::string text;
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(value >> shift & 0xff);
  return text;
}

// Frames: a byte whose lowest bits are the kind, one for the part, one for the step, then a body
// with its size. The higher bits of the first byte spoil a checksum.
std::string frames(std::string_view input) {
  std::string file(kFormat);
  for (Pieces pieces(input); !pieces.empty();) {
    const std::uint8_t kind = pieces.byte();
    const std::uint8_t part = pieces.byte(), step = pieces.byte();
    const std::string_view body = pieces.bytes();
    std::string head = number(kind & 3) + number(part) + number(step) + number(body.size()) +
                       number(checksum64(bytes_of(body)) ^ (kind & 0x40 ? 1 : 0));
    head += number(checksum64(bytes_of(head)) ^ (kind & 0x80 ? 1 : 0));
    file += head;
    file += body;
  }
  return file;
}

void read_all(const std::filesystem::path& run_dir) {
  const auto log = runs::BatchLogReader::open(run_dir);
  if (!log) {
    CHECK(!log.error().message.empty());
    return;
  }
  std::int64_t there = 0;
  for (StepId step; step.value < 256; ++step.value) {
    const auto batch = log->read(step);
    if (log->job_of(step)) ++there;
    if (!batch) {
      CHECK(!batch.error().message.empty());
      continue;
    }
    CHECK(log->job_of(step) && batch->step.groups.size() == batch->payloads.size());
  }
  CHECK(there <= log->steps() && log->first().has_value() == (log->steps() > 0));
}

}  // namespace

// The first byte chooses: the bytes as a file, or frames with right checksums.
void batch_log(std::string_view input) {
  Pieces pieces(input);
  const bool raw = pieces.byte() % 2 == 1;
  const auto run_dir = scratch_folder() / "recorded";
  const auto file = runs::batch_log_folder(run_dir) / "batches-000001.log";
  std::filesystem::create_directories(file.parent_path());
  const std::string text = raw ? std::string(pieces.rest()) : frames(pieces.rest());
  CHECK(write_file(file, bytes_of(text)).has_value());
  read_all(run_dir);
}

}  // namespace tandem::fuzz
