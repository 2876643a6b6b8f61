// Unicode's canonical composition, NFC (Unicode Standard Annex 15), computed by libutf8proc with
// the results of the `tokenizers` library, which uses the tables of Unicode 9. A code point that is
// younger than Unicode 9 therefore stays where it is, no mark moves past it, and it combines with
// nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::model {

// Returns `text` in NFC, or nothing where `text` is in NFC already. `text` is well-formed UTF-8.
// The time is n log n, even for a long run of combining marks.
std::optional<std::string> to_nfc(std::string_view text);

}  // namespace tandem::model
