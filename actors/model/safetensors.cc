// Nothing in a file is trusted. Every number of the header is checked before it is used as a size
// or an offset, so that a damaged or hostile file ends in an error and neither in a huge allocation
// nor in a read beyond the file. Which tensors a model must have is checked over all shards before
// any value is read, because a missing tensor should cost seconds and not the reading of gigabytes.
//
// Reading is split into pieces of equal size over all tensors, not by tensor or by file: one large
// embedding would otherwise occupy one thread while the others wait.
#include "actors/model/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "actors/model/json_file.h"
#include "runtime/base/check.h"
#include "runtime/device/dtype.h"

namespace tandem::model {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors stores little-endian");

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // the reference implementation's cap
constexpr std::uint64_t kIndexBytesMax = 100'000'000;
constexpr std::size_t kHeaderAlignment = 8;    // written headers are padded, so that values align
constexpr std::size_t kChunkValues = 1 << 16;  // read and widened at a time
constexpr std::size_t kPieceValues = 1 << 20;  // values of a tensor that one thread reads
constexpr std::string_view kRotaryFrequencies = ".rotary_emb.inv_freq";  // a tensor's last name
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

std::optional<device::DType> stored_dtype(const std::string& dtype) {
  if (dtype == "F32") return device::DType::kF32;
  if (dtype == "BF16") return device::DType::kBF16;
  if (dtype == "F16") return device::DType::kF16;
  return std::nullopt;
}

// The parts of a file that is to be written, which are borrowed.
class NewFile {
 public:
  void add(const std::string& name, const char* dtype, const std::vector<std::int64_t>& shape,
           std::span<const std::byte> bytes) {
    CHECK(!header_.contains(name));
    header_[name] = {
        {"dtype", dtype}, {"shape", shape}, {"data_offsets", {end_, end_ + bytes.size()}}};
    end_ += bytes.size();
    parts_.push_back(bytes);
  }
  // Valid while this is.
  std::span<const std::span<const std::byte>> parts() {
    // Spaces at the end of the header are part of the format.
    text_ = header_.dump();
    text_.resize((text_.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
    text_bytes_ = text_.size();
    parts_[0] = std::as_bytes(std::span(&text_bytes_, 1));
    parts_[1] = std::as_bytes(std::span(text_));
    return parts_;
  }

 private:
  nlohmann::ordered_json header_{{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t end_ = 0, text_bytes_ = 0;
  std::string text_;
  std::vector<std::span<const std::byte>> parts_{2};  // the header's size, the header, tensors
};

Error damaged(const std::filesystem::path& file, const std::string& problem) {
  return Error{.message = "safetensors: " + problem,
               .where = file.string(),
               .help = "the file is damaged or unsupported; copy or export it again"};
}

// Fills `out` from the file's bytes at `offset`. pread keeps no position in the descriptor, so
// several threads may read at once.
Result<void> read_at(int fd, const std::filesystem::path& file, std::uint64_t offset,
                     std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", file);
    if (got == 0) return damaged(file, "the file ended while it was read");
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

// Number of values of a shape. nullopt if a dimension is negative or the count is so large that its
// bytes could overflow.
std::optional<std::uint64_t> value_count(const std::vector<std::int64_t>& shape) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max() / 8;
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && count > kMax / factor) return std::nullopt;
    count *= factor;
  }
  return count;
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return json(shape).dump(); }

bool is_list_of_sizes(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const json& item) {
           return item.is_number_unsigned() && item.get<std::uint64_t>() <= INT64_MAX;
         });
}

Result<SafetensorsFile::Entry> parse_entry(const std::filesystem::path& file,
                                           const std::string& name, const json& value) {
  const auto bad = [&](const std::string& problem) {
    return damaged(file, "tensor '" + name + "' " + problem);
  };
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !is_list_of_sizes(value["shape"]) ||
      !value.contains("data_offsets") || !is_list_of_sizes(value["data_offsets"]) ||
      value["data_offsets"].size() != 2)
    return bad("has no proper dtype, shape and data_offsets");
  SafetensorsFile::Entry entry{
      value["dtype"].get<std::string>(), value["shape"].get<std::vector<std::int64_t>>(),
      value["data_offsets"][0].get<std::uint64_t>(), value["data_offsets"][1].get<std::uint64_t>()};
  const auto dtype = stored_dtype(entry.dtype);
  if (!dtype)
    return Error{.message = "safetensors: tensor '" + name + "' has dtype " + entry.dtype +
                            ", which is not supported",
                 .where = file.string(),
                 .help =
                     "quantised weights cannot be trained: take the checkpoint in BF16, F16 or "
                     "F32 that they were made of"};
  const auto count = value_count(entry.shape);
  if (!count) return bad("has an impossible shape " + shape_text(entry.shape));
  if (entry.begin > entry.end || entry.end - entry.begin != *count * device::size_bytes(*dtype))
    return bad("has data_offsets that do not match its shape " + shape_text(entry.shape));
  return entry;
}

