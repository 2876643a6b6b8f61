// Actors of one's own in a test, from a seed: docs/guides/write-an-actor.md.
#pragma once

#include "actors/program/simulated_job.h"
