// A file of weights that somebody downloaded: model.safetensors. Checked: every tensor lies inside
// the file, behind its header, and has as many bytes as its shape and type say; its values can be
// read whole.
#include "actors/model/safetensors.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {

void safetensors(std::string_view input) {
  const std::filesystem::path path = scratch_folder() / "model.safetensors";
  CHECK(write_file(path, std::as_bytes(std::span(input))).has_value());
  const auto file = model::SafetensorsFile::open(path);
  if (!file) {
    CHECK(file.error().where.find(path.string()) != std::string::npos);
    return;
  }
  for (const auto& [name, entry] : file->entries()) {
    CHECK(entry.begin <= entry.end && entry.end <= input.size());
    std::uint64_t values = 1;
    for (const std::int64_t extent : entry.shape) values *= static_cast<std::uint64_t>(extent);
    CHECK(values <= input.size());
    CHECK(entry.end - entry.begin == values * (entry.dtype == "F32" ? 4 : 2));
    std::vector<float> read(values);
    CHECK(file->read(name, read).has_value());
  }
}

}  // namespace tandem::fuzz
