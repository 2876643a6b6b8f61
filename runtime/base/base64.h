// Base64 of RFC 4648 §4: the usual digits, padded. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem {

std::string base64(std::string_view bytes);
// Nothing where the text is no Base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace tandem
