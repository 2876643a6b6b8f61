// A user's program as a process: this executable is its own program when TANDEM_ACTOR is set. The
// test is its controller and its agent.
//
// Tests actors/program/program.h, actors/rank/caged_program.h.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <thread>

#include "actors/messages/wire_build.h"
#include "actors/rank/caged_program.h"
#include "actors/rank/rank_session.h"
#include "runtime/actor/ask_and_wait.h"
#include "runtime/base/file.h"
#include "runtime/link/forwarder.h"
#include "runtime/link/socket_folder.h"
#include "runtime/node/agent.h"
#include "runtime/node/process_host.h"
#include "runtime/sandbox/probe.h"
#include "tests/actors/program/counter.h"

namespace tandem::program {
namespace {

using namespace counter_example;

constexpr auto kPatience = std::chrono::seconds(60);  // ends a hang; never measured

struct Pass {
  using Reply = std::int64_t;
};
TANDEM_WIRE_EMPTY(Pass)
struct PassPeer {  // asks the peer to pass
  std::string peer;
  using Reply = std::int64_t;
};
TANDEM_WIRE(PassPeer, peer)
struct GateArgs {
  std::string pipe;
};
TANDEM_WIRE(GateArgs, pipe)

// Its constructor and each Pass take a byte out of a pipe, and wait for as long as there is none.
class Gated {
 public:
  using Inbox = std::variant<Ask<Pass>, Ask<PassPeer>>;
  explicit Gated(const ActorStart& start)
      : peers_(start.peers), pipe_(start.read_args<GateArgs>().value().pipe) {
    pass();
  }
  void handle(Context&, const Ask<Pass>& ask) {
    pass();
    ask.reply(1);
  }
  void handle(Context& cx, Ask<PassPeer> ask) {
    cx.ask(
        peers_.find<Inbox>(ask.question.peer), Pass{}, kPatience,
        [reply = ask.reply](Context&, Result<std::int64_t> passed) { reply(std::move(passed)); });
  }

