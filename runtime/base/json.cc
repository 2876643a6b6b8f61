#include "runtime/base/json.h"

template class nlohmann::basic_json<>;

namespace tandem {

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace tandem
