// NCCL's communicators against the fake library between real processes: this program again, one for
// each rank. TANDEM_FAKE_NCCL_FAULTS holds their faults.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/node/process_host.h"
#include "tests/runtime/collective/nccl_rank.h"
#include "tests/runtime/patience.h"

namespace tandem::collective {
namespace {

namespace fs = std::filesystem;
using Form = SharedOperation::Form;

// A rank: broadcasts from each rank in turn, one ring, and the end. Prints the outcome of each in
// JSON.
struct RankSpec {
  int rank = 0;
  int size = 1;
  Duration timeout{};  // the time for each operation
  Duration grace{};
  NcclUniqueId id;
};

std::vector<std::string> arguments_of(const RankSpec& spec) {
  return {"/proc/self/exe",
          "--rank",
          std::to_string(spec.rank),
          std::to_string(spec.size),
          std::to_string(spec.timeout.count()),
          std::to_string(spec.grace.count()),
          spec.id.internal};
}

RankSpec parse_rank(const std::vector<std::string>& arguments) {
  RankSpec spec{.rank = std::stoi(arguments.at(2)),
                .size = std::stoi(arguments.at(3)),
                .timeout = Duration(std::stoll(arguments.at(4))),
                .grace = Duration(std::stoll(arguments.at(5)))};
  arguments.at(6).copy(spec.id.internal, kNcclUniqueIdBytes - 1);
  return spec;
}

int be_a_rank(const RankSpec& spec) {
  const FakeNccl fake = open_fake_nccl();
  NcclThread thread({.grace = spec.grace});
  const NcclProcess process{.api = fake.api, .streams = fake.streams, .thread = &thread};
  auto communicator = NcclCommunicator::start(process,
                                              {.epoch = 7,
                                               .unique_id = spec.id,
                                               .rank = spec.rank,
                                               .size = spec.size,
                                               .name = "job/weights"},
                                              kNcclPatience)
                          .value();
  Result<void> outcome = communicator->wait_started();
  std::vector<SharedOperation> operations;
  for (int root = 0; root < spec.size; ++root)
    operations.push_back({.form = Form::kBroadcast, .root = root, .bytes = 200000});
  operations.push_back({.form = Form::kRing, .bytes = 100000});
  int done = 0, wrong = 0;
  for (const SharedOperation& operation : operations) {
    if (!outcome) break;
    const RankMemory memory(operation, done, spec.rank, spec.size);
    const auto ticket = communicator->submit({.label = "part " + std::to_string(done),
                                              .transfers = memory.transfers(),
                                              .stream = nullptr,
                                              .timeout = spec.timeout});
    outcome = ticket ? ticket->wait() : ticket.error();
    if (!outcome) {
      communicator.reset();  // before the memory
      break;
    }
    ++done;
    wrong += memory.right() ? 0 : 1;
  }
  if (outcome) outcome = communicator->finish(kNcclPatience);
  const std::string said =
      dump_json({{"done", done},
                 {"wrong", wrong},
                 {"error", outcome ? "" : outcome.error().message},
                 {"timed_out", !outcome && outcome.error().code == ErrorCode::kTimedOut},
                 {"records", to_json(process.records->snapshot(), steady_now())}});
  std::printf("said=%s\n", said.c_str());
  return 0;
}

struct Told {
  node::ExitStatus exit;
  std::string log;
  nlohmann::json said;  // null where it was ended before it said anything
};

struct Setting {
  int size = 2;
  std::string faults;
  Duration timeout = kNcclPatience;
  Duration grace = kNcclGrace;
  std::vector<std::pair<std::string, std::string>> environment;
};

// Runs a process for each rank to its end. `devices`: the GPU of each.
std::vector<Told> run_ranks(const Setting& setting, const std::vector<std::string>& devices = {}) {
  static const FakeNccl fake = open_fake_nccl();
  NcclUniqueId id;
  EXPECT_EQ(fake.api.get_unique_id(&id), NcclResult::kSuccess);
  std::string pattern = testing::TempDir() + "nccl.XXXXXX";
  const fs::path folder = ::mkdtemp(pattern.data());
  std::vector<std::future<node::ExitStatus>> ends;
  node::PosixProcessHost host;
  for (int rank = 0; rank < setting.size; ++rank) {
    auto exit = std::make_shared<std::promise<node::ExitStatus>>();
    ends.push_back(exit->get_future());
    auto environment = setting.environment;
    environment.emplace_back("TANDEM_FAKE_NCCL_FAULTS", setting.faults);
    environment.emplace_back(
        "TANDEM_FAKE_NCCL_DEVICE",
        devices.empty() ? std::to_string(rank) : devices[static_cast<std::size_t>(rank)]);
    const auto started = host.spawn(
        {.name = "rank " + std::to_string(rank),
         .argv = arguments_of({rank, setting.size, setting.timeout, setting.grace, id}),
         .environment = environment,
         .log_path = folder / std::to_string(rank),
         .working_directory = {}},
        [exit](node::ProcessId, const node::ExitStatus& status) { exit->set_value(status); });
    EXPECT_TRUE(started);
  }
  std::vector<Told> told;
  for (int rank = 0; rank < setting.size; ++rank) {
    std::future<node::ExitStatus>& end = ends[static_cast<std::size_t>(rank)];
    const bool ended = end.wait_for(2 * kNcclPatience) == std::future_status::ready;
    EXPECT_TRUE(ended) << "rank " << rank << " hangs";
    Told one{.exit = ended ? end.get() : node::ExitStatus{},
             .log = read_file(folder / std::to_string(rank)).value(),
             .said = nullptr};
    if (const auto at = one.log.find("said="); at != std::string::npos)
      one.said = parse_json(one.log.substr(at + 5, one.log.find('\n', at) - at - 5));
    told.push_back(std::move(one));
  }
  fs::remove_all(folder);
  return told;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_whole(const std::vector<Told>& told) {
  for (const Told& rank : told) {
    ASSERT_FALSE(rank.said.is_null()) << rank.log;
    EXPECT_EQ(rank.said["error"], "");
    EXPECT_EQ(rank.said["done"], told.size() + 1);
    EXPECT_EQ(rank.said["wrong"], 0);
  }
}

TEST(NcclProcesses, NC4CarryTheRightBytesBetween2To4Ranks) {
  for (int size = 2; size <= 4; ++size) expect_whole(run_ranks({.size = size}));
}

// A rank that is killed before, in or after its part of the second operation. The others end by the
// error that NCCL reports or, where it reports none, by their deadline (NC-1); none has wrong
// bytes.
std::string try_death(const std::string& when, bool silent, Duration timeout) {
  const auto told = run_ranks({.size = 3,
                               .faults = "rank=1,op=broadcast,at=2,fault=die,when=" + when,
                               .timeout = timeout,
                               .environment = {{"TANDEM_FAKE_NCCL_SILENT", silent ? "1" : "0"}}});
  if (told[1].exit.signal != SIGKILL) return "rank 1 gave up before: " + told[1].log;
  std::string complaint;
  for (const int rank : {0, 2}) {
    const Told& survivor = told[static_cast<std::size_t>(rank)];
    if (survivor.said.is_null()) {
      ADD_FAILURE() << "rank " << rank << ": " << survivor.log;
      continue;
    }
    const std::string error = survivor.said["error"];
    EXPECT_EQ(survivor.said["wrong"], 0);
    EXPECT_TRUE(holds(error, " of job/weights, epoch 7, rank " + std::to_string(rank) + " of 3"))
        << error;
    EXPECT_TRUE(holds(error, "in broadcast of 200000 bytes from rank ") ||
                holds(error, "in a group of 2 transfers, 200000 bytes (part 3), operation 4"))
        << error;
    EXPECT_EQ(survivor.said["records"].back()["kind"], "abort");
    // The root of the second operation is the one that dies: without its part no rank is done.
    if (when == "before" && survivor.said["done"] != 1)
      complaint = "rank " + std::to_string(rank) + ": " + survivor.log;
  }
  return complaint;
}

TEST(NcclProcesses, NC1ARankThatDiesEndsTheOthersOperations) {
  for (const char* when : {"before", "in", "after"})
    EXPECT_EQ("", with_growing_patience(
                      [&](Duration patience) { return try_death(when, true, 4 * patience); }))
        << when;
  EXPECT_EQ("", try_death("before", false, kNcclPatience));  // told by NCCL, not by the deadline
}

// NH-2: where no handler is set, the process ends by itself and names the call that hung.
TEST(NcclProcesses, NH2AProcessThatHangsInNcclEndsByName) {
  const auto told = run_ranks({.size = 2,
                               .faults = "rank=1,op=broadcast,at=2,fault=hang;rank=1,op=abort,"
                                         "fault=block",
                               .timeout = std::chrono::milliseconds(200),
                               .grace = std::chrono::milliseconds(500)});
  EXPECT_EQ(told[1].exit.code, exit_code(ErrorCode::kTimedOut)) << told[1].log;
  EXPECT_TRUE(holds(told[1].log,
                    "event=nccl_stuck call=\"ncclCommAbort of job/weights, epoch 7, "
                    "rank 1 of 2\""))
      << told[1].log;
}

TEST(NcclProcesses, TwoRanksOfOneGpuAreRefusedUnlessNcclMayShareIt) {
  for (const Told& rank : run_ranks({.size = 2}, {"3", "3"})) {
    ASSERT_FALSE(rank.said.is_null()) << rank.log;
    const std::string error = rank.said["error"];
    EXPECT_TRUE(holds(error, "cannot start job/weights, epoch 7, rank ")) << error;
    EXPECT_TRUE(holds(error, "invalid usage (Duplicate GPU detected")) << error;
  }
  expect_whole(run_ranks(
      {.size = 2,
       .environment = {{"TANDEM_FAKE_NCCL_VERSION", "23003"}, {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}}},
      {"3", "3"}));
}

TEST(NcclProcesses, ARankThatComesLateIsWaitedFor) {
  expect_whole(run_ranks({.size = 3, .faults = "rank=2,op=init,fault=late,ms=300"}));
}

}  // namespace
}  // namespace tandem::collective

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 7 && arguments[1] == "--rank") {
    tandem::init_logging("rank", tandem::LogLevel::kWarnings);
    return tandem::collective::be_a_rank(tandem::collective::parse_rank(arguments));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
