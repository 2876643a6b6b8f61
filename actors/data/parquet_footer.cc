// The compact protocol is walked once: the few fields that are needed are kept, and all others are
// skipped by their type. Lengths and counts come from the file and are compared with the bytes that
// are left before they are used.
#include "actors/data/parquet_footer.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace tandem::data {
namespace {

using Kind = ParquetLeaf::Kind;

constexpr int kDepthMax = 64;
constexpr std::uint64_t kTailBytes = 8;  // the footer's length and the magic

// Types of Thrift's compact protocol.
enum Compact : unsigned {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kByte = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kDouble = 7,
  kBytes = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
};

struct FieldHeader {
  unsigned type = kStop;
  std::int64_t id = 0;
};

// After a fault every call returns zeros and ended() is true, so that callers check at the end.
class CompactReader {
 public:
  explicit CompactReader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const unsigned byte = next();
      value |= std::uint64_t{byte & 0x7f} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    failed_ = true;
    return 0;
  }

  std::int64_t integer() {
    const std::uint64_t zigzag = varint();
    return static_cast<std::int64_t>(zigzag >> 1) ^ -static_cast<std::int64_t>(zigzag & 1);
  }

  std::string_view text() {
    const std::uint64_t length = varint();
    if (length > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view found = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return found;
  }

  // The next field of a struct whose field before had the id `before`; kStop at its end.
  FieldHeader field(std::int64_t before) {
    const unsigned byte = next();
    if (failed_ || byte == 0) return {};
    const unsigned delta = byte >> 4;
    return {.type = byte & 15, .id = delta != 0 ? before + delta : integer()};
  }

  // The type and number of a list's elements, each of which takes at least one byte.
  std::pair<unsigned, std::uint64_t> list() {
    const unsigned byte = next();
    const std::uint64_t size = byte >> 4 != 15 ? byte >> 4 : varint();
    if (size > bytes_.size()) failed_ = true;
    return {byte & 15, failed_ ? 0 : size};
  }

  void skip(unsigned type, int depth = 0) {
    if (depth > kDepthMax) failed_ = true;
    if (failed_) return;
    switch (type) {
      case kTrue:
      case kFalse:
        return;
      case kByte:
        next();
        return;
      case kI16:
      case kI32:
      case kI64:
        varint();
        return;
      case kDouble:
        for (int i = 0; i < 8; ++i) next();
        return;
      case kBytes:
        text();
        return;
      case kList:
      case kSet: {
        const auto [element, size] = list();
        for (std::uint64_t i = 0; i < size && !failed_; ++i) skip_element(element, depth);
        return;
      }
      case kMap: {
        const std::uint64_t size = varint();
        const unsigned types = size > 0 ? next() : 0;
        for (std::uint64_t i = 0; i < size && !failed_; ++i) {
          skip_element(types >> 4, depth);
          skip_element(types & 15, depth);
        }
        return;
      }
      case kStruct: {
        FieldHeader inner;
        while ((inner = field(inner.id)).type != kStop) skip(inner.type, depth + 1);
        return;
      }
      default:
        failed_ = true;
    }
  }

 private:
  unsigned next() {
    if (bytes_.empty()) failed_ = true;
    if (failed_) return 0;
    const unsigned byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }

  // A truth value has its own byte in a list, and none in a field.
  void skip_element(unsigned type, int depth) {
    type == kTrue || type == kFalse ? void(next()) : skip(type, depth + 1);
  }

  std::string_view bytes_;
  bool failed_ = false;
};

// A SchemaElement. Numbers are those of parquet.thrift.
struct Element {
  std::optional<std::int64_t> type;       // physical; none: a group
  std::optional<std::int64_t> converted;  // the older form of `logical`
  std::int64_t logical = 0;               // which member of the union LogicalType is set
  std::uint64_t children = 0;
  std::string name;
};

Element read_element(CompactReader& in) {
  Element element;
  for (FieldHeader field; (field = in.field(field.id)).type != kStop;) {
    if (field.id == 1 && field.type == kI32)
      element.type = in.integer();
    else if (field.id == 4 && field.type == kBytes)
      element.name = in.text();
    else if (field.id == 5 && field.type == kI32)
      element.children = static_cast<std::uint64_t>(in.integer());
    else if (field.id == 6 && field.type == kI32)
      element.converted = in.integer();
    else if (field.id == 10 && field.type == kStruct)
      for (FieldHeader member; (member = in.field(member.id)).type != kStop;) {
        element.logical = member.id;
        in.skip(member.type);
      }
    else
      in.skip(field.type);
  }
  return element;
}

Kind kind_of(const Element& element) {
  constexpr std::int64_t kFloatType = 4, kDoubleType = 5, kByteArray = 6, kFixedBytes = 7;
  enum Logical : std::int64_t { kString = 1, kEnum = 4, kDecimal = 5, kJson = 12, kFloat16 = 15 };
  enum Converted : std::int64_t { kUtf8 = 0, kOldEnum = 4, kOldDecimal = 5, kOldJson = 19 };
  const std::int64_t converted = element.converted.value_or(-1);
  if (element.logical == kDecimal || converted == kOldDecimal) return Kind::kDecimal;
  if (element.type == kFloatType || element.type == kDoubleType || element.logical == kFloat16)
    return Kind::kFloat;
  if (converted == 21) return Kind::kInterval;
  if (element.type != kByteArray && element.type != kFixedBytes) return Kind::kNumber;
  const bool text = element.logical == kString || element.logical == kEnum ||
                    element.logical == kJson || converted == kUtf8 || converted == kOldEnum ||
                    converted == kOldJson;
  return text ? Kind::kText : Kind::kBinary;
}

// The elements are the tree in depth-first order. False: their counts of children fit no tree.
bool leaves_of(const std::vector<Element>& elements, std::vector<ParquetLeaf>& leaves) {
  struct Group {
    std::string name;
    std::uint64_t left = 0;  // children that have not been met yet
  };
  std::vector<Group> open;
  for (const Element& element : elements) {
    while (!open.empty() && open.back().left == 0) open.pop_back();
    const bool root = &element == &elements.front();
    if (!root && open.empty()) return false;
    if (!root) --open.back().left;
    if (root || !element.type) {
      if (open.size() > kDepthMax) return false;
      open.push_back({element.name, element.children});
      continue;
    }
    ParquetLeaf& leaf = leaves.emplace_back();
    for (const Group& group : std::span(open).subspan(1)) leaf.path.push_back(group.name);
    leaf.path.push_back(element.name);
    leaf.kind = kind_of(element);
  }
  while (!open.empty() && open.back().left == 0) open.pop_back();
  return open.empty();
}

std::optional<ParquetFooter> parse_footer(std::string_view bytes) {
  CompactReader in(bytes);
  ParquetFooter footer;
  std::vector<Element> elements;
  for (FieldHeader field; (field = in.field(field.id)).type != kStop;) {
    if (field.id == 2 && field.type == kList) {
      const auto [type, size] = in.list();
      if (type != kStruct || size > kSchemaElementsMax) return std::nullopt;
      for (std::uint64_t i = 0; i < size && !in.failed(); ++i) elements.push_back(read_element(in));
    } else if (field.id == 3 && field.type == kI64) {
      const std::int64_t rows = in.integer();
      if (in.failed() || rows < 0 || elements.empty()) return std::nullopt;
      footer.rows = static_cast<std::uint64_t>(rows);
      return leaves_of(elements, footer.leaves) ? std::optional(std::move(footer)) : std::nullopt;
    } else {
      in.skip(field.type);
    }
  }
  return std::nullopt;
}

Error bad_file(std::string message, const std::filesystem::path& path, std::string help = "") {
  if (help.empty()) help = "get the file anew; is it a whole download?";
  return {ErrorCode::kInvalid, std::move(message), path.string(), std::move(help)};
}

// Reads `out.size()` bytes at `offset`.
Result<void> read_at(const OwnedFd& fd, std::uint64_t offset, std::span<char> out,
                     const std::filesystem::path& path) {
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got =
        ::pread(fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", path);
    if (got == 0) return bad_file("the parquet file became shorter while it was read", path);
    done += static_cast<std::size_t>(got);
  }
  return {};
}

std::string dotted(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& name : path) text += (text.empty() ? "" : ".") + name;
  return text;
}

}  // namespace

