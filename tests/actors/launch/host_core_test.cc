// One host of `tandem up --hosts`: each test is a story of what is heard and what follows.
#include "actors/launch/host_core.h"

#include <gtest/gtest.h>

namespace tandem::launch {
namespace {

std::string word(const effect::Connect&) { return "connect"; }
std::string word(const effect::Copy&) { return "copy"; }
std::string word(const effect::StartAgent&) { return "start"; }
std::string word(const effect::Send& one) { return "send " + one.line; }
std::string word(const effect::Disconnect&) { return "disconnect"; }
std::string word(const effect::Say& one) { return "say " + one.text; }

// A host, and the clock of the test.
struct Story {
  explicit Story(bool copies = true)
      : core({.build = "tandem 1, sha256 a", .controller = "10.0.0.1:7420", .copies = copies}) {}

  static std::vector<std::string> words(const HostEffects& effects) {
    std::vector<std::string> all;
    for (const HostEffect& effect : effects)
      all.push_back(std::visit([](const auto& one) { return word(one); }, effect));
    return all;
  }
  std::vector<std::string> after(Duration time) {
    now = now + time;
    return words(core.look(now));
  }
  std::vector<std::string> hears(const std::string& line) {
    return words(core.heard(*parse_host_line("tandem-host " + line), now));
  }
  std::vector<std::string> loses(const std::string& why) {
    return words(core.disconnected(why, now));
  }
  // Until its agent runs and its node is ready.
  void runs() {
    after({});
    hears("machine m");
    hears("found /bin/tandem");
    hears("running 7");
    core.joined();
  }

