// Counts what this executable allocates by operator new, on all threads: for tests that judge work
// or memory by it. A test that links allocations.cc is an executable of its own.
#pragma once

#include <cstddef>

namespace tandem::test {

std::size_t allocations();      // how often
std::size_t allocated_bytes();  // what is live now
std::size_t bytes_ever();       // what was allocated in all

}  // namespace tandem::test
