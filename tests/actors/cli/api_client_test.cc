// How the state folder and the controller's address are found, and what outlives a restart.
#include "actors/cli/api_client.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <sstream>

#include "actors/cli/verb.h"
#include "runtime/base/file.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/cli/fake_controller.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

TEST(ApiClient, WithoutHomeTheListOfUsersNamesTheFolder) {
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  ASSERT_EQ(::unsetenv("TANDEM_HOME"), 0);
  ASSERT_EQ(::unsetenv("HOME"), 0);
  EXPECT_EQ(tandem_home(), std::filesystem::path(::getpwuid(::getuid())->pw_dir) / ".tandem");
  ASSERT_EQ(::setenv("HOME", home.c_str(), 1), 0);
}

TEST(ApiClient, TheFileOfTheControllerGivesItsAddress) {
  FakeController controller;
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  const auto lock = FileLock::take(folder.root() / "controller.lock", "the state", "");
  ASSERT_TRUE(lock);
  const auto names = [&](const json& pid) {
    folder.write("controller.json", json{{"pid", pid}, {"http", controller.address()}}.dump());
  };
  names(::getpid());
  EXPECT_TRUE(run({"get", "jobs"}).ok);
  names(1);  // of a controller that died: the one that has the lock has not written its own yet
  EXPECT_NE(run({"get", "jobs"}).message.find("is starting"), std::string::npos);
  ASSERT_EQ(::setenv("TANDEM_ADDRESS", "127.0.0.1:1", 1), 0);
  EXPECT_EQ(run({"get", "jobs"}).code, ErrorCode::kUnreachable);
  ASSERT_EQ(::unsetenv("TANDEM_ADDRESS"), 0);
}

// A controller whose address is given by hand, which goes and comes back at the same place.
class GivenAddress : public testing::Test {
 protected:
  GivenAddress() : controller_(std::in_place) {
    auto at = link::parse_endpoint(controller_->address());
    EXPECT_TRUE(at);
    at_ = *at;
    client_.emplace(ApiAddress{.endpoint = at_, .token = "t", .from = "--address"});
    client_->give_up_when([this] { return tired(); });
  }
  // A client asks this while the controller is away, which is back with question `back_at_`.
  bool tired() {
    ++asked_;
    if (asked_ >= back_at_ && !controller_) controller_.emplace(at_);
    return false;
  }

  std::optional<FakeController> controller_;
  link::Endpoint at_;
  std::optional<ApiClient> client_;
  int asked_ = 0;
  int back_at_ = 1;
};

TEST_F(GivenAddress, IsAskedAgainOnceItHasAnswered) {
  ASSERT_TRUE(client_->get("/jobs"));
  controller_.reset();
  const auto again = client_->get("/jobs");
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(again->size(), 2U);
  EXPECT_EQ(asked_, 1);
}

TEST_F(GivenAddress, ThatNeverAnsweredFailsAtOnce) {
  controller_.reset();
  const auto none = client_->get("/jobs");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnreachable);
  EXPECT_NE(none.error().message.find("no controller answers at " + link::to_string(at_)),
            std::string::npos)
      << none.error().message;
  EXPECT_EQ(asked_, 0) << "it was waited for";
}

TEST_F(GivenAddress, GetsARequestThatChangesAnythingOnce) {
  ASSERT_TRUE(client_->get("/jobs"));
  controller_.reset();
  const auto lost = client_->post("/jobs/a-2/cancel", "{}");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(client_->remove("/runs/a-2").error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(asked_, 0);
  ASSERT_TRUE(client_->get("/jobs"));
  EXPECT_TRUE(controller_->posts().empty());
  EXPECT_TRUE(controller_->deleted().empty());
}

TEST_F(GivenAddress, IsNotWaitedForPastTheTimeOfACommand) {
  back_at_ = 1000;
  ASSERT_TRUE(client_->get("/jobs"));
  controller_.reset();
  client_->give_up_at(steady_now() + std::chrono::milliseconds(200));
  const auto late = client_->get("/jobs");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimedOut) << render(late.error());
  EXPECT_LE(asked_, 2);
}

