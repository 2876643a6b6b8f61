#include "actors/exchange/exchange_records.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tandem::exchange {
namespace {

constexpr std::size_t kTextBlockBytes = std::size_t{4} << 20;  // unless one record needs more

// Where the texts of one record lie. The prompt begins `prompt_at` bytes behind `data`: within the
// line, or right behind it.
struct TextLocation {
  const char* data = nullptr;
  std::uint32_t data_bytes = 0, prompt_at = 0, prompt_bytes = 0;
};

}  // namespace

struct ExchangeRecords::Texts {
  // Room for `bytes` bytes that are never moved.
  char* take(std::size_t bytes) {
    if (bytes > block_bytes - block_used) {
      block_bytes = std::max(kTextBlockBytes, bytes);
      block_used = 0;
      blocks.push_back(std::make_unique_for_overwrite<char[]>(block_bytes));
      bytes_taken += block_bytes;
    }
    char* const room = blocks.back().get() + block_used;
    block_used += bytes;
    return room;
  }

  std::vector<TextLocation> locations;
  std::vector<std::unique_ptr<char[]>> blocks;
  std::size_t block_bytes = 0, block_used = 0;  // the last block's size and the part in use
  std::size_t bytes_taken = 0;                  // by all blocks
};

ExchangeRecords::ExchangeRecords() : texts_(std::make_shared<Texts>()) {}

void ExchangeRecords::add(std::string_view prompt, std::string_view data) {
  CHECK(texts_.use_count() == 1);
  CHECK(prompt.size() <= UINT32_MAX / 2 && data.size() <= UINT32_MAX / 2);
  const std::size_t found = data.find(prompt);
  const bool inside = found != data.npos;
  char* const room = texts_->take(data.size() + (inside ? 0 : prompt.size()));
  std::copy(data.begin(), data.end(), room);
  if (!inside) std::copy(prompt.begin(), prompt.end(), room + data.size());
  texts_->locations.push_back(
      {.data = room,
       .data_bytes = static_cast<std::uint32_t>(data.size()),
       .prompt_at = static_cast<std::uint32_t>(inside ? found : data.size()),
       .prompt_bytes = static_cast<std::uint32_t>(prompt.size())});
}

std::size_t ExchangeRecords::size() const { return texts_->locations.size(); }

ExchangeRecord ExchangeRecords::operator[](std::size_t index) const {
  CHECK(index < size());
  const TextLocation& at = texts_->locations[index];
  return {.prompt = std::string(at.data + at.prompt_at, at.prompt_bytes),
          .data = std::string(at.data, at.data_bytes)};
}

std::size_t ExchangeRecords::memory_bytes() const {
  return texts_->bytes_taken + texts_->locations.capacity() * sizeof(TextLocation);
}

}  // namespace tandem::exchange