// Checks that the entries tile [0, data_bytes) exactly. A truncated download is the most common
// failure, and shows here.
Result<void> check_tiling(const std::filesystem::path& file,
                          const std::map<std::string, SafetensorsFile::Entry>& entries,
                          std::uint64_t data_bytes) {
  std::vector<std::pair<const std::string*, const SafetensorsFile::Entry*>> order;
  for (const auto& [name, entry] : entries) order.emplace_back(&name, &entry);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  std::uint64_t at = 0;
  for (const auto& [name, entry] : order) {
    if (entry->begin < at)
      return damaged(file, "tensor '" + *name + "' overlaps the one before it");
    if (entry->begin > at) return damaged(file, "there is a hole before tensor '" + *name + "'");
    if (entry->end > data_bytes)
      return damaged(file, "tensor '" + *name + "' ends past the end of the file (truncated?)");
    at = entry->end;
  }
  if (at != data_bytes)
    return damaged(file, std::to_string(data_bytes - at) + " bytes follow the last tensor");
  return {};
}

// Checks that every shard which the index names exists.
Result<void> check_shards(const std::filesystem::path& directory,
                          const std::map<std::string, std::set<std::string>>& shards) {
  std::error_code ignored;
  std::vector<std::string> missing;
  for (const auto& [name, tensors] : shards)
    if (!std::filesystem::exists(directory / name, ignored)) missing.push_back(name);
  if (missing.empty()) return {};
  return Error{.message = "safetensors: " + std::to_string(missing.size()) + " of the " +
                          std::to_string(shards.size()) +
                          " files that the index names are missing, the first: " + missing.front() +
                          " (the download is not complete)",
               .where = (directory / kIndexFile).string(),
               .help =
                   "run the download again; `hf download ID --local-dir DIR` goes on where it "
                   "ended"};
}

// Opens the single file or, where it is absent, all shards of the index. A single file wins over an
// index, as in transformers. Errors of a missing single file name that file.
Result<std::vector<SafetensorsFile>> open_files(const std::filesystem::path& directory) {
  std::vector<SafetensorsFile> files;
  const std::filesystem::path index = directory / kIndexFile;
  if (std::filesystem::exists(directory / kSingleFile) || !std::filesystem::exists(index)) {
    Result<SafetensorsFile> file = SafetensorsFile::open(directory / kSingleFile);
    if (!file) return file.error();
    files.push_back(std::move(*file));
    return files;
  }
  Result<json> parsed = read_json(index, kIndexBytesMax);
  if (!parsed) return parsed.error();
  const auto map = parsed->find("weight_map");
  if (map == parsed->end() || !map->is_object())
    return damaged(index, "the index has no weight_map");
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    // A shard's name must not lead out of the directory.
    if (name.empty() || name.find('/') != name.npos || name == "..")
      return damaged(index, "tensor '" + tensor + "' is mapped to no file of this directory");
    shards[name].insert(tensor);
  }
  if (Result<void> complete = check_shards(directory, shards); !complete) return complete.error();
  for (const auto& [name, tensors] : shards) {
    Result<SafetensorsFile> file = SafetensorsFile::open(directory / name);
    if (!file) return file.error();
    for (const std::string& tensor : tensors)
      if (!file->entries().contains(tensor))
        return damaged(file->file(),
                       "tensor '" + tensor + "', which the index promises, is missing");
    files.push_back(std::move(*file));
  }
  return files;
}

// A part of one of several tensors, which one thread reads.
struct Piece {
  std::size_t tensor;
  std::size_t first, count;  // values
};

