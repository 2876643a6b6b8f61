// Two memories behind one pair of interfaces. In shared memory, a version is copied by blocks and
// hashed in the same pass (stream_copy.h). On a GPU, a version reaches the subscriber's buffer
// without passing through the host, and an engine installs it without an upload; the bytes that
// arrived are read back to be hashed (read_back.h).
#include "runtime/weights/slot_memory.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "runtime/device/shared_block.h"
#include "runtime/weights/read_back.h"
#include "runtime/weights/stream_copy.h"

namespace tandem::weights {
namespace {

class ShmSlotWriter final : public SlotWriter {
 public:
  explicit ShmSlotWriter(const ShmSegment& segment) : segment_(segment) {}
  std::uint64_t write(std::size_t slot, std::span<const std::byte> arena) override {
    std::span<std::byte> to = segment_.slot_bytes(slot);
    Checksum64 checksum;
    while (!arena.empty()) {
      const std::size_t copied = stream_block(to, arena);
      checksum.update(arena.first(copied));
      to = to.subspan(copied);
      arena = arena.subspan(copied);
    }
    stream_end();
    return checksum.value();
  }
  std::optional<std::uint64_t> checksum_of(std::size_t slot) override {
    return checksum64(segment_.slot_bytes(slot));
  }

 private:
  const ShmSegment& segment_;
};

class ShmSlotReader final : public SlotReader {
 public:
  explicit ShmSlotReader(const ShmSegment& segment) : segment_(segment) {}
  Result<void> open(std::size_t slot) override {
    from_ = segment_.slot_bytes(slot);
    return {};
  }
  void close() override {
    stream_end();
    from_ = {};
  }
  std::span<const std::byte> read(std::size_t offset, std::span<std::byte> part) override {
    const std::span<const std::byte> from = from_.subspan(offset, part.size());
    return from.first(stream_block(part, from));
  }

 private:
  const ShmSegment& segment_;
  std::span<const std::byte> from_;
};

// Has a block of GPU memory for each slot, and writes the blocks' names into the slots when it is
// made. Names do not change afterwards, so readers need no lock to read them.
class GpuSlotWriter final : public SlotWriter {
 public:
  static Result<std::unique_ptr<SlotWriter>> make(const WeightsConfig& config,
                                                  const ShmSegment& segment) {
    std::vector<device::Buffer> blocks;
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(config.slots); ++slot) {
      Result<device::Buffer> block =
          device::Buffer::allocate(config.layout.arena_bytes, "a published version of the weights",
                                   device::MemoryKind::kDevice);
      if (!block) return block.error();
      const Result<device::BlockName> name = share(*block);
      if (!name) return name.error();
      std::memcpy(segment.slot_bytes(slot).data(), &*name, sizeof(device::BlockName));
      blocks.push_back(*std::move(block));
    }
    return std::unique_ptr<SlotWriter>(std::make_unique<GpuSlotWriter>(std::move(blocks)));
  }
  explicit GpuSlotWriter(std::vector<device::Buffer> blocks) : blocks_(std::move(blocks)) {}

  std::uint64_t write(std::size_t slot, std::span<const std::byte> arena) override {
    copy(queue_.stream(), blocks_[slot].data(), arena.data(), arena.size());
    const std::uint64_t checksum = checksum64(arena);  // computed while the copy is under way
    synchronize(queue_.stream());
    return checksum;
  }
  std::optional<std::uint64_t> checksum_of(std::size_t slot) override {
    const device::Buffer& block = blocks_[slot];
    const auto bytes = device::Buffer::allocate(block.size(), "a version that is read back",
                                                device::MemoryKind::kPinned);
    if (!bytes) return std::nullopt;
    copy(queue_.stream(), bytes->data(), block.data(), block.size());
    synchronize(queue_.stream());
    return checksum64({bytes->data(), block.size()});
  }

 private:
  std::vector<device::Buffer> blocks_;
  const device::Queue queue_{device::DeviceKind::kCuda};
};

// Opens the block of a pinned slot for the time of a copy.
class GpuSlotReader final : public SlotReader {
 public:
  GpuSlotReader(const ShmSegment& segment, std::unique_ptr<ReadBack> copies)
      : segment_(segment), copies_(std::move(copies)) {}

  Result<void> open(std::size_t slot) override {
    device::BlockName name;
    std::memcpy(&name, segment_.slot_bytes(slot).data(), sizeof name);
    Result<device::SharedBlock> block = device::SharedBlock::open(name);
    if (!block) return block.error();
    from_.emplace(*std::move(block));
    return {};
  }
  void close() override { from_.reset(); }

  std::span<const std::byte> read(std::size_t offset, std::span<std::byte> part) override {
    return copies_->copy_part(from_->data() + offset, part);
  }

 private:
  const ShmSegment& segment_;
  const std::unique_ptr<ReadBack> copies_;
  std::optional<device::SharedBlock> from_;
};

}  // namespace

Result<std::unique_ptr<SlotWriter>> make_slot_writer(const WeightsConfig& config,
                                                     const ShmSegment& segment) {
  if (traits_of(config.type).versions != VersionMemory::kGpuMemory)
    return std::unique_ptr<SlotWriter>(std::make_unique<ShmSlotWriter>(segment));
  for (SegmentSlot& slot : segment.header().slot) slot.offered = 0;
  if (const auto& module = device::cuda_module(); !module) return module.error();
  return GpuSlotWriter::make(config, segment);
}

Result<std::unique_ptr<SlotReader>> make_slot_reader(const WeightsConfig& config,
                                                     const ShmSegment& segment) {
  if (traits_of(config.type).versions != VersionMemory::kGpuMemory)
    return std::unique_ptr<SlotReader>(std::make_unique<ShmSlotReader>(segment));
  if (const auto& module = device::cuda_module(); !module) return module.error();
  auto copies = ReadBack::make(device::DeviceKind::kCuda, config.layout.arena_bytes);
  if (!copies) return copies.error();
  return std::unique_ptr<SlotReader>(std::make_unique<GpuSlotReader>(segment, *std::move(copies)));
}

}  // namespace tandem::weights
