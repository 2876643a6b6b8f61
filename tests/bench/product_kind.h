// Which product of a linear layer a benchmark measures.
#pragma once

#include <cstdint>

namespace tandem::bench {

enum class ProductKind : std::uint8_t { kForward, kBackwardInput, kBackwardWeight };

inline const char* name(ProductKind kind) {
  switch (kind) {
    case ProductKind::kForward:
      return "forward";
    case ProductKind::kBackwardInput:
      return "backward_input";
    case ProductKind::kBackwardWeight:
      return "backward_weight";
  }
  return "";
}

}  // namespace tandem::bench