// Pieces that cover every value of the tensors once, in the order of the list.
std::vector<Piece> pieces_of(std::span<const NamedTensor> tensors) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::size_t at = 0; at < tensors[i].values.size(); at += kPieceValues)
      pieces.push_back({i, at, std::min(kPieceValues, tensors[i].values.size() - at)});
  return pieces;
}

// Does all pieces, and returns the error of the first one in the list that failed: which one that
// is does not depend on the number of threads.
template <class Work>
Result<void> for_each_piece(device::ThreadPool* threads, std::span<const Piece> pieces,
                            const Work& work) {
  std::vector<std::optional<Error>> failed(pieces.size());
  device::parallel_for(threads, std::ssize(pieces), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      if (Result<void> done = work(pieces[i]); !done) failed[i] = done.error();
  });
  for (std::optional<Error>& error : failed)
    if (error) return *std::move(error);
  return {};
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  auto opened = open_regular(path);
  if (!opened) return opened.error();
  const std::uint64_t file_bytes = opened->bytes;
  if (file_bytes < sizeof(std::uint64_t)) return damaged(path, "shorter than its own length field");
  SafetensorsFile file(path, std::move(opened->fd));
  std::uint64_t header_bytes = 0;
  if (Result<void> read =
          read_at(file.fd_.get(), path, 0, std::as_writable_bytes(std::span(&header_bytes, 1)));
      !read)
    return read.error();
  if (header_bytes > kHeaderBytesMax)
    return damaged(path, "a header of " + std::to_string(header_bytes) +
                             " bytes is over the limit of " + std::to_string(kHeaderBytesMax));
  if (header_bytes > file_bytes - sizeof header_bytes)
    return damaged(path, "the header is longer than the file (truncated?)");
  std::string header(header_bytes, '\0');
  if (Result<void> read = read_at(file.fd_.get(), path, sizeof header_bytes,
                                  std::as_writable_bytes(std::span(header)));
      !read)
    return read.error();
  Result<json> parsed = parse_json(header, path.string() + " (header)");
  if (!parsed) return parsed.error();
  if (!parsed->is_object()) return damaged(path, "the header is not a JSON object");
  for (const auto& [name, value] : parsed->items()) {
    if (name == "__metadata__") continue;
    Result<Entry> entry = parse_entry(path, name, value);
    if (!entry) return entry.error();
    file.entries_.emplace(name, std::move(*entry));
  }
  file.data_begin_ = sizeof header_bytes + header_bytes;
  if (Result<void> tiled = check_tiling(path, file.entries_, file_bytes - file.data_begin_); !tiled)
    return tiled.error();
  return file;
}

Result<void> SafetensorsFile::read(const std::string& name, std::span<float> out) const {
  CHECK(value_count(entries_.at(name).shape) == out.size());
  return read_part(name, 0, out);
}

Result<void> SafetensorsFile::read_part(const std::string& name, std::size_t first,
                                        std::span<float> out) const {
  const Entry& entry = entries_.at(name);
  CHECK(first + out.size() <= *value_count(entry.shape));
  const device::DType dtype = *stored_dtype(entry.dtype);
  const std::size_t width = device::size_bytes(dtype);
  const std::uint64_t begin = data_begin_ + entry.begin + first * width;
  if (dtype == device::DType::kF32)
    return read_at(fd_.get(), file_, begin, std::as_writable_bytes(out));
  std::vector<std::byte> chunk(std::min(kChunkValues, out.size()) * width);
  for (std::size_t at = 0; at < out.size(); at += kChunkValues) {
    const std::span<float> part = out.subspan(at, std::min(kChunkValues, out.size() - at));
    const std::span<std::byte> bytes(chunk.data(), part.size() * width);
    if (Result<void> read = read_at(fd_.get(), file_, begin + at * width, bytes); !read)
      return read;
    device::to_f32(bytes, dtype, part);
  }
  return {};
}

