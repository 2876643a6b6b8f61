// `tandem down` against a cluster that this test plays: a process for the controller, and its API.
#include "actors/main/cluster.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/http/http_server.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Down : public testing::Test {
 protected:
  Down() {
    std::string pattern = testing::TempDir() + "cluster.XXXXXX";
    home_ = ::mkdtemp(pattern.data());
    ::setenv("TANDEM_HOME", home_.c_str(), 1);
    ::unsetenv("TANDEM_ADDRESS");
    controller_ = ::fork();
    if (controller_ == 0) {
      // A test before this one in the same process may have blocked SIGTERM.
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::execl("/bin/sleep", "sleep", "1000", nullptr);
      ::_exit(1);
    }
    EXPECT_GT(controller_, 0);
    server_ = http::HttpServer::listen({}, {}, [this](const http::HttpRequest& request) {
                return http::HttpResponse{
                    .body = (request.segments[2] == "nodes" ? nodes_ : jobs_).dump()};
              }).value();
    std::ofstream(home_ / "controller.json")
        << json{{"pid", controller_}, {"http", to_string(server_->endpoint())}};
  }
  ~Down() override {
    ::kill(controller_, SIGKILL);
    ::waitpid(controller_, nullptr, 0);
    ::unsetenv("TANDEM_HOME");
    fs::remove_all(home_);
  }
  // A run directory with a journal, as a job that has started has it.
  fs::path run(const std::string& id) {
    fs::create_directories(home_ / "runs" / id);
    std::ofstream(home_ / "runs" / id / "journal.sqlite") << "";
    return home_ / "runs" / id;
  }
  // The lock of the state folder (FileLock), whose length is its owner's pid and 1, as if the
  // process that plays the controller had taken it.
  OwnedFd lock_of_the_controller() const {
    OwnedFd file(::open((home_ / "controller.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_len = controller_ + 1;
    EXPECT_EQ(::fcntl(file.get(), F_OFD_SETLK, &range), 0);
    EXPECT_EQ(FileLock::owner(home_ / "controller.lock"), controller_);
    return file;
  }
  // The lines that `tandem down` prints to stderr.
  std::string down() {
    const OwnedFd lock = lock_of_the_controller();
    std::ostringstream out, err;
    EXPECT_EQ(cluster_down({out, err, false, {}}), 0) << err.str();
    return err.str();
  }

  fs::path home_;
  pid_t controller_ = 0;
  json nodes_ = json::array(), jobs_ = json::array();
  std::unique_ptr<http::HttpServer> server_;
};

TEST_F(Down, WaitsForNoProcessThatOnlySharesItsPidWithANodeElsewhere) {
  nodes_ = {{{"name", "far"}, {"pid", ::getpid()}}};  // this process runs on
  EXPECT_EQ(down(), "down\n");
}

TEST_F(Down, SaysHowToResumeTheJobsThatItEnded) {
  const fs::path running = run("sums-1"), done = run("sums-2"), late = run("sums-3");
  const fs::path queued = home_ / "runs/sums-4";  // without a journal: it never started
  fs::create_directories(queued);
  std::ofstream(late / "result.json") << R"({"state": "Succeeded"})";
  for (const auto& [path, state] : {std::pair(running, "Running"), std::pair(done, "Cancelled"),
                                    std::pair(late, "Running"), std::pair(queued, "Queued")})
    jobs_.push_back({{"state", state}, {"run_dir", path.string()}});
  EXPECT_EQ(down(), "down\nafter `tandem up`, resume with: tandem submit --resume " +
                        running.string() + "\n");
}

}  // namespace
}  // namespace tandem::app
