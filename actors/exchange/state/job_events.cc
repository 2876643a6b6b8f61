#include "actors/exchange/state/job_events.h"

namespace tandem::exchange {

std::string saving_text(StepId step) {
  return "cancelled; saving a checkpoint of step " + std::to_string(step.value);
}

messages::EvaluationFigures figures_of(const EvaluationEnded& ended) {
  return {.all = ended.all, .sources = {ended.sources.begin(), ended.sources.end()}};
}

}  // namespace tandem::exchange