TEST_F(GivenAddress, IsWaitedForWithAWordOnStderr) {
  back_at_ = 2;  // so that the first look finds nobody
  std::ostringstream out, err;
  const Console console{.out = out, .err = err};
  const auto done = with_api({.console = console, .address = controller_->address()},
                             AnsweredBy::kController, [&](Client& client) -> Result<void> {
                               client.api.give_up_when([&] { return tired(); });
                               if (const auto first = client.api.get("/jobs"); !first)
                                 return first.error();
                               controller_.reset();
                               const auto again = client.api.get("/jobs");
                               return again ? Result<void>() : Result<void>(again.error());
                             });
  ASSERT_TRUE(done) << render(done.error());
  EXPECT_EQ(err.str(), std::string(kControllerIsAway) + "\n");
  EXPECT_EQ(out.str(), "");
}

// A server of this test, with its own answers.
std::unique_ptr<http::HttpServer> serve(const link::Endpoint& at, http::HttpHandler handler) {
  auto server = http::HttpServer::listen(at, {}, std::move(handler));
  EXPECT_TRUE(server) << render(server.error());
  return std::move(*server);
}

TEST(ApiClient, AStreamFromAGivenAddressGoesOnWhereTheControllerIsBack) {
  std::mutex mutex;
  std::vector<std::shared_ptr<http::HttpStream>> open;  // they stay open
  const auto answer = [&](const http::HttpRequest& request) -> http::HttpAnswer {
    if (request.target == "/readyz")
      return http::HttpResponse{.content_type = "text/plain", .body = "ready\n"};
    return http::HttpStreaming{.start = [&](std::shared_ptr<http::HttpStream> stream) {
      const std::lock_guard lock(mutex);
      stream->write("line " + std::to_string(open.size() + 1));
      open.push_back(std::move(stream));
    }};
  };
  auto server = serve({}, answer);
  const link::Endpoint at = server->endpoint();
  ApiClient client({.endpoint = at, .token = "t", .from = "--address"});
  client.give_up_when([&] {
    if (!server) server = serve(at, answer);
    return false;
  });
  std::vector<std::string> lines;
  const auto ended =
      client.stream("/jobs?watch=1", Duration::zero(), [&](std::optional<std::string_view> line) {
        lines.emplace_back(line.value_or("silence"));
        if (lines.size() == 1) server.reset();
        return lines.size() < 2;
      });
  EXPECT_TRUE(ended) << render(ended.error());
  EXPECT_EQ(lines, (std::vector<std::string>{"line 1", "line 2"}));
}

// While its controller is away, another program may listen at an address.
TEST(ApiClient, AnotherProgramAtAGivenAddressIsNotShownTheToken) {
  std::optional<FakeController> controller(std::in_place);
  const auto at = link::parse_endpoint(controller->address());
  ASSERT_TRUE(at);
  ApiClient client({.endpoint = *at, .token = "secret", .from = "--address"});
  ASSERT_TRUE(client.get("/jobs"));
  controller.reset();
  std::mutex mutex;
  std::vector<std::string> asked;
  std::unique_ptr<http::HttpServer> other;
  client.give_up_when([&] {
    if (!other)
      other = serve(*at, [&](const http::HttpRequest& request) -> http::HttpAnswer {
        const std::lock_guard lock(mutex);
        asked.push_back(request.target + request.header("authorization"));
        return http::HttpResponse{.status = 404, .body = "{}"};
      });
    const std::lock_guard lock(mutex);
    return !asked.empty();
  });
  EXPECT_FALSE(client.get("/jobs"));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(asked, std::vector<std::string>{"/readyz"});
}

}  // namespace
}  // namespace tandem::cli
