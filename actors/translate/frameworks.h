// The dialects by name, each in a source of its own. Only the table (dialects.cc) needs them.
#pragma once

#include "actors/translate/dialect.h"

namespace tandem::translate {

Dialect verl_dialect();
Dialect trl_dialect();  // and open-r1, whose recipes are TRL's
Dialect openrlhf_dialect();
Dialect areal_dialect();
Dialect nemo_rl_dialect();
Dialect skyrl_dialect();
Dialect prime_rl_dialect();

}  // namespace tandem::translate
