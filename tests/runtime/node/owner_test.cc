// The owners are children of this test, which hold the lock for as long as the test wants.
#include "runtime/node/owner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "runtime/base/file.h"

namespace tandem::node {
namespace {

namespace fs = std::filesystem;

constexpr auto kLong = std::chrono::seconds(30);  // ends a hang; never measured

class Owned : public testing::Test {
 protected:
  Owned() {
    std::string pattern = testing::TempDir() + "owner.XXXXXX";
    lock_ = fs::path(::mkdtemp(pattern.data())) / "owner.lock";
  }
  ~Owned() override {
    end();
    fs::remove_all(lock_.parent_path());
  }
  void begin() {
    owner_ = ::fork();
    if (owner_ == 0) {
      const auto held = FileLock::take(lock_, "the lock", "");
      for (;;) ::pause();
    }
    const Time late = steady_now() + kLong;
    while (!FileLock::held(lock_) && steady_now() < late) {
    }
  }
  void end() {
    if (owner_ == 0) return;
    ::kill(owner_, SIGKILL);
    ::waitpid(owner_, nullptr, 0);
    owner_ = 0;
  }

  fs::path lock_;
  pid_t owner_ = 0;
};

TEST_F(Owned, AProcessLearnsOfItsOwnersEnd_RN1) {
  begin();
  const Owner owner(lock_);
  EXPECT_FALSE(owner.has_ended());
  std::promise<void> ended;
  const OwnerWatch watch(Owner(lock_), [&] { ended.set_value(); });
  auto heard = ended.get_future();
  end();
  EXPECT_EQ(heard.wait_for(kLong), std::future_status::ready);
  EXPECT_TRUE(owner.has_ended());
}

TEST_F(Owned, AnOwnerThatEndedBeforeIsHeardOfAtOnce) {
  begin();
  end();
  EXPECT_TRUE(Owner(lock_).has_ended());
  std::promise<void> ended;
  const OwnerWatch watch(Owner(lock_), [&] { ended.set_value(); });
  EXPECT_EQ(ended.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_TRUE(Owner(lock_.parent_path() / "none").has_ended());
}

TEST_F(Owned, AWatchThatIsOverSaysNothing) {
  begin();
  bool called = false;
  {
    const OwnerWatch watch(Owner(lock_), [&] { called = true; });
  }
  end();
  EXPECT_FALSE(called);
}

TEST_F(Owned, TheVariableNamesTheLock) {
  begin();
  ::unsetenv(kOwnerVariable);
  EXPECT_FALSE(Owner::of_environment().has_value());
  ::setenv(kOwnerVariable, lock_.c_str(), 1);
  EXPECT_FALSE(Owner::of_environment()->has_ended());
  end();
  EXPECT_TRUE(Owner::of_environment()->has_ended());
  ::unsetenv(kOwnerVariable);
}

}  // namespace
}  // namespace tandem::node
