// Reads and writes the safetensors format: u64 header length, a JSON header, then the tensors'
// bytes without holes (https://github.com/huggingface/safetensors#format).
//
// A file is checked before it is used: the header has at most 100 MB, the offsets tile the rest of
// the file exactly (no hole, overlap, overflow or truncation), and byte counts match dtype and
// shape. Values are read as f32: F32 as they are, BF16 and F16 widened exactly. Other dtypes are
// refused by name. Errors name the file and the tensor.
//
// Large tensors are read by pread straight to their destination, in pieces that the threads of a
// pool share; 16-bit values pass through a block that stays in the cache. A mapping would spare the
// kernel's copy for F32 only, and would end the process (SIGBUS) if the file were truncated
// meanwhile; pread returns an error then.
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
#include "runtime/device/manifest.h"
#include "runtime/device/parallel.h"

namespace tandem::model {

// One open file, whose header was read and checked. Its const members may be called from several
// threads at once.
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

  // Reads all values of tensor `name` into `out`. CHECKs that the tensor exists and that `out` has
  // its size.
  Result<void> read(const std::string& name, std::span<float> out) const;
  // The same for the out.size() values from `first` on.
  Result<void> read_part(const std::string& name, std::size_t first, std::span<float> out) const;

 private:
  SafetensorsFile(std::filesystem::path file, OwnedFd fd)
      : file_(std::move(file)), fd_(std::move(fd)) {}

  std::filesystem::path file_;
  OwnedFd fd_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
};

// One tensor of a model. `values` is its memory, which reading fills and writing reads; borrowed.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<float> values;
};

// A tensor `alias` that files may hold besides `alias_of`, with the same values: lm_head.weight of
// a tied model.
struct TiedTensor {
  std::string alias, alias_of;
};

// Reads all wanted tensors from DIR/model.safetensors or, where that is absent, the shards of
// DIR/model.safetensors.index.json, in two steps, so that memory can be allocated after the files
// have been checked. Errors by name: a wanted tensor that is missing or has another shape, a tensor
// that is not wanted, and a tensor that two shards hold. Two kinds of unwanted tensors are allowed:
// the alias of `tied`, which may be null, and the frequencies of rotary embeddings, which older
// checkpoints hold.
class TensorFiles {
 public:
  // Finds and checks the tensors by the files' headers. No value is read, and `values` may be
  // empty.
  static Result<TensorFiles> open(const std::filesystem::path& directory,
                                  std::span<const NamedTensor> wanted, const TiedTensor* tied);

  // Fills `tensors`, which are those that open() was asked for, in the same order. The threads
  // share the work; null: the calling thread alone. After an error the values are undefined.
  Result<void> read(std::span<const NamedTensor> tensors,
                    device::ThreadPool* threads = nullptr) const;

 private:
  TensorFiles() = default;
  Result<void> check_tied_copy(std::span<const NamedTensor> tensors,
                               device::ThreadPool* threads) const;

  std::vector<SafetensorsFile> files_;
  // The files, in files_, that hold the wanted tensors.
  std::vector<const SafetensorsFile*> holders_;
  const SafetensorsFile* tied_holder_ = nullptr;  // the file that holds the alias, if it is there
  TiedTensor tied_;
};

// Writes one f32 file with the tensors in the order given, atomically.
Result<void> write_safetensors(const std::filesystem::path& file,
                               std::span<const NamedTensor> tensors);

// Published weights: f32 or bf16. Borrowed.
struct WeightBytes {
  const device::Manifest& manifest;
  std::span<const std::byte> arena;  // laid out by it
};
// Writes them as one file, in place and without waiting for the disk: for a program that reads it
// now, not to be kept.
Result<void> write_weights(const std::filesystem::path& file, const WeightBytes& weights);

}  // namespace tandem::model
