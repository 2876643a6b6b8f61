// The environment is what torchrun 2.13, Open MPI 4.1.4 and MPICH 4.0.2 were seen to set.
#include "actors/launch/rank_env.h"

#include <gtest/gtest.h>

namespace tandem::launch {
namespace {

// `torchrun --nnodes 2 --nproc-per-node 2 --node-rank 1`, its second process.
const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"GROUP_RANK", "1"},
                          {"GROUP_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "10.0.0.1"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", "none"}};
// `mpirun -n 4 --map-by ppr:1:node`, its second process.
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                         {"OMPI_COMM_WORLD_NODE_RANK", "0"},  {"PMIX_RANK", "1"},
                         {"PMIX_NAMESPACE", "1750335489"}};
// `mpiexec -n 2` on one host, its second process.
const Variables kMpich{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

RankPlace place_in(const Variables& variables) {
  const auto place = rank_place(variables);
  EXPECT_TRUE(place && *place) << (place ? "no place" : place.error().message);
  return place && *place ? **place : RankPlace{};
}

std::string fault_in(Variables variables, const Variables& changed) {
  for (const auto& [name, value] : changed) variables.insert_or_assign(name, value);
  const auto place = rank_place(variables);
  return place ? "" : place.error().message;
}

TEST(RankEnv, WithoutALauncherThereIsNoPlace) {
  EXPECT_EQ(rank_place({{"PATH", "/bin"}, {"SLURM_PROCID", "1"}}).value(), std::nullopt);
  EXPECT_EQ(rank_place({{"RANK", ""}, {"WORLD_SIZE", ""}}).value(), std::nullopt)
      << "a shell passes on an empty variable";
}

TEST(RankEnv, EachLauncherTellsThePlace) {
  const RankPlace torchrun = place_in(kTorchrun);
  EXPECT_EQ(torchrun.launcher, "torchrun");
  EXPECT_EQ(torchrun.rank, 3);
  EXPECT_EQ(torchrun.size, 4);
  EXPECT_EQ(torchrun.local_rank, 1);
  EXPECT_EQ(torchrun.hosts, 2);
  EXPECT_EQ(torchrun.master, "10.0.0.1");
  const RankPlace open_mpi = place_in(kOpenMpi);
  EXPECT_EQ(open_mpi.launcher, "Open MPI");
  EXPECT_EQ(open_mpi.rank, 1);
  EXPECT_EQ(open_mpi.hosts, 4);
  EXPECT_EQ(open_mpi.master, "");
  const RankPlace mpich = place_in(kMpich);
  EXPECT_EQ(mpich.launcher, "MPICH");
  EXPECT_EQ(mpich.local_rank, 1);
  EXPECT_EQ(mpich.hosts, 1);
  const RankPlace pmix = place_in({{"PMIX_RANK", "2"}});
  EXPECT_EQ(pmix.rank, 2);
  EXPECT_EQ(pmix.size, std::nullopt);
  EXPECT_TRUE(pmix.is_one_of_several());
}

// The variables that operators for Kubernetes set name no processes of a host: there is one.
TEST(RankEnv, RankAndWorldSizeAloneAreOneProcessForEachHost) {
  const RankPlace place = place_in({{"RANK", "0"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "job-0"}});
  EXPECT_EQ(place.hosts, 3);
  EXPECT_EQ(place.local_rank, 0);
  EXPECT_FALSE(place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).is_one_of_several());
}

// srun or mpirun starts a torchrun on each host, whose processes have places of their own.
TEST(RankEnv, TorchrunWithinAnotherLauncherDecides) {
  Variables both = kTorchrun;
  both.insert({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(place_in(both).rank, 3);
}

TEST(RankEnv, WhatIsWrongIsRefusedByName_HO1) {
  EXPECT_EQ(fault_in(kTorchrun, {{"RANK", "x"}}), "RANK is `x`, and not a number from 0 to 3");
  EXPECT_EQ(fault_in(kTorchrun, {{"RANK", "4"}}), "RANK is `4`, and not a number from 0 to 3");
  EXPECT_EQ(fault_in(kTorchrun, {{"WORLD_SIZE", ""}}), "RANK is set, and WORLD_SIZE is not");
  EXPECT_EQ(fault_in({}, {{"WORLD_SIZE", "2"}}), "WORLD_SIZE is set, and RANK is not");
  EXPECT_EQ(fault_in(kTorchrun, {{"LOCAL_RANK", "2"}}),
            "LOCAL_RANK is 2, and LOCAL_WORLD_SIZE is 2");
  EXPECT_EQ(fault_in(kTorchrun, {{"GROUP_WORLD_SIZE", "9"}}),
            "GROUP_WORLD_SIZE is `9`, and not a number from 1 to 4");
  EXPECT_EQ(fault_in(kOpenMpi, {{"PMIX_RANK", "2"}}),
            "OMPI_COMM_WORLD_RANK tells rank 1 of 4, and PMIX_RANK tells rank 2");
  EXPECT_EQ(fault_in(kMpich, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
            "RANK tells rank 0 of 2, and PMI_RANK tells rank 1 of 2");
}

TEST(RankEnv, DifferentNumbersOfProcessesTellNoNumberOfHosts) {
  EXPECT_EQ(place_in({{"OMPI_COMM_WORLD_RANK", "0"},
                      {"OMPI_COMM_WORLD_SIZE", "3"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})
                .hosts,
            std::nullopt);
}

TEST(RankEnv, ProcessesThatAreStartedLaterGetNoPlace) {
  for (const Variables& variables : {kTorchrun, kOpenMpi, kMpich})
    for (const auto& [name, value] : variables) EXPECT_TRUE(tells_a_place(name)) << name;
  for (const char* const name : {"PATH", "NCCL_DEBUG", "CUDA_VISIBLE_DEVICES", "TANDEM_HOME"})
    EXPECT_FALSE(tells_a_place(name)) << name;
}

}  // namespace
}  // namespace tandem::launch
