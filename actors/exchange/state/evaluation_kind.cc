#include "actors/exchange/state/evaluation_kind.h"

namespace tandem::exchange {

const char* name(EvaluationKind kind) {
  switch (kind) {
    case EvaluationKind::kBefore:
      return "before";
    case EvaluationKind::kAfterWarmStart:
      return "after_warm_start";
    case EvaluationKind::kPeriodic:
      return "periodic";
    case EvaluationKind::kFinal:
      return "final";
  }
  return "";
}

}  // namespace tandem::exchange
