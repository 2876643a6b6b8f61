#include "actors/runs/wandb_log.h"

#include <algorithm>
#include <array>

#include "actors/runs/protobuf.h"
#include "runtime/base/file.h"

namespace tandem::runs {
namespace {

constexpr std::size_t kBlockBytes = 32'768;
constexpr std::size_t kFragmentHeaderBytes = 7;

enum FragmentType : std::uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

// CRC-32 of IEEE 802.3, as zlib's crc32().
constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    table[i] = crc;
  }
  return table;
}();

std::uint32_t fragment_crc(FragmentType type, std::string_view data) {
  std::uint32_t crc = ~0u;
  const auto add = [&crc](unsigned char byte) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ byte) & 0xff];
  };
  add(type);
  for (const char c : data) add(static_cast<unsigned char>(c));
  return ~crc;
}

}  // namespace

void append_framed(std::string& to, std::uint64_t offset, std::string_view record) {
  for (bool first = true; first || !record.empty(); first = false) {
    std::size_t room = kBlockBytes - (offset + to.size()) % kBlockBytes;
    if (room < kFragmentHeaderBytes) {
      to.append(room, '\0');
      room = kBlockBytes;
    }
    const auto data = record.substr(0, room - kFragmentHeaderBytes);
    record.remove_prefix(data.size());
    const FragmentType type =
        record.empty() ? (first ? kWhole : kLast) : (first ? kFirst : kMiddle);
    append_little_endian(to, fragment_crc(type, data));
    append_little_endian(to, static_cast<std::uint16_t>(data.size()));
    to += static_cast<char>(type);
    to += data;
  }
}

Result<WandbLogReader> WandbLogReader::open(const std::filesystem::path& path) {
  if (const auto regular = refuse_irregular(path); !regular) return regular.error();
  std::ifstream file(path, std::ios::binary);
  std::string header(kWandbHeader.size(), '\0');
  if (!file.read(header.data(), static_cast<std::streamsize>(header.size())) ||
      header != kWandbHeader)
    return Error{ErrorCode::kFailed, "this is no file of wandb's", path.string(), {}};
  return WandbLogReader(std::move(file));
}

std::optional<std::string> WandbLogReader::next() {
  std::string record, head(kFragmentHeaderBytes, '\0'), data;
  for (bool first = true;; first = false) {
    if (const std::size_t room = kBlockBytes - at_ % kBlockBytes; room < kFragmentHeaderBytes) {
      file_.ignore(static_cast<std::streamsize>(room));
      at_ += room;
    }
    if (!file_.read(head.data(), kFragmentHeaderBytes)) return std::nullopt;
    const std::string_view bytes = head;
    const auto type = static_cast<FragmentType>(head[6]);
    data.resize(little_endian(bytes.substr(4, 2)));
    if (!file_.read(data.data(), static_cast<std::streamsize>(data.size()))) return std::nullopt;
    const bool begins = type == kWhole || type == kFirst;
    if (type < kWhole || type > kLast || begins != first ||
        little_endian(bytes.substr(0, 4)) != fragment_crc(type, data) ||
        record.size() + data.size() > kWandbRecordBytesMax)
      return std::nullopt;
    at_ += kFragmentHeaderBytes + data.size();
    record += data;
    if (type != kWhole && type != kLast) continue;
    end_ = at_;
    return record;
  }
}

}  // namespace tandem::runs
