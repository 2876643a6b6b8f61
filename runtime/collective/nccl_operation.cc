#include "runtime/collective/nccl_operation.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tandem::collective {
namespace {

std::string describe_transfer(const NcclTransfer& transfer) {
  if (transfer.kind == NcclKind::kAllReduce)
    return std::string(name(transfer.kind)) + " of " + std::to_string(transfer.bytes) + " bytes";
  const char* const preposition = transfer.kind == NcclKind::kSend ? " to rank " : " from rank ";
  return std::string(name(transfer.kind)) + " of " + std::to_string(transfer.bytes) + " bytes" +
         preposition + std::to_string(transfer.peer);
}

}  // namespace

NcclKind kind_of(const NcclOperation& operation) {
  return operation.transfers.size() == 1 ? operation.transfers.front().kind : NcclKind::kGroup;
}

std::uint64_t bytes_of(const NcclOperation& operation) {
  std::uint64_t bytes = 0;
  for (const NcclTransfer& transfer : operation.transfers) bytes += transfer.bytes;
  return bytes;
}

std::vector<int> peers_of(const NcclOperation& operation) {
  std::vector<int> peers;
  for (const NcclTransfer& transfer : operation.transfers)
    if (transfer.kind != NcclKind::kAllReduce) peers.push_back(transfer.peer);
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

std::string describe_operation(const NcclOperation& operation) {
  std::string text = kind_of(operation) == NcclKind::kGroup
                         ? "a group of " + std::to_string(operation.transfers.size()) +
                               " transfers, " + std::to_string(bytes_of(operation)) + " bytes"
                         : describe_transfer(operation.transfers.front());
  if (!operation.label.empty()) text += " (" + operation.label + ")";
  return text;
}

// The root of a broadcast, and each rank of a sum, waits for all others, whose numbers are not in
// its operation.
std::string awaited_ranks(const NcclOperation& operation, int rank) {
  std::string list;
  for (const int peer : peers_of(operation))
    if (peer != rank) list += (list.empty() ? "rank " : ", rank ") + std::to_string(peer);
  return list.empty() ? "the other ranks" : list;
}

Error refusal(const std::string& what, const std::string& why) {
  return {.code = ErrorCode::kInvalid, .message = what + ": " + why, .where = {}, .help = {}};
}

Result<void> check_operation(const NcclOperation& operation, const NcclEpoch& epoch) {
  if (operation.transfers.empty() || operation.transfers.size() > kNcclTransfersMax)
    return refusal("an operation of NCCL", "it has " + std::to_string(operation.transfers.size()) +
                                               " transfers, not 1 to " +
                                               std::to_string(kNcclTransfersMax));
  for (const NcclTransfer& transfer : operation.transfers) {
    const bool of_all =
        transfer.kind == NcclKind::kBroadcast || transfer.kind == NcclKind::kAllReduce;
    if (!of_all && transfer.kind != NcclKind::kSend && transfer.kind != NcclKind::kReceive)
      return refusal(name(transfer.kind), "it is no transfer");
    if (transfer.memory == nullptr || transfer.bytes == 0)
      return refusal(describe_transfer(transfer), "it has no memory");
    if (transfer.peer < 0 || transfer.peer >= epoch.size)
      return refusal(describe_transfer(transfer),
                     "there are " + std::to_string(epoch.size) + " ranks");
    if (transfer.kind == NcclKind::kAllReduce && transfer.bytes % sizeof(float) != 0)
      return refusal(describe_transfer(transfer), "that is not a number of whole floats");
    if (!of_all && transfer.peer == epoch.rank)
      return refusal(describe_transfer(transfer), "that is this rank itself");
  }
  return {};
}

Error nccl_failure(const NcclApi& api, const char* function, NcclResult result, NcclApi::Comm comm,
                   const std::string& attempt) {
  const bool ours = result == NcclResult::kInvalidArgument || result == NcclResult::kInvalidUsage;
  return {.code = ours ? ErrorCode::kInvalid : ErrorCode::kFailed,
          .message = attempt + ": " + describe_nccl_failure(api, function, result, comm),
          .where = {},
          .help = {}};
}

std::string text_of_seconds(Duration duration) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", seconds(duration));
  return text.data();
}

}  // namespace tandem::collective
