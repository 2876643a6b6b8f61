#include "runtime/device/staged.h"

#include <utility>

namespace tandem::device {
namespace {

// Bytes; a multiple of the alignment that any dtype needs, so that every side can hold any table.
constexpr std::size_t kSideAlignment = 256;

}  // namespace

Result<Staged> Staged::allocate(std::size_t bytes, const char* purpose, DeviceKind device,
                                std::size_t sides) {
  Staged staged;
  staged.size_ = bytes;
  staged.stride_ = (bytes + kSideAlignment - 1) / kSideAlignment * kSideAlignment;
  staged.moved_.resize(sides);
  Result<Buffer> host = Buffer::allocate(staged.stride_ * sides, purpose, staging_memory(device));
  if (!host) return host.error();
  staged.host_ = *std::move(host);
  if (device == DeviceKind::kCpu) return staged;
  Result<Buffer> there = Buffer::allocate(bytes, purpose, operand_memory(device));
  if (!there) return there.error();
  staged.device_ = *std::move(there);
  return staged;
}

void Staged::wait(std::size_t side) const {
  CHECK(moved_.size() > 1);  // with one side no move is recorded
  moved_[side].wait();
}

void Staged::turn() {
  side_ = (side_ + 1) % moved_.size();
  wait(side_);
}

void Staged::move(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  CHECK(bytes <= size_);
  // On a CPU host and device are one block, and there is nothing to move.
  if (device_.data() == nullptr) return;
  copy(stream, to, from, bytes);
  if (moved_.size() > 1) moved_[side_].record(stream);
}

void Staged::upload(const Stream& stream, std::size_t bytes) {
  move(stream, device_.data(), host(), bytes);
}

void Staged::download(const Stream& stream, std::size_t bytes) {
  move(stream, host(), device_.data(), bytes);
}

}  // namespace tandem::device
