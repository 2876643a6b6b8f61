#include "runtime/device/manifest.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/device/memory.h"

namespace tandem::device {

void Manifest::add(std::string name, DType dtype, std::vector<std::int64_t> shape) {
  CHECK(find(name) == nullptr);
  CHECK(!shape.empty() && shape.size() <= kRankMax);
  std::size_t bytes = size_bytes(dtype);
  for (const std::int64_t extent : shape) {
    CHECK(extent >= 0);
    bytes *= static_cast<std::size_t>(extent);
  }
  parameters.push_back({.name = std::move(name),
                        .dtype = dtype,
                        .shape = std::move(shape),
                        .offset_bytes = bytes_total,
                        .bytes = bytes});
  // The gap is part of the total, so that the next parameter starts aligned (MF-1).
  bytes_total += align_up(bytes);
}

const ParameterSpec* Manifest::find(std::string_view name) const {
  for (const ParameterSpec& spec : parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::size_t Manifest::elements() const {
  std::size_t sum = 0;
  for (const ParameterSpec& spec : parameters) sum += spec.bytes / size_bytes(spec.dtype);
  return sum;
}

TensorView parameter_view(const ParameterSpec& spec, std::byte* base) {
  TensorView view{.data = base + spec.offset_bytes,
                  .dtype = spec.dtype,
                  .rank = static_cast<int>(spec.shape.size())};
  for (std::size_t i = 0; i < spec.shape.size(); ++i) view.shape[i] = spec.shape[i];
  view.row_stride = view.row_elements();
  return view;
}

TensorView fused_view(const Manifest& manifest, std::string_view first, std::string_view last,
                      std::byte* base) {
  const ParameterSpec* spec = manifest.find(first);
  const ParameterSpec* end = manifest.find(last);
  CHECK(spec != nullptr && end != nullptr && spec <= end);
  TensorView view = parameter_view(*spec, base);
  // Each next parameter must begin where the one before ends: a gap would be a row of the result.
  for (; spec != end; ++spec) {
    const ParameterSpec& next = spec[1];
    CHECK(next.dtype == view.dtype && next.offset_bytes == spec->offset_bytes + spec->bytes);
    const TensorView more = parameter_view(next, base);
    CHECK(more.rank == view.rank && more.row_elements() == view.row_elements());
    view.shape[0] += more.dim(0);
  }
  return view;
}

}  // namespace tandem::device
