#include "runtime/collective/nccl_rendezvous.h"

#include <algorithm>
#include <string>

#include "runtime/collective/collective.h"

namespace tandem::collective {
namespace {

Error unlike(const std::string& message) {
  return {.code = ErrorCode::kInvalid, .message = message, .where = {}, .help = {}};
}

std::string describe_parameter(const device::ParameterSpec& spec) {
  std::string shape;
  for (const std::int64_t extent : spec.shape)
    shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  return spec.name + " (" + name(spec.dtype) + ", [" + shape + "], at byte " +
         std::to_string(spec.offset_bytes) + ")";
}

}  // namespace

Result<void> check_rendezvous(const NcclRendezvous& offered, int rank, std::uint64_t ours) {
  const std::string epoch = "epoch " + std::to_string(offered.epoch);
  if (offered.size < 1 || offered.size > kRanksMax)
    return unlike(epoch + " has " + std::to_string(offered.size) + " ranks, not 1 to " +
                  std::to_string(kRanksMax));
  if (rank < 0 || rank >= offered.size)
    return unlike(epoch + " has " + std::to_string(offered.size) + " ranks, and no rank " +
                  std::to_string(rank));
  if (offered.layout_hash != ours)
    return unlike(epoch + " is for weights of another layout (hash " +
                  std::to_string(offered.layout_hash) + ", not " + std::to_string(ours) + ")");
  return {};
}

Result<void> check_layouts(const device::Manifest& ours, const device::Manifest& theirs) {
  // The first difference is named; the rest mostly follows from it, since offsets shift.
  const std::size_t both = std::min(ours.parameters.size(), theirs.parameters.size());
  for (std::size_t i = 0; i < both; ++i)
    if (!(ours.parameters[i] == theirs.parameters[i]))
      return unlike("tensor " + std::to_string(i) + " is " +
                    describe_parameter(ours.parameters[i]) + " here and " +
                    describe_parameter(theirs.parameters[i]) + " there");
  if (ours.parameters.size() > both)
    return unlike("tensor " + std::to_string(both) + ", " +
                  describe_parameter(ours.parameters[both]) + ", is here and not there");
  if (theirs.parameters.size() > both)
    return unlike("tensor " + std::to_string(both) + ", " +
                  describe_parameter(theirs.parameters[both]) + ", is there and not here");
  if (ours.bytes_total != theirs.bytes_total)
    return unlike("the tensors are the same, and take " + std::to_string(ours.bytes_total) +
                  " bytes here and " + std::to_string(theirs.bytes_total) + " there");
  return {};
}

}  // namespace tandem::collective
