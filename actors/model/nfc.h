// Unicode's canonical composition, NFC (Unicode Standard Annex 15), by libutf8proc, and as the
// `tokenizers` library has it: by the tables of Unicode 9. A code point that came later stays where
// it is, no mark moves past it, and it combines with nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::actors {

// `text`, which is well-formed UTF-8, in NFC; nothing where it is in NFC already. Costs n log n,
// also for a long run of combining marks.
std::optional<std::string> to_nfc(std::string_view text);

}  // namespace tandem::actors
