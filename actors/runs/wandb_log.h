// The file run-ID.wandb, in which Weights & Biases keeps the records of a run until `wandb sync`
// sends them: LevelDB's log format behind a header of seven bytes. The meaning of a record is in
// wandb_records.h.
//
// Sources: https://github.com/google/leveldb/blob/main/doc/log_format.md, and files that the
// package wandb 0.31.0 wrote and read. The file is a row of blocks of 32,768 bytes, the first of
// which begins with the header. A record lies in one or more fragments, each within a block: CRC-32
// (zlib's, neither CRC-32C nor masked) of the type byte and the data, u16 length, u8 type (1 whole,
// 2 first, 3 middle, 4 last), data; all little-endian. Fewer than seven bytes at the end of a block
// are zeros.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::runs {

inline constexpr std::string_view kWandbHeader{"\x3a\x57\x26\x42\xe1\xbe\x00", 7};
inline constexpr std::size_t kWandbRecordBytesMax = std::size_t{64} << 20;

// Appends the fragments of `record` to `to`, whose first byte will stand at `offset` of the file.
void append_framed(std::string& to, std::uint64_t offset, std::string_view record);

// Reads the records of a file, one after another. A single thread uses it.
class WandbLogReader {
 public:
  // An error where the file cannot be read, or does not begin with the header.
  static Result<WandbLogReader> open(const std::filesystem::path& path);

  // nullopt where the file ends, or is damaged or torn: no reader gets further.
  std::optional<std::string> next();
  // The offset behind the last record that next() returned, and of the header before the first.
  std::uint64_t end() const { return end_; }

 private:
  explicit WandbLogReader(std::ifstream file) : file_(std::move(file)) {}

  std::ifstream file_;
  std::uint64_t at_ = kWandbHeader.size(), end_ = kWandbHeader.size();
};

}  // namespace tandem::runs
