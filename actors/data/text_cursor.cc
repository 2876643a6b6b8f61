#include "actors/data/text_cursor.h"

#include <cstring>
#include <span>

namespace tandem::data {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Result<std::string_view> TextCursor::held() {
  while (begin_ == end_ && !ended_) {
    piece_.resize(kPieceBytes);
    begin_ = end_ = 0;
    // The first piece has the whole mark, even where the source gives single bytes.
    do {
      const auto got = bytes_->read(std::span(piece_).subspan(end_));
      if (!got) return got.error();
      ended_ = *got == 0;
      end_ += *got;
    } while (!begun_ && !ended_ && end_ < kByteOrderMark.size());
    if (!begun_ && std::string_view(piece_.data(), end_).starts_with(kByteOrderMark))
      begin_ = kByteOrderMark.size();
    begun_ = true;
  }
  return std::string_view(piece_.data() + begin_, end_ - begin_);
}

void TextCursor::pass(std::size_t bytes) {
  const char* at = piece_.data() + begin_;
  const char* const end = at + bytes;
  // Lines are long beside what a call takes, and the library looks at many characters at once.
  while (at != end && (at = static_cast<const char*>(
                           std::memchr(at, '\n', static_cast<std::size_t>(end - at))))) {
    ++at;
    ++line_;
  }
  begin_ += bytes;
}

}  // namespace tandem::data
