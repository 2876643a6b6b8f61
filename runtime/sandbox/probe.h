// Finds out which layers of a sandbox this machine has, by trying each in a child: what a kernel
// was built with says little about what a container lets a process do.
#pragma once

#include "runtime/sandbox/layers.h"

namespace tandem::sandbox {

// Takes some milliseconds. The calling thread must not be one that ends meanwhile.
Layers probe_layers();

}  // namespace tandem::sandbox
