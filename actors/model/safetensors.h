// The safetensors format: u64 header length, a JSON header, then the tensors' bytes without holes.
// (https://github.com/huggingface/safetensors#format)
//
// A file is judged before it is used: header at most 100 MB, offsets that tile the rest of the file
// exactly (no hole, overlap, overflow or truncation), byte counts that match dtype and shape.
// Values are read as f32: F32 as they are, BF16 and F16 widened exactly; other dtypes are refused
// by name.
//
// Large tensors are read by pread straight to where they go, in pieces that the threads of a pool
// share; 16-bit values pass through a block that stays in the cache. A mapping would spare the
// kernel's copy of F32 alone, and would end the process (SIGBUS) where somebody truncates the file
// meanwhile; pread gives an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/device/parallel.h"

namespace tandem::actors {

class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;  // as written: "F32", "BF16", …
    std::vector<std::int64_t> shape;
    std::uint64_t begin, end;  // bytes, counted from the end of the header
  };

  static Result<SafetensorsFile> open(const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }

  // Reads tensor `name`, which exists, into `out`, which has its size.
  Result<void> read(const std::string& name, std::span<float> out) const;
  // The same of its values from `first` on.
  Result<void> read_part(const std::string& name, std::size_t first, std::span<float> out) const;

 private:
  SafetensorsFile(std::filesystem::path file, OwnedFd fd)
      : file_(std::move(file)), fd_(std::move(fd)) {}

  std::filesystem::path file_;
  OwnedFd fd_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
};

// One tensor of a model: where it goes when read, where it comes from when written.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<float> values;
};

// Fills every tensor of `wanted` from DIR/model.safetensors or, where that is absent, the shards of
// DIR/model.safetensors.index.json. A wanted tensor that is missing, one that nobody wants, one
// that two shards hold and one of another shape are errors by name. `alias` is a tensor that may be
// present if its bytes equal those of `alias_of` (lm_head.weight of a tied model).
// Frequencies of rotary embeddings, which older checkpoints hold, are passed over.
struct TiedTensor {
  std::string alias, alias_of;
};
Result<void> read_tensors(const std::filesystem::path& directory,
                          std::span<const NamedTensor> wanted, const TiedTensor* tied);

// The same in two steps, so that nothing need be allocated before the files have passed.
class TensorFiles {
 public:
  // Finds and judges the tensors by the files' headers: no value is read, and `values` may be
  // empty.
  static Result<TensorFiles> open(const std::filesystem::path& directory,
                                  std::span<const NamedTensor> wanted, const TiedTensor* tied);

  // Fills `tensors`, which are those that open() was asked for, in that order.
  Result<void> read(std::span<const NamedTensor> tensors,
                    runtime::ThreadPool* threads = nullptr) const;

 private:
  TensorFiles() = default;
  Result<void> check_tied_copy(std::span<const NamedTensor> tensors,
                               runtime::ThreadPool* threads) const;

  std::vector<SafetensorsFile> files_;
  std::vector<const SafetensorsFile*> holders_;   // of the wanted tensors, in files_
  const SafetensorsFile* tied_holder_ = nullptr;  // of the alias, if it is there
  TiedTensor tied_;
};

// Writes one f32 file with the tensors in the order given, atomically.
Result<void> write_safetensors(const std::filesystem::path& file,
                               std::span<const NamedTensor> tensors);

}  // namespace tandem::actors
