// A user's program as a process: this executable is its own program when TANDEM_ACTOR is set. The
// test is its controller and its agent.
//
// Tests actors/program/program.h.
#include <gtest/gtest.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <set>

#include "actors/messages/wire_build.h"
#include "actors/rank/rank_session.h"
#include "runtime/actor/ask_and_wait.h"
#include "runtime/base/file.h"
#include "runtime/link/forwarder.h"
#include "runtime/link/socket_folder.h"
#include "runtime/node/agent.h"
#include "runtime/node/process_host.h"
#include "tests/actors/program/counter.h"

namespace tandem::program {
namespace {

using namespace counter_example;

constexpr auto kPatience = std::chrono::seconds(60);  // ends a hang; never measured

// Waits until one of its values is set.
struct Events {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<messages::RankEvents> reports;
  std::optional<node::ExitStatus> exit;  // the status of the process that ended last
  std::set<std::string> up;              // names of peers
  template <class Change>
  void set(Change change) {
    const std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
  template <class Done>
  bool wait(Done done) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, done);
  }
};

class Reports final : public actor::Target<messages::RankEvents> {
 public:
  explicit Reports(Events& events) : events_(events) {}
  Delivery post(messages::RankEvents event) override {
    events_.set([&] { events_.reports.push_back(std::move(event)); });
    return Delivery::kAccepted;
  }

 private:
  Events& events_;
};

class ProgramProcess : public testing::Test {
 protected:
  void SetUp() override {
    directory_.expose(
        rank::kControllerRanksPort,
        Ref<messages::RankEvents>({"controller", {1}}, std::make_shared<Reports>(events_)));
    link::LinkCallbacks callbacks;
    // The controller's process does the same.
    callbacks.on_parcel = [this](const ActorId& peer, std::string& frame) {
      if (const auto forwarded = forwarder_.offer(peer, frame)) return *forwarded;
      return directory_.deliver(frame, link::to_peer(*server_, peer), peer);
    };
    callbacks.on_up = [this](const ActorId& peer, const link::Hello&) {
      forwarder_.up(peer);
      events_.set([&] { events_.up.insert(peer.name); });
    };
    callbacks.on_down = [this](const ActorId& peer, const link::Down&) {
      forwarder_.down(peer);
      events_.set([&] { events_.up.erase(peer.name); });
    };
    auto folder = link::SocketFolder::make(std::filesystem::path());
    ASSERT_TRUE(folder) << folder.error().message;
    sockets_.emplace(std::move(*folder));
    auto server = link::LinkServer::listen(
        io_, {{sockets_->next(), std::nullopt}},
        {.name = "controller", .incarnation = {1}, .build = messages::wire_build()}, {}, callbacks);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    server_->start();
  }

  void TearDown() override { std::filesystem::remove(log_); }

  // Without an actor the program is started as by hand.
  void spawn(const std::string& actor = kActor) {
    node::SpawnSpec spec{.name = actor, .argv = {"/proc/self/exe"}, .log_path = log_};
    if (!actor.empty()) {
      std::string words = actor + node::kActorWordSeparator + "1" + node::kActorWordSeparator + "0";
      for (const std::string& word :
           node::rank_words({.controller = to_string(server_->endpoint())}))
        words += node::kActorWordSeparator + word;
      spec.environment.emplace_back(node::kActorVariable, words);
    } else {
      spec.environment.emplace_back("TANDEM_TEST_PROGRAM", "1");
    }
    const auto started =
        host_.spawn(std::move(spec), [this](node::ProcessId, const node::ExitStatus& status) {
          events_.set([&] { events_.exit = status; });
        });
    ASSERT_TRUE(started) << started.error().message;
    processes_[actor] = started->id;
  }
  // The program of an actor, once it has introduced itself.
  Ref<messages::ProgramInbox> introduced(const std::string& actor = kActor) {
    EXPECT_TRUE(events_.wait([&] { return events_.up.contains(actor); })) << log();
    return directory_.remote<messages::ProgramInbox>({rank::kRankInboxPort, {}},
                                                     link::to_peer(*server_, {actor, {1}}));
  }
  messages::StartActor start_of(const std::string& role, const std::string& actor = kActor) {
    return {.job = "job-1",
            .actor = actor,
            .role = role,
            .incarnation = {1},
            .replicas = 1,
            .args_json = R"({"from": 10})",
            .run_dir = ""};
  }
  messages::RankEvents report() {
    EXPECT_TRUE(events_.wait([&] { return !events_.reports.empty(); })) << log();
    return events_.reports.empty() ? messages::RankEvents{} : events_.reports.front();
  }
  std::optional<int> exit_code() {
    EXPECT_TRUE(events_.wait([&] { return events_.exit.has_value(); })) << log();
    return events_.exit ? events_.exit->code : std::nullopt;
  }
  std::string ask(const Ref<messages::ProgramInbox>& program, const std::string& body) {
    const auto answer = actor::ask_and_wait(program, messages::AskJson{body}, kPatience);
    return answer ? answer->body : answer.error().message;
  }
  std::string log() {
    const auto text = read_file(log_);
    return text ? *text : "";
  }

