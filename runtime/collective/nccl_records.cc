#include "runtime/collective/nccl_records.h"

#include <algorithm>
#include <utility>

namespace tandem::collective {
const char* name(NcclKind kind) {
  constexpr std::array kNames{"start",   "broadcast", "all-reduce", "send",
                              "receive", "group",     "finish",     "abort"};
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

}  // namespace tandem::collective
