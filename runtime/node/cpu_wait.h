// For how long the threads of this process have waited for a processor: they could run, and others
// did. A worker that is slow for that reason alone is not hung.
#pragma once

#include <filesystem>

#include "runtime/base/clock.h"

namespace tandem::node {

// The sum over all threads that live, since each of them began. Zero where the kernel does not say
// (/proc/PID/task/TID/schedstat). `process` is this process's folder but in a test.
Duration cpu_wait(const std::filesystem::path& process = "/proc/self");

}  // namespace tandem::node
