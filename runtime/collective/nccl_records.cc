#include "runtime/collective/nccl_records.h"

#include <algorithm>
#include <utility>

namespace tandem::runtime {
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

const char* name(NcclKind kind) {
  constexpr std::array kNames{"start", "broadcast", "send", "receive", "group", "finish", "abort"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name(NcclState state) {
  constexpr std::array kNames{"queued", "entered", "started", "done", "failed", "aborted"};
  return kNames[static_cast<std::size_t>(state)];
}

NcclRecords::Id NcclRecords::add(NcclRecord record) {
  const std::lock_guard lock(mutex_);
  const Id id = added_++;
  if (ring_.size() < kNcclRecordsMax) {
    ring_.push_back(std::move(record));
  } else {
    ring_[id % kNcclRecordsMax] = std::move(record);
  }
  return id;
}

void NcclRecords::change(Id id, NcclState state, Time now) {
  const std::lock_guard lock(mutex_);
  // NR-1: its place holds a newer record.
  if (id + kNcclRecordsMax < added_) return;
  NcclRecord& record = ring_[id % kNcclRecordsMax];
  record.state = state;
  if (state == NcclState::kStarted) record.started_at = now;
  if (state >= NcclState::kDone) record.ended_at = now;
}

std::vector<NcclRecord> NcclRecords::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<NcclRecord> records = ring_;
  // A full ring begins behind the newest record.
  if (added_ > kNcclRecordsMax)
    std::rotate(records.begin(),
                records.begin() + static_cast<std::ptrdiff_t>(added_ % kNcclRecordsMax),
                records.end());
  return records;
}

nlohmann::json to_json(std::span<const NcclRecord> records, Time now) {
  const auto ago = [now](const std::optional<Time>& time) -> nlohmann::json {
    if (!time) return nullptr;
    return seconds(now - *time);
  };
  nlohmann::json list = nlohmann::json::array();
  for (const NcclRecord& record : records)
    list.push_back({{"communicator", record.communicator},
                    {"epoch", record.epoch},
                    {"rank", record.rank},
                    {"sequence", record.sequence},
                    {"kind", name(record.kind)},
                    {"label", record.label},
                    {"bytes", record.bytes},
                    {"peers", record.peers},
                    {"state", name(record.state)},
                    {"enqueued_seconds_ago", ago(record.enqueued_at)},
                    {"started_seconds_ago", ago(record.started_at)},
                    {"ended_seconds_ago", ago(record.ended_at)}});
  return list;
}

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

}  // namespace tandem::runtime
