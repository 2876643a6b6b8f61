#include "actors/exchange/state/job_events.h"

namespace tandem::actors {

std::string saving_text(StepId step) {
  return "cancelled; saving a checkpoint of step " + std::to_string(step.value);
}

EvaluationFigures figures_of(const EvaluationEnded& ended) {
  return {.all = ended.all, .sources = {ended.sources.begin(), ended.sources.end()}};
}

}  // namespace tandem::actors
