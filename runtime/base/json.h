// The one place that compiles nlohmann::json. A source that parses or prints by the library's own
// templates compiles the whole parser or printer again, which takes about five seconds each.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

extern template class nlohmann::basic_json<>;

namespace tandem {

// The value that `text` is; `is_discarded()` where it is not JSON.
nlohmann::json parse_json(std::string_view text);

}  // namespace tandem