 private:
  void pass() const { std::ifstream(pipe_).get(); }
  const Peers peers_;
  const std::string pipe_;
};

// The pipe of gated actors, whose only writer is the test. A program in a sandbox sees the pipe.
class Gate {
 public:
  Gate() {
    std::string pattern = testing::TempDir() + "tandem-gate.XXXXXX";  // for mkdtemp
    folder_ = std::filesystem::canonical(::mkdtemp(pattern.data()));
    std::filesystem::create_directories(seen());
    std::filesystem::create_directories(run_directory());
    EXPECT_EQ(::mkfifo(pipe().c_str(), 0644), 0);
    // For the sandbox's user, whatever the umask says.
    EXPECT_EQ(::chmod(folder_.c_str(), 0755), 0);
    EXPECT_EQ(::chmod(seen().c_str(), 0755), 0);
    EXPECT_EQ(::chmod(pipe().c_str(), 0644), 0);
    writer_ = ::open(pipe().c_str(), O_RDWR | O_CLOEXEC);  // which waits for no reader
    EXPECT_GE(writer_, 0);
  }
  ~Gate() {
    ::close(writer_);
    std::filesystem::remove_all(folder_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void let_one_pass() const { EXPECT_EQ(::write(writer_, "x", 1), 1); }
  std::filesystem::path seen() const { return folder_ / "seen"; }
  std::filesystem::path pipe() const { return seen() / "pipe"; }
  std::filesystem::path run_directory() const { return folder_ / "run"; }

 private:
  std::filesystem::path folder_;
  int writer_ = -1;
};

// Waits until one of its values is set.
struct Events {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<messages::RankEvents> reports;
  std::optional<node::ExitStatus> exit;  // the status of the process that ended last
  std::set<std::string> up;              // names of peers
  std::vector<std::string> answers;      // to questions of ask_later()
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
  void spawn(const std::string& actor = kActor,
             const std::vector<std::string>& argv = {"/proc/self/exe"},
             const std::filesystem::path& working_directory = {}) {
    node::SpawnSpec spec{
        .name = actor, .argv = argv, .log_path = log_, .working_directory = working_directory};
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
  void spawn_caged(const Gate& gate, const std::string& program,
                   const std::vector<std::string>& words = {}) {
    std::vector<std::string> argv = rank::cage_arguments({.readable = {gate.seen().string()}});
    argv.insert(argv.begin(), "/proc/self/exe");
    argv.push_back(program);
    argv.insert(argv.end(), words.begin(), words.end());
    spawn(kActor, argv, gate.run_directory());
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
  void ask_later(const Ref<messages::ProgramInbox>& program, const std::string& body) {
    const actor::ReplyTo<messages::AskedJson> reply([this](Result<messages::AskedJson> answer) {
      events_.set([&] {
        events_.answers.push_back(answer ? std::move(answer->body) : answer.error().message);
      });
    });
    ASSERT_EQ(program.tell(Ask<messages::AskJson>{{body}, reply}), Delivery::kAccepted);
  }
  link::ProgressReport progress(const std::string& actor = kActor) {
    const auto status = server_->status({actor, {1}});
    return status ? status->progress : link::ProgressReport{.phase = "no link"};
  }
  // Waits for a heartbeat that tells of the phase, and of at least `counter`.
  testing::AssertionResult is_in(const std::string& phase, const std::string& actor = kActor,
                                 std::uint64_t counter = 0) {
    const Time end = steady_now() + kPatience;
    for (auto now = progress(actor); now.phase != phase || now.counter < counter;
         now = progress(actor)) {
      if (steady_now() > end) return testing::AssertionFailure() << now.phase << "\n" << log();
      std::this_thread::yield();
    }
    return testing::AssertionSuccess();
  }
  Ref<messages::ProgramInbox> gated(const Gate& gate, const std::string& actor = kActor) {
    messages::StartActor start = start_of("gated", actor);
    start.args_json = dump_json(nlohmann::json{{"pipe", gate.pipe().string()}});
    const auto program = introduced(actor);
    EXPECT_EQ(program.tell(start), Delivery::kAccepted);
    return program;
  }
  void tells_of_its_work(const Gate& gate);

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

// The program of kActor has been spawned.
void ProgramProcess::tells_of_its_work(const Gate& gate) {
  const auto program = gated(gate);
  ASSERT_TRUE(is_in("load")) << "its constructor waits";
  gate.let_one_pass();
  EXPECT_EQ(std::get<messages::RankReady>(report()).actor, kActor);
  ASSERT_TRUE(is_in("idle"));
  ask_later(program, R"({"pass": {}})");
  ASSERT_TRUE(is_in("handler"));
  gate.let_one_pass();
  ASSERT_TRUE(events_.wait([&] { return events_.answers.size() == 1; })) << log();
  ASSERT_TRUE(is_in("idle"));

  const std::string other = "job-1/gated/1";
  spawn(other);
  (void)gated(gate, other);
  ASSERT_TRUE(is_in("load", other));
  gate.let_one_pass();
  ASSERT_TRUE(events_.wait([&] { return events_.reports.size() == 2; })) << log();
  const std::uint64_t before = progress().counter;
  ask_later(program, R"({"pass_peer": {"peer": "gated/1"}})");
  ASSERT_TRUE(is_in("handler", other));
  EXPECT_TRUE(is_in("idle", kActor, before + 2)) << "to wait for an answer is no work";
  gate.let_one_pass();
  ASSERT_TRUE(events_.wait([&] { return events_.answers.size() == 2; })) << log();
  EXPECT_EQ(events_.answers, (std::vector<std::string>{"1", "1"}));
}

TEST_F(ProgramProcess, tells_whether_it_loads_handles_or_waits) {
  const Gate gate;
  spawn();
  tells_of_its_work(gate);
}

TEST_F(ProgramProcess, in_a_sandbox_it_tells_the_same_CG2) {
  if (TANDEM_SANITIZED) GTEST_SKIP() << "a sanitizer's runtime needs more than the sandbox lets in";
  const auto plan = sandbox::plan_of(sandbox::SandboxMode::kAuto, sandbox::probe_layers());
  if (!plan || !sandbox::may_have_sockets(*plan)) GTEST_SKIP() << "no namespaces";
  const Gate gate;
  spawn_caged(gate, std::filesystem::read_symlink("/proc/self/exe"));
  tells_of_its_work(gate);
}

// Such a program is up by its parent's link alone.
TEST_F(ProgramProcess, in_a_sandbox_it_is_missed_until_it_introduces_itself_CG2) {
  const auto plan = sandbox::plan_of(sandbox::SandboxMode::kAuto, sandbox::probe_layers());
  if (!plan || !sandbox::may_have_sockets(*plan)) GTEST_SKIP() << "no namespaces";
  const Gate gate;
  spawn_caged(gate, "/bin/cat", {gate.pipe()});
  (void)introduced();
  EXPECT_TRUE(is_in("connect"));
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
  EXPECT_EQ(failed.message,
            "the program has no actor class for board; it has classes for counter, gated");
}

TEST_F(ProgramProcess, started_by_hand_it_says_how_it_is_started) {
  spawn("");
  EXPECT_EQ(exit_code(), 64);
  EXPECT_NE(log().find("this program is started by a Tandem job"), std::string::npos) << log();
}

}  // namespace
}  // namespace tandem::program

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == tandem::rank::kCageCommand)
    return tandem::rank::run_caged(std::span<const char* const>(argv, argc).subspan(2));
  if (std::getenv("TANDEM_ACTOR") || std::getenv("TANDEM_TEST_PROGRAM"))
    return tandem::Program()
        .actor<counter_example::Counter>("counter")
        .actor<tandem::program::Gated>("gated")
        .run();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
