// A user's reward program with a bug: its words, and the places where the user finds them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Scores so many completions, all its processes together, then meets its bug at each.
constexpr const char* kBuggy = R"(import json, os, sys
good, count = int(sys.argv[1]), sys.argv[2]
for line in sys.stdin:
    item = json.loads(line)
    with open(count, "a") as scored:
        scored.write("x")
    if os.path.getsize(count) > good:
        item["anwser"]
    print(json.dumps({"id": item["id"], "score": 1}), flush=True)
)";

// Answers every completion with a number that is none.
constexpr const char* kNaN = R"(import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "score": float("nan")}), flush=True)
)";

// Scores one completion, and refuses all others, slowly enough for a test to look at the job.
constexpr const char* kRefuses = R"(import json, sys, time
for number, line in enumerate(sys.stdin):
    answer = {"id": json.loads(line)["id"]}
    answer |= {"error": "the judge is away"} if number else {"score": True}
    print(json.dumps(answer), flush=True)
    time.sleep(0.02)
)";

Words rewarded_by(const Home& home, const std::string& script, int good) {
  const fs::path file = home.path() / "buggy.py";
  std::ofstream(file) << script;
  const json command{"python3", file, std::to_string(good), home.path() / "count"};
  return sets({"reward.type=command", "reward.pattern=null", "reward.command=" + command.dump(),
               "reward.timeout_s=600", "data.val_files=[]", "warm_start=null"});
}

TEST(Reward, ABugIsFoundByWhyAlone) {
  const Home home;
  home.up();
  const Finished submitted =
      home.run(Words{"submit"} + small_job(kForever) + rewarded_by(home, kBuggy, 5));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  std::string why;
  ASSERT_TRUE(eventually([&] {
    why = home.run({"why", std::string(kSmallId) + "/reward/0"}).out;
    return why.find("KeyError: 'anwser'") != std::string::npos;
  })) << why;
  for (const char* part : {"exited with code 1", "item[\"anwser\"]", "/logs/reward.0."})
    EXPECT_NE(why.find(part), std::string::npos) << part << "\n" << why;
  why = home.run({"why", kSmallId}).out;
  EXPECT_NE(why.find("KeyError: 'anwser'"), std::string::npos) << why;
  EXPECT_NE(home.run({"events"}).out.find("KeyError: 'anwser'"), std::string::npos);
  EXPECT_EQ(home.run({"cancel", kSmallId}).code, 0);
  home.down();
}

TEST(Reward, TheFinalErrorHoldsTheProgramsLastWordsAndItsLog) {
  const Home home;
  const Finished done = home.run(Words{"run"} + small_job(kForever) + rewarded_by(home, kBuggy, 0));
  EXPECT_EQ(done.code, 1) << done.text();
  for (const char* part : {"never answered", "KeyError: 'anwser'", "/logs/reward.0."})
    EXPECT_NE(done.err.find(part), std::string::npos) << part << "\n" << done.err;
}

TEST(Reward, NaNIsNamedAndEndsTheJobSoon) {
  const Home home;
  const Finished done = home.run(Words{"run"} + small_job(kForever) + rewarded_by(home, kNaN, 0));
  EXPECT_EQ(done.code, 1) << done.text();
  for (const char* part : {"the reward has never worked", "score is NaN; a score must be a finite"})
    EXPECT_NE(done.err.find(part), std::string::npos) << part << "\n" << done.err;
  const json ledger = home.result_of(kSmallId)["ledger"];
  EXPECT_EQ(ledger["trained"], 0);
  EXPECT_LT(ledger["discarded"]["reward_failed"], 4 * kGroupsPerStep);
}

