// The parts that all communicators of one process share: NCCL's functions, its thread, and the
// records of what was done; and the membership epoch that one communicator is made for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/nccl_api.h"
#include "runtime/collective/nccl_records.h"
#include "runtime/collective/nccl_thread.h"

namespace tandem::collective {

// The functions of runtime/device's CudaModule for events, which mark places in a stream's work.
// Called on NCCL's thread alone.
struct NcclStreamFunctions {
  void* (*create_event)() = nullptr;
  void (*record_event)(void* event, void* stream) = nullptr;
  bool (*event_done)(void* event) = nullptr;
  void (*destroy_event)(void* event) = nullptr;
};

// Shared by the communicators of one process. `thread` is not owned, and outlives them and their
// tickets.
struct NcclProcess {
  NcclApi api;
  NcclStreamFunctions streams;
  std::shared_ptr<NcclRecords> records = std::make_shared<NcclRecords>();
  NcclThread* thread = nullptr;
};

class NcclMemory;  // nccl_memory.h

struct NcclEpoch {
  std::uint64_t epoch = 0;  // the membership's epoch; the same on all ranks
  NcclUniqueId unique_id;
  int rank = 0;
  int size = 1;
  std::string name;  // "job/weights", for errors and records
  // Registered when the communicator starts, kept until it has ended. All ranks give as much.
  std::vector<std::shared_ptr<NcclMemory>> memory = {};
};

}  // namespace tandem::collective
