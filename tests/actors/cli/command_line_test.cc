// Words of a command line become a verb with the options that every verb takes; mistakes are
// answered with the nearest right word.
#include "actors/cli/command_line.h"

#include <gtest/gtest.h>

#include "actors/cli/verbs.h"
#include "tests/actors/cli/parsing.h"

namespace tandem::cli {
namespace {

std::string verb_of_line(const std::vector<std::string>& words) {
  const auto invocation = parse(words, client_verbs);
  EXPECT_TRUE(invocation) << render(invocation.error());
  return invocation ? invocation->verb.help.name : "";
}

TEST(CommandLine, GlobalOptionsMayComeBeforeAndAfter) {
  for (const auto& words : {std::vector<std::string>{"--address", "h:1", "-v", "get", "jobs"},
                            {"get", "jobs", "--address", "h:1", "-v"}}) {
    const auto invocation = parse(words, client_verbs);
    ASSERT_TRUE(invocation) << render(invocation.error());
    EXPECT_EQ(invocation->verb.help.name, "get");
    EXPECT_EQ(invocation->address, "h:1");
    EXPECT_TRUE(invocation->verbose);
  }
}

TEST(CommandLine, AKindAloneListsItsObjects) {
  EXPECT_EQ(verb_of_line({"jobs"}), "get");
  EXPECT_EQ(verb_of_line({"actors", "-o", "wide"}), "get");
  EXPECT_EQ(verb_of_line({"--address", "h:1", "runs", "arith-1"}), "get");
  EXPECT_EQ(verb_of_line({"events"}), "events") << "a command of its own";
}

TEST(CommandLine, TheVersionIsAFlagAsWell) {
  EXPECT_EQ(verb_of_line({"--version"}), "version");
  EXPECT_EQ(verb_of_line({"get", "jobs", "--version"}), "version");
}

TEST(CommandLine, SaysWhatAMistakeWasMeantToBe) {
  const auto check = [](const std::vector<std::string>& words, const std::string& message,
                        const std::string& help) {
    expect_refused(words, client_verbs, message, help);
  };
  check({"gett"}, "unknown command `gett`", "`get`");
  check({"simulate", "run"}, "`tandem simulate` is not in this version", "--help");
  check({"zzzzzz"}, "unknown command", "--help");
  check({"get", "actos"}, "unknown kind `actos`", "`actors`");
  check({"get", "jobs", "--wach"}, "unknown option `--wach`", "`--watch`");
  check({"get", "jobs", "a", "b"}, "At Most 2", "tandem get --help");
  check({"get"}, "required", "tandem get --help");
  check({"get", "jobs", "-o", "xml"}, "xml", "tandem get --help");
  check({"--nothing"}, "unknown option `--nothing`", "--help");
  check({"describe", "jobs"}, "`describe` needs a name", "KIND/NAME");
  check({"scale", "a", "Rollout=2"}, "unknown role `Rollout`", "`rollout`");
  check({"scale", "a", "counter=1025"}, "a role has 0 to 1024 actors", "");
  check({"scale", "a", "rollout"}, "not ROLE=N", "rollout=2");
  check({"scale", "a"}, "nothing to scale is named", "rollout=2");
  check({"scale", "a", "rollout=2", "--rollback"}, "are both given", "choose one");
  check({"scale", "a", "rollout=Auto"}, "not ROLE=N", "rollout=2");
  check({"scale", "a", "rollout=-1"}, "not ROLE=N", "rollout=2");
  for (const char* count : {"rollout=0", "rollout=4097", "rollout=99999999999999999999"})
    check({"scale", "a", count}, "1 to 4096 actors", "tandem cancel");
  check({"wait", "a", "--for", "Runing"}, "unknown state", "`Running`");
  check({"wait", "a", "--for", "Running", "--timeout", "soon"}, "not a time", "90s");
  check({"delete", "job/a-1"}, "removes runs alone", "tandem cancel");
  check({"delete", "runs"}, "removes runs alone", "run/ID");
  check({"logs", "a-1", "--since", "soon"}, "`--since soon` is not a time", "5m");
  check({"logs", "a-1", "--tail", "-1"}, "", "tandem logs --help");
  check({"submit"}, "JOB.yaml is required", "--resume RUN_DIR");
  check({"completion", "tcsh"}, "tcsh", "tandem completion --help");
}

}  // namespace
}  // namespace tandem::cli
