// What has changed from one version of the weights to the next: the new values of the elements
// whose bits differ, exactly. A delta overwrites, so it may be applied again. It is made and read
// without a network or a file. Internal to runtime/weights.
//
// With bf16 versions and the small steps of reinforcement learning most elements stay as they are:
// a change of less than half a unit in the last place does not show (docs/decisions/0039-deltas.md
// has figures).
//
// The bytes, all numbers little-endian:
//
//   DeltaHead
//   for each tensor with a change, in their order:
//     SectionHead, with a checksum64 of the section
//     for each block of 64 Ki elements with a change, in their order:
//       u32 number of the block in the tensor
//       u32 form (the upper 2 bits) and changed elements (the others, at least 1)
//       kOffsets: their places in the block, u16, ascending; then their values
//       kBitmap:  a bit for each element of the block, in u64, the first one lowest; their values
//       kDense:   the values of all elements of the block
//
// A tensor's section covers the gap behind the tensor too, so that a delta covers every byte.
//
// WD-1  Applied to its base, a delta gives the version to the bit.
// WD-2  A delta that is damaged, or belongs to another layout or other versions, is refused before
//       it has changed a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/weights/weight_offer.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// Which versions a delta lies between.
struct DeltaName {
  WeightOffer base;  // the version that it is applied to
  WeightOffer next;  // the version that it gives
  bool operator==(const DeltaName&) const = default;
};
TANDEM_WIRE(DeltaName, base, next)

struct Delta {
  DeltaName name;
  std::vector<std::byte> bytes;
};

// Compares two versions in parts. Neither version is kept.
class DeltaEncoder {
 public:
  // Gives up as soon as the delta has more than `bytes_max` bytes. The layout is borrowed.
  DeltaEncoder(const WeightsLayout& layout, const DeltaName& name, std::uint64_t bytes_max);

  // Compares about `bytes` more bytes of the two versions, each arena_bytes long (CHECKed). Returns
  // whether more is left to do.
  bool step(std::span<const std::byte> base, std::span<const std::byte> next, std::uint64_t bytes);

  bool gave_up() const { return gave_up_; }
  std::uint64_t changed() const { return changed_; }  // elements, so far
  // The whole delta, after a step() that returned false and did not give up (CHECKed).
  Delta take();

 private:
  void compare_block(std::span<const std::byte> base, std::span<const std::byte> next);
  template <class Word>
  void encode_block(const std::byte* base, const std::byte* next, std::size_t count);
  void end_section();

  const WeightsLayout& layout_;
  std::uint64_t bytes_max_;
  Delta delta_;
  std::size_t tensor_ = 0;   // the one that is compared
  std::uint64_t block_ = 0;  // in it
  std::size_t section_ = 0;  // where its section begins; 0: it has none yet
  std::uint64_t sections_ = 0;
  std::uint64_t changed_ = 0;
  bool gave_up_ = false;
};

// Applies a delta, which may come from another process, to `arena`, which holds its base.
// kInvalid where it is not the delta of that name for this layout, or is damaged; the tensor is
// named. Whether `arena` held the base shows in the checksum of the result, which the caller
// compares.
Result<void> apply_delta(const WeightsLayout& layout, const DeltaName& name,
                         std::span<const std::byte> delta, std::span<std::byte> arena);

}  // namespace tandem::weights