  HostCore core;
  Time now{1'000'000'000};
};

using Lines = std::vector<std::string>;

TEST(HostCore, AHostThatHasTheBuildRunsAnAgent) {
  Story host;
  EXPECT_EQ(host.after({}), Lines{"connect"});
  EXPECT_EQ(host.after(std::chrono::seconds(1)), Lines{});
  EXPECT_EQ(host.hears("machine m"), Lines{});
  EXPECT_EQ(host.core.machine(), "m");
  EXPECT_EQ(host.hears("found /bin/tandem"), Lines{"start"});
  EXPECT_FALSE(host.core.awaits_join());
  EXPECT_EQ(host.hears("running 7"), Lines{"say its agent runs, pid 7"});
  EXPECT_TRUE(host.core.awaits_join());
  EXPECT_EQ(Story::words(host.core.joined()), Lines{"say its node is ready"});
  EXPECT_EQ(host.after(std::chrono::hours(24)), Lines{}) << "a run has no deadline";
  EXPECT_EQ(host.hears("ended 0 "), (Lines{"disconnect", "say its agent has ended"}));
  EXPECT_TRUE(host.core.is_over());
}

TEST(HostCore, AHostWithoutTheBuildGetsIt) {
  Story host;
  host.after({});
  EXPECT_EQ(host.hears("not-found tandem 0.9, sha256 b"),
            (Lines{"copy", "say it has tandem 0.9, sha256 b; copying tandem 1, sha256 a"}));
  EXPECT_EQ(Story::words(host.core.copied(host.now)), Lines{"send look"});
  EXPECT_EQ(host.hears("found /cache/tandem"), Lines{"start"});
}

TEST(HostCore, WithoutCopiesBothBuildsAreNamed) {
  Story host(false);
  host.after({});
  EXPECT_EQ(host.hears("not-found tandem 0.9, sha256 b"),
            (Lines{"disconnect",
                   "say it has tandem 0.9, sha256 b, and this is tandem 1, sha256 a: install this "
                   "one there, or leave --no-copy out; it is left out"}));
  EXPECT_TRUE(host.core.was_given_up());
}

TEST(HostCore, EachStateButRunningHasADeadline_HO4) {
  Story silent;
  silent.after({});
  EXPECT_EQ(silent.after(kConnectWithin),
            (Lines{"disconnect", "say it did not answer within 60 s; attempt 2 in 1 s"}));
  EXPECT_EQ(silent.after(kPauseFirst), Lines{"connect"});

  Story slow;
  slow.after({});
  slow.hears("not-found ");
  EXPECT_EQ(slow.after(kConnectWithin), Lines{}) << "a copy may take longer";
  EXPECT_EQ(slow.after(kCopyWithin).front(), "disconnect");

  Story stuck;
  stuck.after({});
  stuck.hears("found x");
  EXPECT_EQ(stuck.after(kStartWithin).front(), "disconnect");

  Story ending;
  ending.runs();
  EXPECT_EQ(Story::words(ending.core.told_to_end(true, ending.now)), Lines{"send now"});
  EXPECT_EQ(ending.after(kEndNowWithin).front(), "disconnect");
  EXPECT_TRUE(ending.core.is_over());
}

TEST(HostCore, AHostThatHasNeverJoinedIsGivenUp_HO5) {
  Story host;
  for (int attempt = 1; attempt < kFirstAttempts; ++attempt) {
    EXPECT_EQ(host.after(kPauseMax), Lines{"connect"}) << attempt;
    EXPECT_EQ(host.loses("refused").front(), "disconnect");
    EXPECT_FALSE(host.core.is_over()) << attempt;
  }
  host.after(kPauseMax);
  EXPECT_EQ(host.loses("refused"), (Lines{"disconnect", "say refused; it is left out"}));
  EXPECT_TRUE(host.core.was_given_up());
  EXPECT_EQ(host.after(kPauseMax), Lines{});
}

TEST(HostCore, AHostThatHasJoinedIsTriedAgainAndAgain_HO5) {
  Story host;
  host.runs();
  EXPECT_EQ(host.loses("Broken pipe"),
            (Lines{"disconnect", "say the connection is lost (Broken pipe); attempt 2 in 1 s"}));
  const int many = 50;
  for (int attempt = 3; attempt < many; ++attempt) {
    EXPECT_EQ(host.after(kPauseMax), Lines{"connect"});
    host.loses("no route");
  }
  EXPECT_EQ(host.after(kPauseMax - std::chrono::nanoseconds(1)), Lines{});
  EXPECT_EQ(host.after(std::chrono::nanoseconds(1)), Lines{"connect"});
  host.hears("found x");
  EXPECT_EQ(host.hears("taken-over 7"), Lines{"say its agent still runs, pid 7"});
  host.core.joined();
  host.now = host.now + kWellAfter;
  EXPECT_EQ(host.loses("gone").back(), "say the connection is lost (gone); attempt 2 in 1 s")
      << "it was well in between";
}

TEST(HostCore, AnAgentThatFailsIsStartedAgain) {
  Story host;
  host.runs();
  EXPECT_EQ(host.hears("ended 1 error[failed]: node a is up already"),
            (Lines{"disconnect",
                   "say its agent ended with 1 (error[failed]: node a is up already); attempt 2 in "
                   "1 s"}));
  EXPECT_EQ(host.loses("exited"), Lines{}) << "the end of that connection is known";
}

TEST(HostCore, AHintSaysOnceThatTheNodeDoesNotCome) {
  Story host;
  host.after({});
  host.hears("found x");
  host.hears("running 7");
  EXPECT_EQ(host.after(kJoinsWithin - std::chrono::nanoseconds(1)), Lines{});
  const Lines hint = host.after(std::chrono::nanoseconds(1));
  ASSERT_EQ(hint.size(), 1);
  EXPECT_NE(hint.front().find("can it reach 10.0.0.1:7420"), std::string::npos) << hint.front();
  EXPECT_EQ(host.after(kJoinsWithin), Lines{});
}

TEST(HostCore, AfterTheEndNothingIsStarted_HO6) {
  Story waiting;
  waiting.after({});
  waiting.loses("refused");
  EXPECT_EQ(Story::words(waiting.core.told_to_end(false, waiting.now)), Lines{"disconnect"});
  EXPECT_TRUE(waiting.core.is_over());
  EXPECT_FALSE(waiting.core.was_given_up());
  EXPECT_EQ(waiting.after(kPauseMax), Lines{});

  Story running;
  running.runs();
  EXPECT_EQ(Story::words(running.core.told_to_end(false, running.now)), Lines{"send end"});
  EXPECT_EQ(running.hears("ended 143 ").front(), "disconnect");
  EXPECT_TRUE(running.core.is_over());
  EXPECT_EQ(Story::words(running.core.told_to_end(true, running.now)), Lines{});
}

TEST(HostCore, ASecondNameOfAMachineIsLeftOut) {
  Story host;
  host.after({});
  host.hears("machine m");
  EXPECT_EQ(
      Story::words(host.core.is_same_machine_as("gpu-1")),
      (Lines{"disconnect",
             "say it is the machine of gpu-1, which one agent offers whole; it is left out"}));
}

}  // namespace
}  // namespace tandem::launch
