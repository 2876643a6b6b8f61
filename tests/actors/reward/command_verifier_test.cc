// A user's reward program in virtual time: the child is played by a class that crashes, hangs or
// answers nonsense when a completion says so, and each completion gets one score or one failure.
#include "actors/reward/command_verifier.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/text.h"

namespace tandem::reward {
namespace {

using messages::RewardTrouble;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr Duration kTimeout = 1s;  // in virtual time

struct Judge {
  using Inbox = std::variant<ScoreItem>;
  std::unique_ptr<Verifier> verifier;
  std::function<void(std::string completion, messages::TrajectoryScore)> told;
  std::function<void(RewardTrouble)> troubled = [](auto) {};
  bool listens = false;
  void handle(actor::Context& cx, ScoreItem item) {
    if (!std::exchange(listens, true))
      verifier->report_to([this](auto&, RewardTrouble trouble) { troubled(std::move(trouble)); });
    std::string completion = item.completion;
    verifier->score(cx, std::move(item),
                    [this, completion](actor::Context&, messages::TrajectoryScore score) {
                      told(completion, std::move(score));
                    });
  }
};

// A child in virtual time. The completion decides what the child does with a line:
//   "crash"  it stops        "hang"  it says nothing, ever more       "lose"  no answer to this one
//   "error"  it says so      "garbage", "wrong id"  lines that answer nothing
//   "long", "not UTF-8"  errors that are cut, or enter, within a character
//   "exit"   a score and its end, by itself
//   "late"   a score and its end, when its time has passed
//   "{…}"    this line, with the item's id in the place of ID
//   a number                 its score, after a millisecond
class FakeChild final : public node::LineChild {
 public:
  struct Shared {
    actor::SimulatedExecutor* executor;
    int lives = 0;
    int alive = 0;
    std::size_t in_hand = 0, in_hand_max = 0;
    std::map<std::string, int> seen;
    std::vector<std::string> stderr_tail;
  };
  FakeChild(Shared& shared, node::LineChildEvents events)
      : shared_(shared), events_(std::make_shared<node::LineChildEvents>(std::move(events))) {
    ++shared_.lives;
    ++shared_.alive;
    shared_.in_hand = 0;
  }
  ~FakeChild() override { --shared_.alive; }
  std::int64_t pid() const override { return shared_.lives; }
  std::vector<std::string> stderr_tail() override { return shared_.stderr_tail; }

