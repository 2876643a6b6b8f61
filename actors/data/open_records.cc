#include "actors/data/open_records.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "actors/data/foreign_format.h"
#include "actors/data/packed_bytes.h"
#include "actors/data/parquet_rows.h"
#include "runtime/base/file.h"

namespace tandem::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kParquet = "PAR1";

// A source whose first bytes were read already, in order to look at them.
class WithHead final : public ByteSource {
 public:
  WithHead(std::string head, std::unique_ptr<ByteSource> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}

  Result<std::size_t> read(std::span<char> out) override {
    if (passed_ == head_.size()) return rest_->read(out);
    const std::size_t bytes = head_.copy(out.data(), out.size(), passed_);
    passed_ += bytes;
    return bytes;
  }
  std::uint64_t bytes_read() const override { return rest_->bytes_read(); }

 private:
  const std::string head_;
  const std::unique_ptr<ByteSource> rest_;
  std::size_t passed_ = 0;
};

// The first kHeadBytes of `bytes`, which then go on behind them; fewer where there are no more.
Result<std::string> read_head(ByteSource& bytes) {
  std::string head(kHeadBytes, '\0');
  std::size_t held = 0;
  while (held < head.size()) {
    const auto got = bytes.read(std::span(head).subspan(held));
    if (!got) return got.error();
    if (*got == 0) break;
    held += *got;
  }
  head.resize(held);
  return head;
}

// The first character that JSON does not take for space; 0: there is none.
char first_character(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::size_t at = head.find_first_not_of(" \t\r\n");
  return at == head.npos ? '\0' : head[at];
}

// ".csv" of "train.csv" and, where that is packed, of "train.csv.gz".
std::string table_extension(const fs::path& path, bool packed) {
  std::string extension = (packed ? path.stem() : path).extension();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

}  // namespace

Result<std::unique_ptr<RecordSource>> open_records(const fs::path& path,
                                                   std::size_t record_bytes_max,
                                                   const TellWait& tell) {
  auto file = open_regular(path);
  if (!file)
    return Error{ErrorCode::kFailed, "cannot read the data file: " + cause_of(file.error()),
                 path.string(), file.error().help};
  std::array<char, kParquet.size()> magic{};
  const ssize_t got = ::pread(file->fd.get(), magic.data(), magic.size(), 0);
  if (got == std::ssize(magic) && std::string_view(magic.data(), magic.size()) == kParquet)
    return parquet_rows(*std::move(file), path, record_bytes_max, parquet_reading_here(), tell);
  std::unique_ptr<ByteSource> bytes = file_bytes(std::move(file->fd), path);
  auto head = read_head(*bytes);
  if (!head) return head.error();
  bytes = std::make_unique<WithHead>(*head, std::move(bytes));
  const auto packing = packing_of(*head);
  if (packing) {
    bytes = unpacked(std::move(bytes), *packing, path);
    head = read_head(*bytes);
    if (!head) return head.error();
    bytes = std::make_unique<WithHead>(*head, std::move(bytes));
  }
  if (head->starts_with(kParquet))
    return Error{ErrorCode::kInvalid, "this is a parquet file within a packed one", path.string(),
                 "unpack it: parquet packs its columns by itself"};
  if (auto foreign = foreign_format(*head, path)) return *foreign;
  TextFile text{.bytes = std::move(bytes), .path = path, .record_bytes_max = record_bytes_max};
  const char first = first_character(*head);
  if (first == '[') return json_array(std::move(text));
  const std::string extension = table_extension(path, packing.has_value());
  if (first != '{' && extension == ".csv") return delimited(std::move(text), ',');
  if (first != '{' && (extension == ".tsv" || extension == ".tab"))
    return delimited(std::move(text), '\t');
  return json_lines(std::move(text));
}

}  // namespace tandem::data