Result<ParquetFooter> read_parquet_footer(const OwnedFd& fd, std::uint64_t bytes,
                                          const std::filesystem::path& path) {
  const auto cut_off = [&] {
    return bad_file("the parquet file is cut off or damaged: it does not end as one does", path);
  };
  std::array<char, kTailBytes> tail;
  if (bytes < kTailBytes + 4) return cut_off();
  if (auto read = read_at(fd, bytes - kTailBytes, tail, path); !read) return read.error();
  const std::string_view magic(tail.data() + 4, 4);
  if (magic == "PARE")
    return bad_file("the parquet file is encrypted", path, "write it without encryption");
  std::uint32_t length = 0;
  std::memcpy(&length, tail.data(), sizeof length);  // little-endian, as this machine
  if (magic != "PAR1" || length > bytes - kTailBytes - 4 || length > kFooterBytesMax)
    return cut_off();
  std::string text(length, '\0');
  if (auto read = read_at(fd, bytes - kTailBytes - length, text, path); !read) return read.error();
  auto footer = parse_footer(text);
  if (!footer) return bad_file("the footer of the parquet file is damaged", path);
  return *std::move(footer);
}

Result<void> check_columns(const ParquetFooter& footer, const std::filesystem::path& path) {
  const std::string drop =
      "leave it out, as in: python3 -c \"import pandas; pandas.read_parquet('" + path.string() +
      "').drop(columns=['";
  std::set<std::vector<std::string>> names;
  for (const ParquetLeaf& leaf : footer.leaves) {
    const std::string& column = leaf.path.front();
    const auto refuse = [&](const std::string& what) {
      return bad_file("column `" + column + "` of the parquet file has " + what +
                          (leaf.path.size() > 1 ? " (" + dotted(leaf.path) + ")" : ""),
                      path, drop + column + "']).to_parquet('text.parquet')\"");
    };
    if (!names.insert(leaf.path).second) return refuse("the name of another one");
    if (leaf.kind == Kind::kBinary) return refuse("bytes that are no text, such as images");
    if (leaf.kind == Kind::kInterval) return refuse("intervals");
    if (leaf.kind == Kind::kDecimal && leaf.path.size() > 1)
      return refuse("decimals within a list or a struct");
  }
  return {};
}

}  // namespace tandem::data