  void write_line(std::string line) override {
    const json item = parse_json(line);
    const std::string what = item["completion"];
    ++shared_.seen[what];
    shared_.in_hand_max = std::max(shared_.in_hand_max, ++shared_.in_hand);
    if (hangs_ || what == "lose") return;
    if (what == "hang") {
      hangs_ = true;
      return;
    }
    json answer{{"id", item["id"]}};
    if (what == "error")
      answer["error"] = "I can't";
    else if (what == "long")
      for (int i = 0; i < 100; ++i)
        answer["error"] = answer.value("error", std::string("é")) + "日本";
    else if (what == "not UTF-8")
      answer["error"] = "half of é: ?";
    else if (what == "no score")
      answer["score"] = "high";
    else if (what == "wrong id")
      answer = {{"id", 999'999}, {"score", 1}};
    else if (what == "late" || what == "exit")
      answer["score"] = 1;
    else if (what != "garbage" && what != "crash" && !what.starts_with('{'))
      answer["score"] = std::stod(what);
    const auto speak = [&shared = shared_, events = events_, what, answer] {
      if (what == "crash") return events->ended({"exited with code 1"});
      --shared.in_hand;
      std::string said = what == "garbage" ? "not JSON {" : answer.dump();
      if (what.starts_with('{')) {
        said = what;
        if (const auto at = said.find("ID"); at != said.npos)
          said.replace(at, 2, answer["id"].dump());
      }
      if (what == "not UTF-8") said[said.find('?')] = '\xc3';
      events->line(said);
      if (what == "late" || what == "exit") events->ended({"exited with code 0", true});
    };
    shared_.executor->at(shared_.executor->now() + (what == "late" ? kTimeout * 3 / 2 : 1ms),
                         speak);
  }

 private:
  Shared& shared_;
  const std::shared_ptr<node::LineChildEvents> events_;
  bool hangs_ = false;
};

struct Simulation {
  Simulation() {
    child.executor = &executor;
    ref = system.spawn<Judge>("judge", [this] {
      const node::LineChildSpawner spawn =
          [this](const auto&,
                 node::LineChildEvents events) -> Result<std::unique_ptr<node::LineChild>> {
        if (starts_refused > 0 && starts_refused-- > 0)
          return Error{ErrorCode::kOutOfMemory, "cannot start prog: no process to be had"};
        if (spawn_fails) return Error{.message = "cannot start prog: No such file or directory"};
        return std::unique_ptr<node::LineChild>(
            std::make_unique<FakeChild>(child, std::move(events)));
      };
      return std::make_unique<Judge>(Judge{
          std::make_unique<CommandVerifier>(CommandVerifier::Config{.program = {.argv = {"prog"}},
                                                                    .timeout = kTimeout,
                                                                    .retries = 2,
                                                                    .log = "reward.log"},
                                            spawn),
          [this](std::string completion, messages::TrajectoryScore score) {
            scores.emplace_back(std::move(completion), std::move(score));
          },
          [this](RewardTrouble trouble) { troubles.push_back(std::move(trouble)); }});
    });
  }
  void score(const std::string& completion) {
    EXPECT_EQ(ref.tell(ScoreItem{.completion = completion}), actor::Delivery::kAccepted);
  }
  bool finish(std::size_t items) {
    return executor.run_until([&] { return scores.size() == items; }, 600s);
  }
  int failed() const {
    return static_cast<int>(std::count_if(scores.begin(), scores.end(), [](const auto& s) {
      return std::holds_alternative<messages::ScoreFailed>(s.second);
    }));
  }

  actor::SimulatedExecutor executor{1};
  std::optional<Error> failure;  // the actor's failure
  actor::System system{executor, [this](auto&, const Error& why) { failure = why; }};
  FakeChild::Shared child{};
  bool spawn_fails = false;
  int starts_refused = 0;  // so many more
  std::vector<RewardTrouble> troubles;
  std::vector<std::pair<std::string, messages::TrajectoryScore>> scores;
  actor::Ref<Judge::Inbox> ref;
};

TEST(CommandVerifier, ScoresComeBackWhateverTheirNumber) {
  Simulation s;
  for (int i = 0; i < 500; ++i) s.score(std::to_string(i));
  ASSERT_TRUE(s.finish(500));
  for (const auto& [completion, score] : s.scores)
    EXPECT_EQ(std::get<messages::Scored>(score).value, std::stod(completion));
  EXPECT_EQ(s.child.lives, 1);
  EXPECT_EQ(s.child.in_hand_max, kCommandItemsInFlight) << "CV-1";
}

TEST(CommandVerifier, ACrashIsChargedToWhoeverCausesItAlone) {  // CV-2
  Simulation s;
  for (int i = 0; i < 20; ++i) s.score(std::to_string(i));
  s.score("crash");
  for (int i = 20; i < 40; ++i) s.score(std::to_string(i));
  ASSERT_TRUE(s.finish(41));
  EXPECT_EQ(s.failed(), 1);
  EXPECT_EQ(s.child.seen["crash"], 4) << "once in company, three times alone";
  for (const auto& [completion, score] : s.scores)
    EXPECT_EQ(std::holds_alternative<messages::ScoreFailed>(score), completion == "crash");
}

TEST(CommandVerifier, ErrorsAndNonsenseAreRetriedAndThenFail) {
  for (const std::string what : {"error", "no score"}) {
    Simulation s;
    s.score(what);
    s.score("0.5");
    ASSERT_TRUE(s.finish(2));
    EXPECT_EQ(s.failed(), 1);
    EXPECT_EQ(s.child.seen[what], 3);
    EXPECT_EQ(s.child.lives, 1) << "it need not be started again";
  }
}

TEST(CommandVerifier, AnAnswerThatIsNoScoreIsNamedAndItsAttemptsAreTakenAtOnce) {
  const std::pair<const char*, const char*> answers[] = {
      {R"({"id": ID, "score": NaN})", "score is NaN; a score must be a finite number"},
      {R"({"id": ID, "score": "1.0"})", "score must be a number, found a string"},
      {R"({"score": 1})", "the answer lacks the id of its line"}};
  for (const auto& [answer, reason] : answers) {
    Simulation s;
    for (int i = 0; i < 5; ++i) s.score(answer);
    ASSERT_TRUE(s.finish(5)) << answer;
    EXPECT_EQ(s.failed(), 5) << answer;
    EXPECT_EQ(s.child.seen[answer], 15) << "three attempts each";
    EXPECT_EQ(s.child.lives, 1) << "it need not be started again";
    EXPECT_LT(s.executor.now() - Time{}, kTimeout) << "nothing was taken for hung";
    for (const auto& [completion, score] : s.scores)
      EXPECT_TRUE(std::get<messages::ScoreFailed>(score).reason.starts_with(reason))
          << std::get<messages::ScoreFailed>(score).reason;
    for (const RewardTrouble& trouble : s.troubles) EXPECT_TRUE(trouble.what.starts_with(reason));
  }
}

TEST(CommandVerifier, AnExtraComesWithItsScoreAndOneThatIsTooLongIsATrouble) {
  Simulation s;
  s.score(R"({"id": ID, "score": 1, "extra": {"format": 1, "pred": "4"}})");
  ASSERT_TRUE(s.finish(1));
  const auto& scored = std::get<messages::Scored>(s.scores[0].second);
  EXPECT_EQ(scored.extra, R"({"format":1,"pred":"4"})");
  EXPECT_EQ(scored.vote, messages::vote_of("4"));
  EXPECT_TRUE(s.troubles.empty());
  s.score(R"({"id": ID, "score": 1, "extra": {"a": ")" +
          std::string(messages::kExtraBytesMax, 'x') + "\"}}");
  ASSERT_TRUE(s.finish(2));
  EXPECT_EQ(s.failed(), 0) << "the score counts";
  ASSERT_EQ(s.troubles.size(), 1u);
  EXPECT_EQ(s.troubles[0].attempt, 0) << "nobody is charged";
  EXPECT_TRUE(s.troubles[0].what.starts_with("extra has 4104 bytes")) << s.troubles[0].what;
}

TEST(CommandVerifier, ReasonsAreUtf8WhateverTheChildWrites) {
  Simulation s;
  s.score("long");
  s.score("not UTF-8");
  ASSERT_TRUE(s.finish(2));
  EXPECT_EQ(s.failed(), 2);
  for (const auto& [completion, score] : s.scores) {
    const std::string& reason = std::get<messages::ScoreFailed>(score).reason;
    EXPECT_EQ(valid_utf8(reason), reason) << completion;
    EXPECT_TRUE(reason.ends_with(completion == "long" ? "…" : "half of é: \uFFFD\"")) << reason;
  }
}

TEST(CommandVerifier, WhatIsNotAnsweredInTimeIsRetriedWithAFreshChild) {
  for (const std::string what : {"hang", "lose", "garbage", "wrong id"}) {
    Simulation s;
    s.score(what);
    for (int i = 0; i < 10; ++i) s.score(std::to_string(i));
    ASSERT_TRUE(s.finish(11)) << what;
    EXPECT_EQ(s.failed(), 1) << what;
    EXPECT_EQ(s.child.seen[what], 3) << what;
    EXPECT_GE(s.child.lives, 3) << what;
    EXPECT_LE(s.child.alive, 1) << what;
    EXPECT_LT(s.executor.now().ns, 60'000'000'000) << what;
  }
}

// The first child's answer and end come while the second one is at work on the same item.
TEST(CommandVerifier, WhatAChildSaysAfterItWasGivenUpIsNotHeard) {  // CV-3
  Simulation s;
  s.score("late");
  ASSERT_TRUE(s.finish(1));
  EXPECT_EQ(s.failed(), 1);
  EXPECT_EQ(s.child.seen["late"], 3);
  EXPECT_EQ(std::get<messages::ScoreFailed>(s.scores[0].second).reason,
            "the program hung for 1 s without an answer");
  EXPECT_GE(s.executor.now().ns, Duration(3 * kTimeout).count());
}

TEST(CommandVerifier, AMissingProgramIsGivenUpWithItsReason) {
  Simulation s;
  s.spawn_fails = true;
  s.score("1");
  ASSERT_TRUE(s.finish(1));
  EXPECT_EQ(s.failed(), 1);
  EXPECT_NE(std::get<messages::ScoreFailed>(s.scores[0].second).reason.find("prog"),
            std::string::npos);
  EXPECT_EQ(s.troubles.front().kind, messages::TroubleKind::kCannotStart);
  for (int i = 0; i < 1000; ++i) s.score(std::to_string(i));
  ASSERT_TRUE(s.executor.run_until([&] { return s.failure.has_value(); }, 600s));
  EXPECT_EQ(s.failure->code, ErrorCode::kInvalid);
  EXPECT_NE(s.failure->message.find("No such file"), std::string::npos) << s.failure->message;
}

TEST(CommandVerifier, AMachineWithoutRoomChargesNobody) {  // CV-2
  Simulation s;
  s.starts_refused = 20;
  for (int i = 0; i < 5; ++i) s.score(std::to_string(i));
  ASSERT_TRUE(s.finish(5));
  EXPECT_EQ(s.failed(), 0);
  ASSERT_EQ(s.troubles.size(), 20u);
  EXPECT_EQ(s.troubles[0].kind, messages::TroubleKind::kNotStarted);
  EXPECT_EQ(s.troubles[0].attempt, 0);
  EXPECT_NE(s.troubles[0].what.find("not at fault"), std::string::npos) << s.troubles[0].what;
}

TEST(CommandVerifier, AProgramThatEndsAfterEachLineIsNamedAndNobodyIsCharged) {  // CV-2
  Simulation s;
  for (int i = 0; i < 10; ++i) s.score("exit");
  ASSERT_TRUE(s.finish(10));
  EXPECT_EQ(s.failed(), 0);
  EXPECT_EQ(s.child.lives, 10);
  ASSERT_FALSE(s.troubles.empty());
  EXPECT_EQ(s.troubles.back().kind, messages::TroubleKind::kEndsAfterEachLine);
  EXPECT_NE(s.troubles.back().what.find("ends after each line"), std::string::npos);
}

TEST(CommandVerifier, TroubleIsToldWithStderrBeforeAnItemIsCharged) {  // CV-4
  Simulation s;
  s.child.stderr_tail = {"Traceback", "ValueError: the bug"};
  s.score("crash");
  ASSERT_TRUE(s.executor.run_until([&] { return !s.troubles.empty(); }, 60s));
  EXPECT_TRUE(s.scores.empty());
  ASSERT_TRUE(s.finish(1));
  ASSERT_EQ(s.troubles.size(), 3u);
  EXPECT_EQ(text(s.troubles[1]),
            "the program exited with code 1 (attempt 2 of 3); its stderr ends: Traceback | "
            "ValueError: the bug; log: reward.log");
  EXPECT_EQ(std::get<messages::ScoreFailed>(s.scores[0].second).reason,
            "the program exited with code 1; its stderr ends: ValueError: the bug");
}

TEST(CommandVerifier, AHangSaysForHowLongAfterWhatGarbageAndWhichAttemptItWas) {
  Simulation s;
  s.score("garbage");
  ASSERT_TRUE(s.finish(1));
  ASSERT_GE(s.troubles.size(), 4u);
  EXPECT_EQ(s.troubles[0].kind, messages::TroubleKind::kGarbage);
  EXPECT_EQ(s.troubles[0].what, "garbage on stdout: not JSON {");
  EXPECT_EQ(s.troubles[3].kind, messages::TroubleKind::kHung);
  EXPECT_EQ(s.troubles[3].attempt, 2);
  EXPECT_EQ(s.troubles[3].what,
            "the program hung for 1 s without an answer; it wrote garbage on stdout: not JSON {");
}

TEST(CommandVerifier, AProgramThatNeverAnswersIsGivenUp) {
  for (const std::string what : {"crash", "hang"}) {
    Simulation s;
    for (int i = 0; i < 100; ++i) s.score(what);
    ASSERT_TRUE(s.executor.run_until([&] { return s.failure.has_value(); }, 600s)) << what;
    EXPECT_EQ(s.failure->code, ErrorCode::kInvalid);
    EXPECT_EQ(s.child.lives, kCommandStartsUnanswered);
    EXPECT_EQ(s.child.alive, 0);
  }
}

// The real thing: a script, pipes and signals.
class RealChild {
 public:
  explicit RealChild(const std::string& script, Duration timeout = 20s, int retries = 1,
                     node::ChildProgram program = {}) {
    program.argv = {"python3", "-c", script};
    ref_ = system_.spawn<Judge>("judge", [this, program, timeout, retries] {
      return std::make_unique<Judge>(Judge{
          std::make_unique<CommandVerifier>(
              CommandVerifier::Config{.program = program, .timeout = timeout, .retries = retries},
              node::process_spawner(io_)),
          [this](std::string completion, messages::TrajectoryScore score) {
            const std::lock_guard lock(mutex_);
            scores_[completion] = std::move(score);
            changed_.notify_all();
          },
          [this](RewardTrouble trouble) {
            const std::lock_guard lock(mutex_);
            troubles_.push_back(std::move(trouble));
          }});
    });
  }
  ~RealChild() {
    system_.stop("judge");
    executor_.stop();
  }
  std::vector<RewardTrouble> troubles() {
    const std::lock_guard lock(mutex_);
    return troubles_;
  }
  // Returns everything scored so far, once it includes these.
  std::map<std::string, messages::TrajectoryScore> score(
      const std::vector<std::string>& completions) {
    for (const std::string& completion : completions)
      EXPECT_EQ(ref_.tell(ScoreItem{.prompt = "p", .completion = completion, .answer = "1"}),
                actor::Delivery::kAccepted);
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 100s, [&] {
      return std::ranges::all_of(completions, [&](auto& c) { return scores_.contains(c); });
    }));
    return scores_;
  }

