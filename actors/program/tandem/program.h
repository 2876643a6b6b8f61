// Everything that an actor of one's own needs: docs/guides/write-an-actor.md.
#pragma once

#include "actors/program/program.h"