  static constexpr const char* kActor = "job-1/counter/0";
  const std::filesystem::path log_ = std::filesystem::path(testing::TempDir()) /
                                     ("tandem-program-" + std::to_string(getpid()) + ".log");
  Events events_;
  link::Directory directory_;
  link::Forwarder forwarder_{
      [this](const ActorId& to, std::string frame) { return server_->send(to, std::move(frame)); }};
  link::IoThread io_{"link"};
  std::optional<link::SocketFolder> sockets_;
  std::unique_ptr<link::LinkServer> server_;
  node::PosixProcessHost host_;
  std::map<std::string, node::ProcessId> processes_;
};

TEST_F(ProgramProcess, serves_its_actor_and_drains_at_sigterm) {
  spawn();
  const auto program = introduced();
  ASSERT_EQ(program.tell(start_of("counter")), Delivery::kAccepted);
  EXPECT_EQ(std::get<messages::RankReady>(report()).actor, kActor);
  EXPECT_EQ(ask(program, R"({"add": 2})"), "12");
  EXPECT_EQ(ask(program, R"({"ad": 2})").substr(0, 22), "there is no message ad");
  host_.stop(processes_[kActor], kPatience);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(ProgramProcess, actors_of_two_processes_find_each_other) {
  const std::string other = "job-1/counter/1";
  spawn();
  spawn(other);
  const auto program = introduced();
  ASSERT_EQ(program.tell(start_of("counter")), Delivery::kAccepted);
  ASSERT_EQ(introduced(other).tell(start_of("counter", other)), Delivery::kAccepted);
  ASSERT_TRUE(events_.wait([&] { return events_.reports.size() == 2; })) << log();
  const std::string question = R"({"add_to_peer": {"peer": "counter/1", "amount": 5}})";
  EXPECT_EQ(ask(program, question), "15");
  EXPECT_EQ(ask(program, question), "20");
  host_.signal(processes_[other], SIGKILL);
  ASSERT_TRUE(events_.wait([&] { return !events_.up.contains(other); }));
  EXPECT_EQ(ask(program, question), "job-1/counter/1 is not running");
}

TEST_F(ProgramProcess, ends_with_0_when_its_actor_stops) {
  spawn();
  const auto program = introduced();
  ASSERT_EQ(program.tell(start_of("counter")), Delivery::kAccepted);
  (void)report();
  EXPECT_EQ(ask(program, R"({"finish": {}})"), "null");
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(ProgramProcess, ends_with_1_and_a_report_when_its_actor_fails) {
  spawn();
  const auto program = introduced();
  ASSERT_EQ(program.tell(start_of("counter")), Delivery::kAccepted);
  (void)report();
  EXPECT_EQ(ask(program, R"({"fail": "no disk"})"), "null");
  EXPECT_EQ(exit_code(), 1);
  ASSERT_TRUE(events_.wait([&] { return events_.reports.size() == 2; }));
  EXPECT_EQ(std::get<messages::RankFailed>(events_.reports[1]).message,
            "job-1/counter/0 threw: no disk");
}

TEST_F(ProgramProcess, reports_a_role_that_it_has_no_class_for) {
  spawn();
  ASSERT_EQ(introduced().tell(start_of("board")), Delivery::kAccepted);
  const auto failed = std::get<messages::RankFailed>(report());
  EXPECT_EQ(failed.code, ErrorCode::kInvalid);
  EXPECT_EQ(failed.message, "the program has no actor class for board; it has classes for counter");
}

TEST_F(ProgramProcess, started_by_hand_it_says_how_it_is_started) {
  spawn("");
  EXPECT_EQ(exit_code(), 64);
  EXPECT_NE(log().find("this program is started by a Tandem job"), std::string::npos) << log();
}

}  // namespace
}  // namespace tandem::program

int main(int argc, char** argv) {
  if (std::getenv("TANDEM_ACTOR") || std::getenv("TANDEM_TEST_PROGRAM"))
    return tandem::Program().actor<counter_example::Counter>("counter").run();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