 private:
  link::IoThread io_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, messages::TrajectoryScore> scores_;  // guarded by mutex_
  std::vector<RewardTrouble> troubles_;                      // guarded by mutex_
  actor::ThreadedExecutor executor_{1, 1};
  actor::System system_{executor_, nullptr};
  actor::Ref<Judge::Inbox> ref_;
};

TEST(CommandVerifier, ARealProgramScoresCrashesAndComesBack) {
  RealChild child(R"(
import json, sys, os
print("hello", file=sys.stderr)
held = []
for line in sys.stdin:
    item = json.loads(line)
    c = item["completion"]
    if c == "crash": os._exit(3)
    if c == "long line": print("x" * 3000000, flush=True)
    held.append({"id": item["id"], "score": len(c)} if c != "bad" else {"id": item["id"], "error": "bad"})
    while held: print(json.dumps(held.pop()), flush=True)
)");
  const auto scores = child.score({"a", "crash", "bbb", "long line",
                                   std::string("\xff\xfe") + std::string(100'000, 'c'), "bad"});
  EXPECT_EQ(std::get<messages::Scored>(scores.at("a")).value, 1);
  EXPECT_EQ(std::get<messages::Scored>(scores.at("bbb")).value, 3);
  EXPECT_NE(std::get<messages::ScoreFailed>(scores.at("crash")).reason.find("exited with code 3"),
            std::string::npos);
  EXPECT_NE(std::get<messages::ScoreFailed>(scores.at("bad")).reason.find("bad"),
            std::string::npos);
  EXPECT_NE(std::get<messages::ScoreFailed>(scores.at("long line")).reason.find("1048576"),
            std::string::npos);
}

constexpr Duration kLong = 90s;  // for completions that must not time out

TEST(CommandVerifier, WhatAProgramWroteToStderrBeforeItDiedIsTold) {
  RealChild child(R"(
import json, sys
for line in sys.stdin:
    raise ValueError("the bug is h\xe9re")
)",
                  kLong, 0);
  const auto scores = child.score({"a"});
  EXPECT_NE(std::get<messages::ScoreFailed>(scores.at("a")).reason.find("ValueError: the bug is h"),
            std::string::npos);
  const auto troubles = child.troubles();
  ASSERT_FALSE(troubles.empty());
  EXPECT_EQ(troubles[0].kind, messages::TroubleKind::kEnded);
  EXPECT_GE(troubles[0].stderr_tail.size(), 2u);
}

TEST(CommandVerifier, AProgramSeesNoVariablesOfOursButAFew) {  // CE-1
  setenv("TANDEM_TOKEN", "secret", 1);
  setenv("SOME_KEY", "secret", 1);
  RealChild child(R"(
import json, os, sys
for line in sys.stdin:  # a wrapper of python3 may add names of its own
    names = [n for n in os.environ if n.startswith("TANDEM_") or n in ("SOME_KEY", "GIVEN")]
    print(json.dumps({"id": json.loads(line)["id"], "error": " ".join(names)}), flush=True)
)",
                  kLong, 0, {.env = {{"GIVEN", "1"}}});
  EXPECT_EQ(std::get<messages::ScoreFailed>(child.score({"a"}).at("a")).reason,
            "the program reported \"GIVEN\"");
}

TEST(CommandVerifier, AProgramOpensNoMoreFilesThanItMay) {
  RealChild child(R"(
import json, sys
for line in sys.stdin:
    opened = []
    try:
        while True: opened.append(open("/dev/null"))
    except OSError: pass
    print(json.dumps({"id": json.loads(line)["id"], "score": len(opened)}), flush=True)
)",
                  kLong, 0, {.limits = {.open_files = 32}});
  const double opened = std::get<messages::Scored>(child.score({"a"}).at("a")).value;
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, 32);
}

TEST(CommandVerifier, AProgramThatTakesMoreMemoryThanItMayIsEndedByName) {
  RealChild child(R"(
import sys, time
for line in sys.stdin:
    taken = bytearray(300 << 20)
    while True: time.sleep(1)
)",
                  kLong, 0, {.limits = {.memory_bytes = std::uint64_t{150} << 20}});
  const std::string reason = std::get<messages::ScoreFailed>(child.score({"a"}).at("a")).reason;
  EXPECT_NE(reason.find("reward.limits.memory_megabytes: 150"), std::string::npos) << reason;
}

