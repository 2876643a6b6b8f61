// How many copies of the weights a learner on a CPU has, at rest and at its peaks.
#include "actors/learner/trainer_setup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "actors/learner/trainer_weights.h"
#include "actors/model/parameters.h"
#include "runtime/base/digest.h"
#include "runtime/device/memory.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/actors/model/tiny_model.h"

namespace {
// The largest block that this program has asked the heap for since it was last set to 0.
std::atomic<std::size_t> heap_block_max = 0;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  std::size_t most = heap_block_max.load();
  while (most < bytes && !heap_block_max.compare_exchange_weak(most, bytes)) continue;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  std::abort();
}
// Takes memory from the same heap as the operators below.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tandem::learner {
namespace {

constexpr auto kCpu = device::DeviceKind::kCpu;

// The learner's model with matrices that outweigh everything else.
model::ModelConfig wide_model() {
  model::ModelConfig config = testing::learner_model();
  config.hidden_size = 128;
  config.intermediate_size = 512;
  return config;
}

std::unique_ptr<NativeTrainer> wide_trainer(const std::filesystem::path& folder,
                                            const TrainerConfig& config,
                                            device::DType dtype = device::DType::kF32) {
  if (!std::filesystem::exists(folder / "model"))
    model::testing::write_model_folder(folder / "model", wide_model());
  return testing::make_trainer(folder, config, nullptr, {}, kCpu, dtype);
}

TEST(TrainerSetup, MasterAndPackedWeightsAndNoThirdCopy) {
  const model::ModelConfig model = wide_model();
  const std::size_t before = device::host_blocks().bytes_now;
  const auto weights =
      TrainerWeights::allocate({.model = model, .device = kCpu, .reference = false},
                               model::testing::random_weights(model, 3));
  ASSERT_TRUE(weights);
  const std::size_t arena = make_manifest(model).bytes_total;
  const std::size_t held = device::host_blocks().bytes_now - before;
  EXPECT_EQ(held, arena + model::Weights::bytes(model, model::WeightsUse::kTrainingInPlace, kCpu));
  EXPECT_LT(held, arena * 5 / 2);
}

// trainer_memory() equals the memory that is allocated, except for tables of a few numbers for each
// token. An arena that is published in bf16 lies on the host, whatever the device.
TEST(TrainerSetup, ThePartsAreWhatIsAllocated) {
  const auto folder = model::testing::scratch_folder("parts");
  const TrainerConfig config = testing::trainer_config(folder);
  for (const device::DType dtype : model::testing::kDTypes) {
    model::ModelConfig model = wide_model();
    ASSERT_TRUE(compute_in(dtype, model));
    const std::size_t before = device::host_blocks().bytes_now;
    const auto trainer = wide_trainer(folder, config, dtype);
    const std::size_t held = device::host_blocks().bytes_now - before;
    std::size_t sum = dtype == device::DType::kF32 ? 0 : published_manifest(model).bytes_total;
    for (const MemoryPart& part : trainer_memory(model, config, kCpu)) sum += part.bytes;
    EXPECT_GE(held, sum) << device::name(dtype);
    EXPECT_LT(held, sum + make_manifest(model).bytes_total / 4) << device::name(dtype);
  }
}

TEST(TrainerSetup, RestoreAndCheckpointsTakeNoSecondModel) {
  const std::size_t arena = make_manifest(wide_model()).bytes_total;
  for (const device::DType dtype : model::testing::kDTypes) {
    SCOPED_TRACE(device::name(dtype));
    const auto folder = model::testing::scratch_folder(std::string("peaks_") + device::name(dtype));
    const auto trainer = wide_trainer(folder, testing::trainer_config(folder), dtype);
    const auto expect_no_model = [&](const char* what) {
      const device::HostBlocks blocks = device::host_blocks();
      EXPECT_LT(blocks.bytes_peak, blocks.bytes_now + arena / 2) << what;
      EXPECT_LT(heap_block_max.load(), arena / 2) << what;
      device::reset_host_blocks_peak();
      heap_block_max = 0;
    };
    device::reset_host_blocks_peak();
    heap_block_max = 0;
    const auto saved = trainer->save();
    ASSERT_TRUE(saved);
    expect_no_model("save");
    ASSERT_TRUE(trainer->restore());
    expect_no_model("restore");
  }
}

// The digest covers the parameters in the order of the manifest, without the gaps.
TEST(TrainerSetup, TheDigestIsOfTheParametersBytes) {
  const model::ModelConfig model = testing::learner_model();
  const device::Arena arena = model::testing::random_weights(model, 3);
  std::vector<std::byte> bytes;
  for (const device::ParameterSpec& spec : arena.manifest().parameters) {
    const auto part = arena.bytes().subspan(spec.offset_bytes, spec.bytes);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  const auto weights =
      TrainerWeights::allocate({.model = model, .device = kCpu, .reference = false},
                               model::testing::random_weights(model, 3));
  EXPECT_EQ(weights->host_sha256(), sha256_hex(bytes));
}

}  // namespace
}  // namespace tandem::learner
