// KR-1 with real processes, and files that anybody may have damaged.
#include "runtime/node/kept_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "runtime/base/log.h"

namespace tandem::node {
namespace {

class Kept : public testing::Test {
 protected:
  Kept() {
    std::string pattern = testing::TempDir() + "kept_ranks.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Kept() override { std::filesystem::remove_all(folder_); }
  KeptRankFiles open() const { return std::move(KeptRankFiles::open(folder_)).value(); }
  std::filesystem::path only_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.path().extension() == ".json") return entry.path();
    return {};
  }

  const RankId rank_{"job-1/learner/0", Incarnation{7}, 1};
  std::filesystem::path folder_;
};

TEST_F(Kept, ARankIsFoundByTheNextAgentUntilItHasEnded) {
  {
    KeptRankFiles kept = open();
    kept.add(rank_, ::getpid());
  }
  {
    KeptRankFiles next = open();
    const auto found = next.found();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].id, rank_);
    EXPECT_EQ(found[0].pid, ::getpid());
    EXPECT_EQ(found[0].born, birth_of(::getpid())) << "KR-1";
    next.remove(rank_);
  }
  EXPECT_TRUE(open().found().empty());
}

TEST_F(Kept, TheFolderHasOneAgentAtATime) {
  const KeptRankFiles first = open();
  const auto second = KeptRankFiles::open(folder_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos)
      << second.error().message;
}

TEST_F(Kept, AProcessThatHasEndedHasNoBirth) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(birth_of(child)) << "a zombie";
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(birth_of(child));
}

TEST_F(Kept, ARankWhoseStartCannotBeReadIsToldOf) {
  KeptRankFiles kept = open();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  const ScopedLogging logging("test", LogLevel::kWarnings);
  testing::internal::CaptureStderr();
  // What is used for the first time, such as the log and UBSan's classes, may need a descriptor.
  kept.add(RankId{"job-1/ended/0", Incarnation{8}, 0}, -1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  kept.add(rank_, ::getpid());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("event=rank_not_kept actor=job-1/ended/0"), std::string::npos) << said;
  EXPECT_NE(said.find("event=rank_not_kept actor=job-1/learner/0"), std::string::npos) << said;
  EXPECT_TRUE(kept.found().empty());
}

TEST_F(Kept, AFileThatIsDamagedIsRemovedAndTheOthersAreRead) {
  KeptRankFiles kept = open();
  kept.add(rank_, ::getpid());
  const std::string good = [&] {
    std::ifstream file(only_file());
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::string pid = std::to_string(::getpid());
  const std::vector<std::string> bad{"",
                                     "{",
                                     "[]",
                                     good.substr(0, good.size() / 2),
                                     with("\"pid\":" + pid, "\"pid\":-1"),
                                     with("\"pid\":" + pid, "\"pid\":1"),
                                     with("\"pid\":" + pid, "\"pid\":99999999999999"),
                                     with("\"rank\":1", "\"rank\":4294967297"),
                                     with("job-1/learner/0", "")};
  for (std::size_t i = 0; i < bad.size(); ++i)
    std::ofstream(folder_ / ("bad-" + std::to_string(i) + ".json")) << bad[i];
  EXPECT_EQ(kept.found().size(), 1u);
  EXPECT_EQ(kept.found().size(), 1u);
  for (std::size_t i = 0; i < bad.size(); ++i)
    EXPECT_FALSE(std::filesystem::exists(folder_ / ("bad-" + std::to_string(i) + ".json"))) << i;
}

}  // namespace
}  // namespace tandem::node
