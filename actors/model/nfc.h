// Unicode's canonical composition, NFC (Unicode Standard Annex 15), by libutf8proc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::actors {

// `text`, which is well-formed UTF-8, in NFC; nothing where it is in NFC already. Costs n log n,
// also for a long run of combining marks.
std::optional<std::string> to_nfc(std::string_view text);

}  // namespace tandem::actors
