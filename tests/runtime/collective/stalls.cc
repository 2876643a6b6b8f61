#include "tests/runtime/collective/stalls.h"

#include <algorithm>

namespace tandem::collective {
namespace {

bool is_operation_of(const NcclRecord& record, std::uint64_t epoch) {
  return record.epoch == epoch && record.sequence > 0;
}

// How many operations a rank has handed to NCCL.
std::uint64_t last_entered(std::span<const NcclRecord> records, std::uint64_t epoch) {
  std::uint64_t last = 0;
  for (const NcclRecord& record : records)
    if (is_operation_of(record, epoch) && record.state != NcclState::kQueued)
      last = std::max(last, record.sequence);
  return last;
}

const NcclRecord* operation(std::span<const NcclRecord> records, std::uint64_t epoch,
                            std::uint64_t sequence) {
  const auto found = std::ranges::find_if(records, [&](const NcclRecord& record) {
    return is_operation_of(record, epoch) && record.sequence == sequence;
  });
  return found == records.end() ? nullptr : &*found;
}

void append_rank(std::string& list, std::size_t rank) {
  list += (list.empty() ? "rank " : ", rank ") + std::to_string(rank);
}

}  // namespace

std::string explain_stall(std::span<const std::vector<NcclRecord>> by_rank, std::uint64_t epoch) {
  std::vector<std::uint64_t> entered;  // operations, by rank
  for (const std::vector<NcclRecord>& records : by_rank)
    entered.push_back(last_entered(records, epoch));
  if (entered.empty()) return "";
  // Operations are entered in order, so the ranks with the lowest number hold the others up.
  const std::uint64_t least = std::ranges::min(entered);
  const NcclRecord* awaited = nullptr;  // the operation that the last ranks have not come to
  std::string behind, ahead;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    append_rank(entered[rank] == least ? behind : ahead, rank);
    if (awaited == nullptr) awaited = operation(by_rank[rank], epoch, least + 1);
  }
  if (ahead.empty() || awaited == nullptr) return "";
  return behind + " did not enter operation " + std::to_string(least + 1) + " (" +
         name(awaited->kind) + " of " + std::to_string(awaited->bytes) + " bytes), which " + ahead +
         " entered";
}

}  // namespace tandem::collective