// A line is written to a child that has closed its input, and to one that exits with most of the
// line unread: neither ends the thread that writes, and the item is scored by the child after them.
TEST(CommandVerifier, AProgramThatStopsReadingCostsAnAttemptAndNoMore) {
  const std::string lives = testing::TempDir() + "lives_" + std::to_string(getpid());
  const std::string script = R"(
import json, os, sys, time
lives = open(")" + lives + R"(", "a+")
lives.write("x"); lives.flush(); lives.seek(0)
life = len(lives.read())
if life == 2: os._exit(0)
for line in iter(sys.stdin.readline, ""):
    item = json.loads(line)
    if life == 1: os.close(0)
    print(json.dumps({"id": item["id"], "score": len(item["completion"])}), flush=True)
    if life == 1: time.sleep(1000)
)";
  // Retries for a machine on which Python takes longer than the timeout to start.
  RealChild child(script, 1s, 50);
  child.score({"a"});  // the first child's input is closed once this is answered
  const std::string longer_than_a_pipe(1'000'000, 'b');
  const auto scores = child.score({longer_than_a_pipe});
  EXPECT_EQ(std::get<messages::Scored>(scores.at(longer_than_a_pipe)).value, 1'000'000);
  EXPECT_GE(std::filesystem::file_size(lives), 3u);
  unlink(lives.c_str());
}

