// The invitation to a new epoch, which is sent to each rank before the epoch starts, and the check
// that all ranks mean the same bytes. The control plane carries it; a rank checks it and refuses
// before it joins. Pure.
//
// Invariants
//   NV-1  Ranks whose layouts differ are told so, with the first tensor that differs, before the
//         first byte travels: NCCL itself would hang, or fill in garbage.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_api.h"
#include "runtime/device/manifest.h"

namespace tandem::collective {

struct NcclRendezvous {
  std::uint64_t epoch = 0;
  NcclUniqueId unique_id;
  int size = 0;
  std::uint64_t layout_hash = 0;  // the hash of the manifest that the bytes follow
};

// Whether a rank whose layout has the hash `ours` may take part as rank `rank`; kInvalid says why
// not.
Result<void> check_rendezvous(const NcclRendezvous& offered, int rank, std::uint64_t ours);

// Compares two layouts whose hashes differ, for the text of the error: kInvalid names the first
// tensor in which they differ, and how.
Result<void> check_layouts(const device::Manifest& ours, const device::Manifest& theirs);

}  // namespace tandem::collective