TEST(Reward, WhileEverythingFailsTheJobSaysSoInPlaceOfTraining) {
  const Home home;
  home.up();
  ASSERT_EQ(home.run(Words{"submit"} + small_job(kForever) + rewarded_by(home, kRefuses, 0)).code,
            0);
  json job;
  ASSERT_TRUE(eventually([&] {
    job = home.json({"get", "jobs", kSmallId});
    return job["message"].get<std::string>().starts_with("no completion is scored, the last ");
  })) << job.dump();
  EXPECT_EQ(job["reason"], "RewardFails");
  EXPECT_NE(job["message"].get<std::string>().find("the judge is away"), std::string::npos) << job;
  EXPECT_EQ(job["state"], "Running");
  EXPECT_NE(home.run({"get", "jobs"}).out.find("RewardFails"), std::string::npos);
  EXPECT_EQ(home.run({"cancel", kSmallId}).code, 0);
  home.down();
}

// A Python function and an expression are paid by their weights, each is a metric, and `tandem
// score` pays the samples again as they were paid.
TEST(Reward, TwoRewardsAreSummedAndSeen) {
  const Home home;
  const fs::path file = home.path() / "mine.py";
  std::ofstream(file) << "def score(completion, answer):\n"
                         "    print('not for the protocol')\n"
                         "    return {'score': completion.startswith('0'), 'length': 3}\n";
  home.train(kSmallId, small_job(1, {"data.val_files=[]",
                                     "reward=[{name: any, type: regex, pattern: '', "
                                     "weight: 0.5}, {name: mine, type: python, "
                                     "function: '" +
                                         file.string() + ":score', scale: 2}]"}));
  const fs::path run = home.run_dir(kSmallId);
  std::ifstream metrics(run / "metrics.jsonl");
  json step;
  for (std::string line; std::getline(metrics, line);)
    if (json read = parse_json(line); read.contains("critic/rewards/extra/any/mean")) step = read;
  EXPECT_EQ(step["critic/rewards/extra/any/mean"], 1.0) << step;
  EXPECT_EQ(step["critic/rewards/extra/mine.length/mean"], 3.0) << step;
  EXPECT_NEAR(step["critic/rewards/mean"].get<double>(),
              0.5 + step["critic/rewards/extra/mine/mean"].get<double>(), 1e-6);

  const fs::path samples = run / "samples.jsonl";
  const Finished done =
      home.run({"score", (run / "job.yaml").string(), samples.string(), "-o", "jsonl"});
  EXPECT_EQ(done.code, 0) << done.text();
  std::ifstream before(samples);
  std::istringstream after(done.out);
  std::size_t compared = 0;
  for (std::string was, is; std::getline(before, was) && std::getline(after, is); ++compared) {
    EXPECT_EQ(parse_json(was)["reward"], parse_json(is)["reward"]) << was;
    EXPECT_EQ(parse_json(was)["extra"], parse_json(is)["extra"]) << was;
  }
  EXPECT_GT(compared, 0u) << done.text();
}

TEST(Reward, AnEvaluationInWhichEverythingFailsHasNoMean) {
  const Home home;
  home.train(kSmallId, small_job(1, {"data.val_files=[]"}));
  const Finished done = home.run(
      Words{"eval", (home.run_dir(kSmallId) / "checkpoints/step-1").string(),
            "configs/arithmetic.yaml", "-o", "json"} +
      sets({"reward.type=command", "reward.pattern=null", "reward.retries=0",
            R"y(reward.command=[python3, -c, "import json, sys\nfor l in sys.stdin:)y"
            R"y( print(json.dumps({'id': json.loads(l)['id'], 'error': 'no'}), flush=True)"])y"}));
  EXPECT_EQ(done.code, 1) << done.text();
  EXPECT_NE(done.err.find("the program reported \"no\""), std::string::npos) << done.text();
  const json answer = parse_json(done.out);
  EXPECT_TRUE(answer["mean"].is_null()) << done.out;
  EXPECT_EQ(answer["scored"], 0) << done.out;
  EXPECT_EQ(answer["failed"], answer["prompts"]) << done.out;
}

}  // namespace
}  // namespace tandem::e2e
