// What all events of a run's journal come to: from an image and the events after it an exchange
// goes on as from the whole journal (DU-4), in a time that does not grow with the run.
#pragma once

#include "actors/exchange/figure_history.h"
#include "actors/exchange/state/state_image.h"
#include "runtime/wire/fields.h"

namespace tandem::exchange {

struct RunImage {
  StateImage state;
  LaterImage later;
  FigureImage figures;
  BroadcastImage broadcasts;
};
TANDEM_WIRE(RunImage, state, later, figures, broadcasts)

}  // namespace tandem::exchange