// Scores one item and does nothing else for ever; its pid is in a file.
class Deaf {
 public:
  Deaf() : pid_file_(testing::TempDir() + "child_pid_" + std::to_string(getpid())) {}
  ~Deaf() { unlink(pid_file_.c_str()); }
  std::string script() const {
    return R"(
import json, sys, os, time, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(")" + pid_file_ +
           R"(", "w").write(str(os.getpid()))
item = json.loads(sys.stdin.readline())
print(json.dumps({"id": item["id"], "score": 1}), flush=True)
while True: time.sleep(1)
)";
  }
  pid_t pid() const {  // 0: it never ran
    pid_t pid = 0;
    std::ifstream(pid_file_) >> pid;
    return pid;
  }

 private:
  const std::string pid_file_;
};

TEST(CommandVerifier, AProgramThatIgnoresItsInputsEndIsGoneWithTheVerifier) {
  const Deaf program;
  {
    RealChild child(program.script());
    child.score({"x"});
  }
  ASSERT_GT(program.pid(), 0);
  EXPECT_EQ(kill(program.pid(), 0), -1) << "no orphan";
}

TEST(CommandVerifier, AProgramDiesWithAProcessThatIsKilled) {
  const Deaf program;
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // whom it leaves behind becomes ours
  const pid_t owner = fork();
  if (owner == 0) {
    RealChild child(program.script());
    child.score({"x"});
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(owner, nullptr, 0), owner);
  const pid_t orphan = program.pid();
  ASSERT_GT(orphan, 0);
  pid_t ended = 0;
  const Time end = steady_now() + 20s;
  while ((ended = waitpid(orphan, nullptr, WNOHANG)) == 0 && steady_now() < end) sched_yield();
  EXPECT_EQ(ended, orphan) << "no orphan";
  if (ended == 0) kill(orphan, SIGKILL);
}

}  // namespace
}  // namespace tandem::reward
