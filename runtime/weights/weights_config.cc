// Writes and reads the text of a layout, and chooses the type that kAuto stands for. Publisher and
// subscriber each resolve kAuto by themselves, so resolve() depends only on facts that all
// processes of a host see alike; for other hosts the subscriber of kAuto learns the choice from the
// publisher's source (auto_subscriber.cc).
#include "runtime/weights/weights_config.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <ranges>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/json.h"

namespace tandem::weights {
namespace {

std::optional<device::DType> dtype_named(const nlohmann::json& text) {
  for (const device::DType dtype : {device::DType::kF32, device::DType::kBF16, device::DType::kF16,
                                    device::DType::kI32, device::DType::kU8})
    if (text == name(dtype)) return dtype;
  return std::nullopt;
}

// Reads one tensor of a manifest_json; none where `one` is something else. The text may come from
// another process, so every key and type is checked first.
std::optional<device::ParameterSpec> parameter_in(const nlohmann::json& one) {
  for (const char* key : {"name", "dtype", "shape", "offset_bytes", "bytes"})
    if (!one.is_object() || !one.contains(key)) return std::nullopt;
  const auto dtype = dtype_named(one["dtype"]);
  if (!dtype || !one["name"].is_string() || !one["shape"].is_array() ||
      !one["offset_bytes"].is_number_unsigned() || !one["bytes"].is_number_unsigned())
    return std::nullopt;
  device::ParameterSpec spec{.name = one["name"],
                             .dtype = *dtype,
                             .shape = {},
                             .offset_bytes = one["offset_bytes"],
                             .bytes = one["bytes"]};
  for (const nlohmann::json& extent : one["shape"]) {
    if (!extent.is_number_integer()) return std::nullopt;
    spec.shape.push_back(extent);
  }
  return spec;
}

// Reads a text of layout_of(); none where `text` is something else.
std::optional<device::Manifest> manifest_in(const std::string& text) {
  const nlohmann::json whole = parse_json(text);
  if (!whole.is_object() || !whole.contains("parameters") || !whole["parameters"].is_array() ||
      !whole.contains("bytes_total") || !whole["bytes_total"].is_number_unsigned())
    return std::nullopt;
  device::Manifest manifest;
  for (const nlohmann::json& one : whole["parameters"]) {
    auto spec = parameter_in(one);
    if (!spec) return std::nullopt;
    manifest.parameters.push_back(*std::move(spec));
  }
  manifest.bytes_total = whole["bytes_total"];
  return manifest;
}

// Offsets ascend from 0 and are multiples of kAlignmentBytes, as the total is (MF-1).
std::vector<TensorRange> tensors_of(const device::Manifest& manifest) {
  std::vector<TensorRange> tensors;
  std::uint64_t end = manifest.bytes_total;
  for (const device::ParameterSpec& parameter : std::views::reverse(manifest.parameters)) {
    tensors.push_back({.name = parameter.name,
                       .offset = parameter.offset_bytes,
                       .bytes = end - parameter.offset_bytes,
                       .element_bytes = size_bytes(parameter.dtype)});
    end = parameter.offset_bytes;
  }
  CHECK(end == 0 || tensors.empty());
  std::ranges::reverse(tensors);
  return tensors;
}

}  // namespace

WeightsLayout layout_of(const device::Manifest& manifest) {
  nlohmann::json parameters = nlohmann::json::array();
  for (const device::ParameterSpec& parameter : manifest.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"dtype", name(parameter.dtype)},
                          {"shape", parameter.shape},
                          {"offset_bytes", parameter.offset_bytes},
                          {"bytes", parameter.bytes}});
  }
  const nlohmann::json whole = {{"bytes_total", manifest.bytes_total},
                                {"parameters", std::move(parameters)}};
  const std::string text = whole.dump() + "\n";
  return {.arena_bytes = manifest.bytes_total,
          .hash = checksum64(std::as_bytes(std::span(text))),
          .manifest_json = text,
          .tensors = tensors_of(manifest)};
}

std::string layout_difference(const std::string& ours, const std::string& theirs) {
  const auto here = manifest_in(ours), there = manifest_in(theirs);
  if (!here || !there) return "one of the two cannot be read";
  const auto same = collective::check_layouts(*here, *there);
  return same ? "they differ in their hashes alone" : same.error().message;
}

std::uint64_t delta_bytes_end(const WeightsConfig& config) {
  // One in which every element has changed has its heads besides, less than the version again.
  const std::uint64_t arena = config.layout.arena_bytes;
  return config.delta == DeltaUse::kAlways ? 2 * arena + (std::uint64_t{1} << 20) : arena / 2;
}

std::string weights_name(std::string_view job, const std::filesystem::path& run_directory) {
  const std::string path = std::filesystem::absolute(run_directory).lexically_normal().string();
  const std::uint64_t digest = checksum64(std::as_bytes(std::span(path)));
  return fmt::format("{}-{:08x}", job, digest & 0xffffffffu);
}

WeightsType resolve(const WeightsConfig& config) {
  if (config.type != WeightsType::kAuto) return config.type;
  // The size and not the free space: all processes of a host see the same size at any time.
  struct statvfs facts;
  if (::statvfs("/dev/shm", &facts) != 0) return WeightsType::kDisk;
  const std::uint64_t room = std::uint64_t{facts.f_blocks} * facts.f_frsize / 2;
  const std::uint64_t need = config.layout.arena_bytes * static_cast<std::uint64_t>(config.slots);
  return need <= room ? WeightsType::kShm : WeightsType::kDisk;
}

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat facts {};
  const bool known = ::stat("/dev/shm", &facts) == 0;
  return fmt::format("{}/{}", boot, known ? std::to_string(facts.st_dev) : "no shared memory");
}

}  // namespace tandem::weights
