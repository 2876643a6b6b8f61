// NCCL as Tandem calls it: declarations of the part of its C interface that is used, and a table of
// its functions that is filled when the program runs. Nothing here needs NVIDIA's headers, and the
// binary links no library of NVIDIA's.
//
// Not responsible for: when a function may be called, and what happens if it does not return
// (nccl_thread.h, nccl_communicator.h).
//
// The values and layouts are NCCL's own; tests/runtime/collective/nccl_real_test.cc compares them
// with nccl.h where that header is installed.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "runtime/base/result.h"

namespace tandem::collective {

inline constexpr std::size_t kNcclUniqueIdBytes = 128;

// ncclUniqueId: the address at which the ranks of one communicator meet. Any channel may carry it.
struct NcclUniqueId {
  char internal[kNcclUniqueIdBytes] = {};
};

// kInProgress comes only from non-blocking communicators: the call goes on in the background, and
// comm_get_async_error says how it ends.
enum class NcclResult : int {  // ncclResult_t
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

// ncclDataType_t: everything is sent as bytes, but for sums.
enum class NcclType : int { kUint8 = 1, kFloat32 = 7 };
enum class NcclSum : int { kSum = 0 };  // ncclRedOp_t

// ncclConfig_t as of 2.19. Later versions append fields, and recognize the shorter struct of an
// older version by its size and version.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21900;
  int blocking = 0;                // no call waits for other ranks; see kInProgress
  int cga_cluster_size = INT_MIN;  // INT_MIN and null: NCCL's own choice
  int ctas_min = INT_MIN;
  int ctas_max = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

inline constexpr int kNcclVersionMin = 21900;  // 2.19.0, coded as NCCL does

// The functions of one opened library, by NCCL's own names and with its own arguments. Only NCCL's
// thread may call them (NH-1). Any thread may copy the table.
struct NcclApi {
  using Comm = void*;    // ncclComm_t
  using Stream = void*;  // cudaStream_t

  std::string path;  // the library that was opened
  int version = 0;   // 22809 for 2.28.9

  // Required: open_nccl() refuses a library that lacks one of these.
  NcclResult (*get_version)(int* version) = nullptr;
  NcclResult (*get_unique_id)(NcclUniqueId* id) = nullptr;
  NcclResult (*comm_init_rank_config)(Comm* comm, int ranks, NcclUniqueId id, int rank,
                                      NcclConfig* config) = nullptr;
  NcclResult (*comm_finalize)(Comm comm) = nullptr;
  NcclResult (*comm_destroy)(Comm comm) = nullptr;
  NcclResult (*comm_abort)(Comm comm) = nullptr;
  NcclResult (*comm_get_async_error)(Comm comm, NcclResult* error) = nullptr;
  const char* (*get_error_string)(NcclResult result) = nullptr;
  const char* (*get_last_error)(Comm comm) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*broadcast)(const void* from, void* to, std::size_t count, NcclType type, int root,
                          Comm comm, Stream stream) = nullptr;
  NcclResult (*all_reduce)(const void* from, void* to, std::size_t count, NcclType type,
                           NcclSum sum, Comm comm, Stream stream) = nullptr;
  NcclResult (*send)(const void* from, std::size_t count, NcclType type, int peer, Comm comm,
                     Stream stream) = nullptr;
  NcclResult (*receive)(void* to, std::size_t count, NcclType type, int peer, Comm comm,
                        Stream stream) = nullptr;

  // Memory that can be registered (nccl_memory.h); required as well.
  NcclResult (*mem_alloc)(void** memory, std::size_t bytes) = nullptr;
  NcclResult (*mem_free)(void* memory) = nullptr;
  NcclResult (*comm_register)(Comm comm, void* memory, std::size_t bytes, void** handle) = nullptr;
  NcclResult (*comm_deregister)(Comm comm, void* handle) = nullptr;

  // Optional: null where the library is older than the release that is named here.
  NcclResult (*comm_revoke)(Comm comm, int flags) = nullptr;  // 2.28.7
};

std::string nccl_version_text(int version);  // "2.28.9"

// "ncclBroadcast: remote process exited or there was a network error (…)", with NCCL's own last
// words where it has any. `comm` may be null.
std::string describe_nccl_failure(const NcclApi& api, const char* function, NcclResult result,
                                  NcclApi::Comm comm);

// Opens the library at `path`; empty: $TANDEM_NCCL_LIBRARY, else libnccl.so.2 as the loader finds
// it, else that of the toolkit in /usr/local/cuda or of an active Python environment. The library
// stays open until the process ends. Errors: kNotFound where none can be opened; kInfeasible where
// it is older than kNcclVersionMin, or lacks a function, which the message names.
Result<NcclApi> open_nccl(const std::string& path = {});

}  // namespace tandem::collective
