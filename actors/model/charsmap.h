// SentencePiece's precompiled character maps, the normalizer `Precompiled` of a tokenizer.json: a
// table of short texts and what each becomes, such as "ﬁ" and "fi", or a control character and
// nothing.
//
// The blob is a 32-bit size in bytes, as many bytes of a trie (a double array of 32-bit units, as
// the library Darts-clone writes it), and texts that each end with a NUL; numbers are
// little-endian. It comes from outside: parse() walks the whole trie and refuses a blob in which a
// search could leave the trie, or find anything but the beginning of a character.
//
// The results are those of the library `tokenizers`, which differ from SentencePiece's: a grapheme
// of fewer than 6 bytes becomes what its shortest beginning in the map becomes, and the rest of it
// is dropped, so that "ﬁ" with an accent becomes "fi". In longer graphemes, and in those without a
// beginning in the map, each character is looked up by itself. Graphemes are those of Unicode 17,
// as in the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::model {

inline constexpr std::size_t kCharsmapUnitsMax = std::size_t{1}
                                                 << 18;    // SentencePiece's have 45,000
inline constexpr std::size_t kCharsmapTextBytesMax = 256;  // of what a text becomes; 33 in theirs

// Immutable after construction; its const members may be called from several threads at once.
class Charsmap {
 public:
  // `blob` is in Base64, as the file has it. The error says what is wrong with it.
  static Result<Charsmap> parse(std::string_view blob);

  // `text` (well-formed UTF-8) after the map, or nothing where the map changes nothing.
  std::optional<std::string> apply(std::string_view text) const;

 private:
  Charsmap() = default;
  std::optional<std::string> fault_in_texts() const;
  std::optional<std::string> fault_in_trie() const;
  // What the shortest beginning of `chunk` in the map becomes.
  std::optional<std::string_view> find(std::string_view chunk) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace tandem::model
