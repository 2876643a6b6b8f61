#include "kernels/cuda/operators.h"

namespace tandem::kernels::cuda {

const Backend& table() {
  static constexpr Backend kTable{
#define TANDEM_ROW(function, Operands) .function = function,
      TANDEM_OPERATORS(TANDEM_ROW)
#undef TANDEM_ROW
  };
  return kTable;
}

}  // namespace tandem::kernels::cuda
