// The environment of an engine's server.
#include "actors/rollout/external/server_process.h"

#include <gtest/gtest.h>

namespace tandem::rollout {
namespace {

TEST(ServerEnvironment, InheritsAllButLaunchersOfRanksAndOurOwn) {
  const char* const ours[] = {"PATH=/bin",
                              "HF_TOKEN=x=y",
                              "SLURM_JOB_ID=4",
                              "PMIX_RANK=0",
                              "OMPI_COMM_WORLD_SIZE=2",
                              "TANDEM_TOKEN=secret",
                              "CUDA_VISIBLE_DEVICES=1",
                              "broken",
                              nullptr};
  const auto variables = server_environment(ours, {{"PATH", "/opt/bin"}, {"VLLM_X", "1"}});
  const std::map<std::string, std::string> expected{
      {"PATH", "/opt/bin"}, {"HF_TOKEN", "x=y"}, {"CUDA_VISIBLE_DEVICES", "1"}, {"VLLM_X", "1"}};
  EXPECT_EQ(variables, expected);
}

}  // namespace
}  // namespace tandem::rollout