Result<TensorFiles> TensorFiles::open(const std::filesystem::path& directory,
                                      std::span<const NamedTensor> wanted, const TiedTensor* tied) {
  Result<std::vector<SafetensorsFile>> files = open_files(directory);
  if (!files) return files.error();
  TensorFiles out;
  out.files_ = *std::move(files);
  std::map<std::string, const SafetensorsFile*> holder;
  for (const SafetensorsFile& file : out.files_)
    for (const auto& [name, entry] : file.entries()) {
      // Every tensor that is taken by a name is erased from `holder`, so those that remain are not
      // wanted.
      if (name.ends_with(kRotaryFrequencies)) continue;
      if (!holder.emplace(name, &file).second)
        return damaged(file.file(), "tensor '" + name + "' is also in " +
                                        holder[name]->file().filename().string());
    }
  for (const NamedTensor& tensor : wanted) {
    const auto at = holder.find(tensor.name);
    if (at == holder.end())
      return damaged(out.files_.front().file(), "tensor '" + tensor.name + "' is missing");
    const std::vector<std::int64_t>& shape = at->second->entries().at(tensor.name).shape;
    if (shape != tensor.shape)
      return damaged(at->second->file(), "tensor '" + tensor.name + "' has shape " +
                                             shape_text(shape) + "; config.json asks for " +
                                             shape_text(tensor.shape));
    out.holders_.push_back(at->second);
    holder.erase(at);
  }
  if (tied != nullptr)
    if (const auto copy = holder.find(tied->alias); copy != holder.end()) {
      out.tied_ = *tied;
      out.tied_holder_ = copy->second;
      holder.erase(copy);
    }
  if (!holder.empty())
    return damaged(holder.begin()->second->file(),
                   "tensor '" + holder.begin()->first + "' does not belong to this architecture");
  return out;
}

Result<void> TensorFiles::read(std::span<const NamedTensor> tensors,
                               device::ThreadPool* threads) const {
  CHECK(tensors.size() == holders_.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    CHECK(value_count(holders_[i]->entries().at(tensors[i].name).shape) ==
          tensors[i].values.size());
  Result<void> read = for_each_piece(threads, pieces_of(tensors), [&](const Piece& piece) {
    const NamedTensor& tensor = tensors[piece.tensor];
    return holders_[piece.tensor]->read_part(tensor.name, piece.first,
                                             tensor.values.subspan(piece.first, piece.count));
  });
  if (!read || tied_holder_ == nullptr) return read;
  return check_tied_copy(tensors, threads);
}

Result<void> TensorFiles::check_tied_copy(std::span<const NamedTensor> tensors,
                                          device::ThreadPool* threads) const {
  const auto original = std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) {
    return t.name == tied_.alias_of;
  });
  CHECK(original != tensors.end());
  const std::string unlike = "', to which config.json ties it";
  if (tied_holder_->entries().at(tied_.alias).shape != original->shape)
    return damaged(tied_holder_->file(), "tensor '" + tied_.alias + "' has another shape than '" +
                                             tied_.alias_of + unlike);
  const std::span<const NamedTensor> one(&*original, 1);
  return for_each_piece(threads, pieces_of(one), [&](const Piece& piece) -> Result<void> {
    std::vector<float> copy(piece.count);
    if (Result<void> read = tied_holder_->read_part(tied_.alias, piece.first, copy); !read)
      return read;
    // Compared as bytes: a NaN equals itself, and 0 differs from -0.
    if (std::memcmp(copy.data(), original->values.data() + piece.first,
                    piece.count * sizeof(float)) == 0)
      return {};
    return damaged(tied_holder_->file(),
                   "tensor '" + tied_.alias + "' differs from '" + tied_.alias_of + unlike);
  });
}

Result<void> write_safetensors(const std::filesystem::path& file,
                               std::span<const NamedTensor> tensors) {
  NewFile made;
  for (const NamedTensor& tensor : tensors) {
    CHECK(value_count(tensor.shape) == tensor.values.size());
    made.add(tensor.name, "F32", tensor.shape, std::as_bytes(tensor.values));
  }
  return write_file_atomic(file, made.parts());
}

Result<void> write_weights(const std::filesystem::path& file, const WeightBytes& weights) {
  NewFile made;
  for (const device::ParameterSpec& parameter : weights.manifest.parameters) {
    CHECK(parameter.dtype == device::DType::kF32 || parameter.dtype == device::DType::kBF16);
    made.add(parameter.name, parameter.dtype == device::DType::kF32 ? "F32" : "BF16",
             parameter.shape, weights.arena.subspan(parameter.offset_bytes, parameter.bytes));
  }
  return write_file(file, made.parts());
}

}  // namespace tandem::model
