// Our declarations of NCCL against nccl.h where that is installed, and the library itself where the
// machine has one. Nothing here needs a GPU; with one, the last test starts a group of one rank.
//
// Tests runtime/collective/nccl_api.h.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <type_traits>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>) && __has_include(<nv/target>)
#include <nccl.h>
#define TANDEM_HAS_NCCL_H 1
#endif

#include "runtime/collective/nccl_communicator.h"

namespace tandem::collective {
namespace {

constexpr Duration kLong = std::chrono::seconds(60);

#ifdef TANDEM_HAS_NCCL_H
// Both fields have the same size and alignment, and the same place.
#define SAME_FIELD(ours, theirs)                                                \
  static_assert(offsetof(NcclConfig, ours) == offsetof(ncclConfig_t, theirs) && \
                std::is_same_v<decltype(NcclConfig::ours), decltype(ncclConfig_t::theirs)>)
SAME_FIELD(size, size);
SAME_FIELD(magic, magic);
SAME_FIELD(version, version);
SAME_FIELD(blocking, blocking);
SAME_FIELD(cga_cluster_size, cgaClusterSize);
SAME_FIELD(ctas_min, minCTAs);
SAME_FIELD(ctas_max, maxCTAs);
SAME_FIELD(net_name, netName);
SAME_FIELD(split_share, splitShare);
#undef SAME_FIELD
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(alignof(NcclUniqueId) == alignof(ncclUniqueId));
static_assert(sizeof(NcclResult) == sizeof(ncclResult_t));
static_assert(sizeof(NcclType) == sizeof(ncclDataType_t));
static_assert(int(NcclType::kUint8) == ncclUint8);
static_assert(int(NcclType::kFloat32) == ncclFloat32);
static_assert(int(NcclSum::kSum) == ncclSum);
static_assert(int(NcclResult::kSuccess) == ncclSuccess);
static_assert(int(NcclResult::kUnhandledCudaError) == ncclUnhandledCudaError);
static_assert(int(NcclResult::kSystemError) == ncclSystemError);
static_assert(int(NcclResult::kInternalError) == ncclInternalError);
static_assert(int(NcclResult::kInvalidArgument) == ncclInvalidArgument);
static_assert(int(NcclResult::kInvalidUsage) == ncclInvalidUsage);
static_assert(int(NcclResult::kRemoteError) == ncclRemoteError);
static_assert(int(NcclResult::kInProgress) == ncclInProgress);

TEST(NcclReal, TheConfigurationBeginsAsTheHeaderFillsItIn) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_LE(ours.size, theirs.size);
  EXPECT_LE(ours.version, theirs.version);
  EXPECT_EQ(ours.cga_cluster_size, theirs.cgaClusterSize);
  EXPECT_EQ(ours.ctas_max, theirs.maxCTAs);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.blocking, 0);
}

// The types of the functions that are called, but for the names of ours.
template <class Ours, class... Theirs>
constexpr bool takes_as_many(Ours (*)(Theirs...), std::size_t count) {
  return sizeof...(Theirs) == count;
}
static_assert(takes_as_many(&ncclCommInitRankConfig, 5));
static_assert(takes_as_many(&ncclBroadcast, 7));
static_assert(takes_as_many(&ncclAllReduce, 7));
static_assert(takes_as_many(&ncclSend, 6));
static_assert(takes_as_many(&ncclRecv, 6));
static_assert(takes_as_many(&ncclCommRegister, 4));
static_assert(takes_as_many(&ncclMemAlloc, 2));
#endif

// NCCL's functions that wait for a GPU would wait for none here.
NcclStreamFunctions no_streams() {
  return {.create_event = []() -> void* { return nullptr; },
          .record_event = [](void*, void*) {},
          .event_done = [](void*) { return true; },
          .destroy_event = [](void*) {}};
}

TEST(NcclReal, NoLibraryIsNoBug) {
  const auto none = open_nccl("/nowhere/libnccl.so.2");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(none.error().message,
            "no NCCL library: /nowhere/libnccl.so.2: cannot open shared object file: No such file "
            "or directory");
  const auto other = open_nccl("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(other.error().message,
            "the NCCL library libm.so.6 cannot be used: it has no ncclGetVersion");
}

TEST(NcclReal, OpensWhatTheMachineHas) {
  const auto api = open_nccl();
  if (!api) GTEST_SKIP() << api.error().message;
  EXPECT_GE(api->version, kNcclVersionMin);
  EXPECT_TRUE(std::filesystem::exists(api->path)) << api->path;
  EXPECT_NE(api->mem_alloc, nullptr);
  EXPECT_NE(api->comm_register, nullptr);
  std::printf("NCCL %s, %s\n", nccl_version_text(api->version).c_str(), api->path.c_str());

  NcclThread thread;
  const NcclProcess process{.api = *api, .streams = no_streams(), .thread = &thread};
  const auto id = make_nccl_unique_id(process, kLong);
  ASSERT_TRUE(id) << render(id.error());
  auto one = NcclCommunicator::start(
      process, {.epoch = 1, .unique_id = *id, .rank = 0, .size = 1, .name = "test"}, kLong);
  ASSERT_TRUE(one) << render(one.error());
  const Result<void> started = (*one)->wait_started();
  if (started) return;  // there is a GPU
  EXPECT_EQ(started.error().code, ErrorCode::kFailed);
  EXPECT_TRUE(started.error().message.starts_with(
      "cannot start test, epoch 1, rank 0 of 1: ncclCommInitRankConfig: "))
      << started.error().message;
  std::printf("%s\n", started.error().message.c_str());
}

TEST(NcclReal, VersionsAreReadAsNcclWritesThem) {
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(nccl_version_text(21900), "2.19.0");
  EXPECT_EQ(nccl_version_text(2708), "2.7.8");
}

}  // namespace
}  // namespace tandem::collective
