#include "runtime/weights/delta.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"

namespace tandem::weights {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMagic = 0x31306174'6c656454;  // "Tdelta01"
constexpr std::size_t kBlockElements = 64 << 10;
constexpr std::size_t kWordsOfBitmap = kBlockElements / 64;
constexpr std::uint32_t kCountMask = (1u << 30) - 1;

struct DeltaHead {
  std::uint64_t magic = kMagic;
  std::uint64_t bytes = 0;  // of the whole delta
  std::uint64_t layout_hash = 0;
  std::int64_t base = 0;
  std::uint64_t base_checksum = 0;
  std::int64_t next = 0;
  std::uint64_t next_checksum = 0;
  std::uint64_t sections = 0;
};

struct SectionHead {
  std::uint64_t tensor = 0;
  std::uint64_t bytes = 0;     // of its blocks
  std::uint64_t checksum = 0;  // of the two fields before, and the blocks
};

std::uint64_t checksum_of(const SectionHead& head, std::span<const std::byte> blocks) {
  Checksum64 checksum;
  checksum.update(std::as_bytes(std::span(&head, 1)).first(offsetof(SectionHead, checksum)));
  checksum.update(blocks);
  return checksum.value();
}

enum class Form : std::uint32_t { kOffsets, kBitmap, kDense };

struct BlockHead {
  std::uint32_t block = 0;
  std::uint32_t form_and_count = 0;
};

void append(std::vector<std::byte>& to, const void* bytes, std::size_t count) {
  const auto* const from = static_cast<const std::byte*>(bytes);
  to.insert(to.end(), from, from + count);
}

template <class T>
T read_at(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::uint64_t blocks_of(const TensorRange& tensor) {
  return (tensor.bytes / tensor.element_bytes + kBlockElements - 1) / kBlockElements;
}
std::size_t elements_of(const TensorRange& tensor, std::uint64_t block) {
  return std::min<std::uint64_t>(kBlockElements,
                                 tensor.bytes / tensor.element_bytes - block * kBlockElements);
}
std::uint64_t offset_of(const TensorRange& tensor, std::uint64_t block) {
  return tensor.offset + block * kBlockElements * tensor.element_bytes;
}
std::size_t bitmap_words(std::size_t elements) { return (elements + 63) / 64; }

std::size_t bytes_of(Form form, std::size_t elements, std::size_t changed, std::size_t width) {
  switch (form) {
    case Form::kOffsets:
      return changed * (sizeof(std::uint16_t) + width);
    case Form::kBitmap:
      return bitmap_words(elements) * sizeof(std::uint64_t) + changed * width;
    case Form::kDense:
      return elements * width;
  }
  return 0;
}

Form smallest(std::size_t elements, std::size_t changed, std::size_t width) {
  return std::ranges::min(std::array{Form::kOffsets, Form::kBitmap, Form::kDense}, std::less<>(),
                          [&](Form form) { return bytes_of(form, elements, changed, width); });
}

// Which of the elements differ; returns how many do.
template <class Word>
std::size_t compare(const std::byte* base, const std::byte* next, std::size_t elements,
                    std::array<std::uint64_t, kWordsOfBitmap>& bitmap) {
  std::size_t changed = 0;
  for (std::size_t at = 0; at < elements; at += 64) {
    const std::size_t count = std::min<std::size_t>(64, elements - at);
    std::uint64_t& bits = bitmap[at / 64];
    bits = 0;
    const std::byte* const before = base + at * sizeof(Word);
    const std::byte* const after = next + at * sizeof(Word);
    if (std::memcmp(before, after, count * sizeof(Word)) == 0) continue;
    std::array<Word, 64> a, b;
    std::memcpy(a.data(), before, count * sizeof(Word));
    std::memcpy(b.data(), after, count * sizeof(Word));
    for (std::size_t i = 0; i < count; ++i) bits |= std::uint64_t{a[i] != b[i]} << i;
    changed += static_cast<std::size_t>(std::popcount(bits));
  }
  return changed;
}

// Calls `take` with the number of each bit that is set, ascending.
void each_bit(std::span<const std::uint64_t> bitmap, const auto& take) {
  for (std::size_t word = 0; word < bitmap.size(); ++word)
    for (std::uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1)
      take(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
}

}  // namespace

DeltaEncoder::DeltaEncoder(const WeightsLayout& layout, const DeltaName& name,
                           std::uint64_t bytes_max)
    : layout_(layout), bytes_max_(bytes_max), delta_{.name = name, .bytes = {}} {
  delta_.bytes.resize(sizeof(DeltaHead));
}

bool DeltaEncoder::step(std::span<const std::byte> base, std::span<const std::byte> next,
                        std::uint64_t bytes) {
  CHECK(base.size() == layout_.arena_bytes && next.size() == layout_.arena_bytes);
  std::uint64_t compared = 0;
  while (!gave_up_ && tensor_ < layout_.tensors.size()) {
    if (compared >= bytes) return true;
    const TensorRange& tensor = layout_.tensors[tensor_];
    compared += elements_of(tensor, block_) * tensor.element_bytes;
    compare_block(base, next);
    if (++block_ == blocks_of(tensor)) {
      end_section();
      ++tensor_;
      block_ = 0;
    }
    gave_up_ = delta_.bytes.size() > bytes_max_;
  }
  return false;
}

void DeltaEncoder::compare_block(std::span<const std::byte> base, std::span<const std::byte> next) {
  const TensorRange& tensor = layout_.tensors[tensor_];
  const std::uint64_t at = offset_of(tensor, block_);
  const std::size_t elements = elements_of(tensor, block_);
  switch (tensor.element_bytes) {
    case 1:
      return encode_block<std::uint8_t>(base.data() + at, next.data() + at, elements);
    case 2:
      return encode_block<std::uint16_t>(base.data() + at, next.data() + at, elements);
    default:
      return encode_block<std::uint32_t>(base.data() + at, next.data() + at, elements);
  }
}

template <class Word>
void DeltaEncoder::encode_block(const std::byte* base, const std::byte* next,
                                std::size_t elements) {
  std::array<std::uint64_t, kWordsOfBitmap> bitmap;
  const std::size_t changed = compare<Word>(base, next, elements, bitmap);
  if (changed == 0) return;
  changed_ += changed;
  std::vector<std::byte>& to = delta_.bytes;
  if (section_ == 0) {
    section_ = to.size();
    to.resize(to.size() + sizeof(SectionHead));
  }
  const Form form = smallest(elements, changed, sizeof(Word));
  const BlockHead head{.block = static_cast<std::uint32_t>(block_),
                       .form_and_count = static_cast<std::uint32_t>(form) << 30 |
                                         static_cast<std::uint32_t>(changed)};
  append(to, &head, sizeof head);
  if (form == Form::kDense) return append(to, next, elements * sizeof(Word));
  const auto set = std::span(bitmap).first(bitmap_words(elements));
  std::size_t at = to.size();
  to.resize(at + bytes_of(form, elements, changed, sizeof(Word)));
  const auto put = [&](const void* bytes, std::size_t count) {
    std::memcpy(to.data() + at, bytes, count);
    at += count;
  };
  if (form == Form::kBitmap) {
    put(set.data(), set.size_bytes());
  } else {
    each_bit(set, [&](std::size_t element) {
      const auto offset = static_cast<std::uint16_t>(element);
      put(&offset, sizeof offset);
    });
  }
  each_bit(set, [&](std::size_t element) { put(next + element * sizeof(Word), sizeof(Word)); });
}

void DeltaEncoder::end_section() {
  if (section_ == 0) return;
  const auto blocks =
      std::span(std::as_const(delta_.bytes)).subspan(section_ + sizeof(SectionHead));
  SectionHead head{.tensor = tensor_, .bytes = blocks.size()};
  head.checksum = checksum_of(head, blocks);
  std::memcpy(delta_.bytes.data() + section_, &head, sizeof head);
  section_ = 0;
  ++sections_;
}

Delta DeltaEncoder::take() {
  CHECK(!gave_up_ && tensor_ == layout_.tensors.size());
  const DeltaHead head{.bytes = delta_.bytes.size(),
                       .layout_hash = layout_.hash,
                       .base = delta_.name.base.version.value,
                       .base_checksum = delta_.name.base.checksum,
                       .next = delta_.name.next.version.value,
                       .next_checksum = delta_.name.next.checksum,
                       .sections = sections_};
  std::memcpy(delta_.bytes.data(), &head, sizeof head);
  return std::move(delta_);
}

namespace {

// Reads the blocks of one section, first to check them and then to apply them.
class Section {
 public:
  Section(const TensorRange& tensor, std::span<const std::byte> blocks)
      : tensor_(tensor), left_(blocks) {}

  // Whether all blocks are sound.
  bool check() const {
    Section copy = *this;
    std::int64_t last = -1;
    while (!copy.left_.empty()) {
      if (copy.left_.size() < sizeof(BlockHead)) return false;
      const auto head = read_at<BlockHead>(copy.left_);
      if (head.block <= last || head.block >= blocks_of(tensor_)) return false;
      last = head.block;
      copy.left_ = copy.left_.subspan(sizeof head);
      if (!copy.check_block(head)) return false;
    }
    return true;
  }

  void apply(std::span<std::byte> arena) {
    while (!left_.empty()) {
      const auto head = read_at<BlockHead>(left_);
      left_ = left_.subspan(sizeof head);
      std::byte* const block = arena.data() + offset_of(tensor_, head.block);
      switch (tensor_.element_bytes) {
        case 1:
          apply_block<std::uint8_t>(head, block);
          break;
        case 2:
          apply_block<std::uint16_t>(head, block);
          break;
        default:
          apply_block<std::uint32_t>(head, block);
      }
    }
  }

 private:
  // Steps over a block whose places are all inside it, each once.
  bool check_block(const BlockHead& head) {
    const std::uint32_t form = head.form_and_count >> 30,
                        changed = head.form_and_count & kCountMask;
    const std::size_t elements = elements_of(tensor_, head.block);
    if (form > static_cast<std::uint32_t>(Form::kDense) || changed == 0 || changed > elements)
      return false;
    const std::size_t bytes = bytes_of(Form{form}, elements, changed, tensor_.element_bytes);
    if (left_.size() < bytes) return false;
    const auto places = std::exchange(left_, left_.subspan(bytes));
    if (Form{form} == Form::kOffsets) {
      std::int32_t last = -1;
      for (std::size_t i = 0; i < changed; ++i) {
        const std::int32_t offset = read_at<std::uint16_t>(places.subspan(2 * i));
        if (offset <= last) return false;
        last = offset;
      }
      return static_cast<std::size_t>(last) < elements;
    }
    if (Form{form} == Form::kDense) return true;
    std::size_t set = 0;
    const std::size_t words = bitmap_words(elements);
    for (std::size_t i = 0; i < words; ++i)
      set += static_cast<std::size_t>(std::popcount(read_at<std::uint64_t>(places.subspan(8 * i))));
    const auto last = read_at<std::uint64_t>(places.subspan(8 * (words - 1)));
    return set == changed && (elements % 64 == 0 || last >> (elements % 64) == 0);
  }

  template <class Word>
  void apply_block(const BlockHead& head, std::byte* block) {
    const Form form{head.form_and_count >> 30};
    const std::size_t changed = head.form_and_count & kCountMask;
    const std::size_t elements = elements_of(tensor_, head.block);
    const auto body = left_.first(bytes_of(form, elements, changed, sizeof(Word)));
    left_ = left_.subspan(body.size());
    const std::byte* value = body.last(changed * sizeof(Word)).data();
    const auto put = [&](std::size_t element) {
      std::memcpy(block + element * sizeof(Word), value, sizeof(Word));
      value += sizeof(Word);
    };
    if (form == Form::kDense) {
      std::memcpy(block, body.data(), body.size());
    } else if (form == Form::kOffsets) {
      for (std::size_t i = 0; i < changed; ++i) put(read_at<std::uint16_t>(body.subspan(2 * i)));
    } else {
      std::array<std::uint64_t, kWordsOfBitmap> bitmap;
      const auto set = std::span(bitmap).first(bitmap_words(elements));
      std::memcpy(set.data(), body.data(), set.size_bytes());
      each_bit(set, put);
    }
  }

  const TensorRange& tensor_;
  std::span<const std::byte> left_;
};

Error damaged(const DeltaName& name, const std::string& what) {
  return {.code = ErrorCode::kInvalid,
          .message = "the changes from policy version " + std::to_string(name.base.version.value) +
                     " to " + std::to_string(name.next.version.value) + " are damaged: " + what};
}

// The head says that these are the changes of that name, whole.
bool is_head_of(const WeightsLayout& layout, const DeltaName& name,
                std::span<const std::byte> delta) {
  if (delta.size() < sizeof(DeltaHead)) return false;
  const auto head = read_at<DeltaHead>(delta);
  return head.magic == kMagic && head.bytes == delta.size() && head.layout_hash == layout.hash &&
         PolicyVersion{head.base} == name.base.version &&
         head.base_checksum == name.base.checksum &&
         PolicyVersion{head.next} == name.next.version && head.next_checksum == name.next.checksum;
}

}  // namespace

Result<void> apply_delta(const WeightsLayout& layout, const DeltaName& name,
                         std::span<const std::byte> delta, std::span<std::byte> arena) {
  CHECK(arena.size() == layout.arena_bytes);
  if (!is_head_of(layout, name, delta)) return damaged(name, "they are others");
  std::uint64_t left = read_at<DeltaHead>(delta).sections;
  std::vector<Section> sections;
  std::uint64_t tensors = 0;  // those that may not come any more
  for (auto rest = delta.subspan(sizeof(DeltaHead)); left > 0 || !rest.empty(); --left) {
    if (left == 0 || rest.size() < sizeof(SectionHead)) return damaged(name, "they end elsewhere");
    const auto head = read_at<SectionHead>(rest);
    rest = rest.subspan(sizeof head);
    if (head.tensor < tensors || head.tensor >= layout.tensors.size() || head.bytes > rest.size())
      return damaged(name, "they have a tensor that there is not");
    tensors = head.tensor + 1;
    const auto blocks = std::exchange(rest, rest.subspan(head.bytes)).first(head.bytes);
    const TensorRange& tensor = layout.tensors[head.tensor];
    if (head.bytes == 0 || checksum_of(head, blocks) != head.checksum)
      return damaged(name, tensor.name);
    if (!sections.emplace_back(tensor, blocks).check()) return damaged(name, tensor.name);
  }
  for (Section& section : sections) section.apply(arena);
  return {};
}

}  // namespace tandem::weights
