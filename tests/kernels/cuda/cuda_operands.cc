#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {

namespace {

TensorView shaped(DType dtype, std::initializer_list<std::int64_t> shape) {
  return device::tensor(static_cast<void*>(nullptr), dtype, shape);
}

}  // namespace

BytesOnGpu::BytesOnGpu(const Stream& stream, std::span<const std::byte> bytes)
    : stream_(stream),
      memory_(device::Buffer::allocate(bytes.size(), "a test's operand",
                                       device::operand_memory(stream.device))
                  .value()) {
  device::copy(stream, memory_.data(), bytes.data(), bytes.size());
  device::synchronize(stream);
}

void BytesOnGpu::read(std::span<std::byte> to) const {
  CHECK(to.size() == memory_.size());
  device::copy(stream_, to.data(), memory_.data(), to.size());
  device::synchronize(stream_);
}

Operand::Operand(const Stream& stream, TensorView view, std::span<const std::byte> bytes)
    : memory_(stream, bytes), size_(bytes.size()), view_(view) {
  view_.data = memory_.data();
}

Operand::Operand(const Stream& stream, DType dtype, std::initializer_list<std::int64_t> shape,
                 std::span<const float> values)
    : Operand(stream, shaped(dtype, shape), stored(dtype, values)) {
  CHECK(view_.elements() == std::ssize(values));
}

Operand::Operand(const Stream& stream, std::initializer_list<std::int64_t> shape,
                 std::span<const std::int32_t> values)
    : Operand(stream, shaped(DType::kI32, shape), std::as_bytes(values)) {
  CHECK(view_.elements() == std::ssize(values));
}

Operand Operand::poisoned(const Stream& stream, DType dtype,
                          std::initializer_list<std::int64_t> shape) {
  const TensorView view = shaped(dtype, shape);
  const auto elements = static_cast<std::size_t>(view.elements());
  const std::vector<std::byte> ones(elements * device::size_bytes(dtype), std::byte{0xff});
  return Operand(stream, view, ones);
}

Floats Operand::values() const {
  std::vector<std::byte> bytes(size_);
  memory_.read(bytes);
  Floats values(static_cast<std::size_t>(view_.elements()));
  device::to_f32(bytes, view_.dtype, values);
  return values;
}

std::vector<std::int32_t> Operand::integers() const {
  CHECK(view_.dtype == DType::kI32);
  std::vector<std::int32_t> values(static_cast<std::size_t>(view_.elements()));
  memory_.read(std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace tandem::kernels
