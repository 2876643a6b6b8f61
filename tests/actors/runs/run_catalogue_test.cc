#include "actors/runs/run_catalogue.h"

#include <algorithm>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

class RunCatalogueTest : public testing::Test {
 protected:
  // The job files of these tests hold a name and a number of steps.
  static std::optional<JobFacts> read_job(const std::string& yaml, const fs::path&) {
    const std::size_t space = yaml.find(' ');
    if (space == std::string::npos) return std::nullopt;
    return JobFacts{yaml.substr(0, space), std::stoll(yaml.substr(space + 1))};
  }
  FileLock lock(const std::string& id) const {
    return FileLock::take(folder_.run(id) / "run.lock", "it", "").value();
  }
  nlohmann::json shown(const std::string& id) {
    return run_json(catalogue_.find(id).value(), 1'000'000'000'000'000);
  }

  const RunFolder folder_;
  RunCatalogue catalogue_{folder_.home, {read_job, [](const std::string& yaml, const fs::path&) {
                                           return Result<JobKeys>(JobKeys{{"name", yaml}});
                                         }}};
};

TEST_F(RunCatalogueTest, ARunIsWhatItsFilesSay) {
  folder_.append(folder_.run("sums-1") / "job.yaml", "sums 100");
  folder_.append(folder_.run("sums-1") / "journal.sqlite", "");
  folder_.append(folder_.run("sums-1") / "metrics.jsonl",
                 "{\"step\":6}\n{\"step\":7,\"critic/rewards/mean\":0.25,"
                 "\"tandem/trainer_idle_fraction\":0.125}\n"
                 "{\"eval\":\"periodic\",\"step\":5,\"val/reward/mean\":1}\n{\"step\":8,\"cri");
  nlohmann::json run = shown("sums-1");
  EXPECT_EQ(run["state"], "Interrupted");
  EXPECT_EQ(run["step"], 7);
  EXPECT_EQ(run["total_steps"], 100);
  EXPECT_EQ(run["reward_mean"], 0.25);
  EXPECT_EQ(run["trainer_idle_fraction"], 0.125) << "up to the newest step";
  EXPECT_TRUE(run["staleness"].is_null());
  EXPECT_TRUE(run["eval_final"].is_null());
  EXPECT_TRUE(run["ended"].is_number());
  EXPECT_TRUE(run["started"].is_number());
  EXPECT_EQ(run["live"], false);
  EXPECT_NE(run["message"].get<std::string>().find("--resume"), std::string::npos);
  {
    const FileLock held = lock("sums-1");
    run = shown("sums-1");
    EXPECT_EQ(run["state"], "Running");
    EXPECT_EQ(run["live"], true);
    EXPECT_TRUE(run["ended"].is_null());
  }
  folder_.append(folder_.run("sums-1") / "result.json",
                 R"({"state":"Failed","steps":9,"policy_version":9,"reward_mean":0.5,
                     "eval":{"final":0.75},"wall_seconds":12.5,
                     "staleness":{"bound":2,"max":1,"mean":0.5},"trainer_idle_fraction":0.25,
                     "rollout_idle_fraction":0.5})");
  run = shown("sums-1");
  EXPECT_EQ(run["state"], "Failed");
  EXPECT_EQ(run["step"], 9);
  EXPECT_EQ(run["policy_version"], 9);
  EXPECT_EQ(run["reward_mean"], 0.5);
  EXPECT_EQ(run["eval_final"], 0.75);
  EXPECT_EQ(run["wall_seconds"], 12.5);
  EXPECT_EQ(run["staleness"]["max"], 1);
  EXPECT_EQ(run["trainer_idle_fraction"], 0.25);
  EXPECT_EQ(run["rollout_idle_fraction"], 0.5);
  EXPECT_EQ(run["trains"], true);
  for (const char* const key : {"id", "name", "reason", "created", "age_s", "run_dir"})
    EXPECT_TRUE(run.contains(key)) << key;
}

TEST_F(RunCatalogueTest, ARunThatNeverStartedIsNotOfferedForAResume) {
  folder_.run("queued-1");  // its cluster went down before there was room
  const nlohmann::json run = shown("queued-1");
  EXPECT_EQ(run["state"], "Interrupted");
  EXPECT_TRUE(run["started"].is_null());
  const std::string message = run["message"];
  EXPECT_EQ(message.find("--resume"), std::string::npos) << message;
}

// This holds for a run with a result and for one that was killed: the words are those of the newest
// job, the figures those of the run.
TEST_F(RunCatalogueTest, ARunWhoseResumeLedToNothingSaysSoAndStandsWhereItStood) {
  const std::string outcome =
      R"({"state":"Cancelled","reason":"CancelledByUser","message":"cancelled by the user"})";
  folder_.append(folder_.run("sums-1") / "result.json",
                 R"({"state":"Failed","reason":"JobFailed","message":"no disk","steps":9,
                     "reward_mean":0.5})");
  folder_.append(folder_.run("sums-2") / "journal.sqlite", "");
  folder_.append(folder_.run("sums-2") / "metrics.jsonl", "{\"step\":9}\n");
  for (const std::string id : {"sums-1", "sums-2"}) {
    folder_.append(folder_.run(id) / "resume.json", outcome);
    nlohmann::json run = shown(id);
    EXPECT_EQ(run["state"], "Cancelled") << id;
    EXPECT_EQ(run["reason"], "CancelledByUser") << id;
    EXPECT_EQ(run["message"],
              "cancelled by the user; the run was not resumed and stands at step "
              "9; tandem run --resume " +
                  folder_.run(id).string() + " takes it up");
    EXPECT_EQ(run["step"], 9) << id;
    EXPECT_TRUE(run["ended"].is_number()) << id;
    EXPECT_EQ(steps_in(folder_.run(id)), 9) << id;
    const FileLock held = lock(id);
    run = shown(id);
    EXPECT_EQ(run["state"], "Running") << "it is being resumed again";
  }
  EXPECT_EQ(shown("sums-1")["reward_mean"], 0.5);
}

TEST_F(RunCatalogueTest, OnlyFoldersAreRunsAndNamesMustBeUnique) {
  for (const char* const id : {"sums-1", "sums-2", "words-1"}) folder_.run(id);
  folder_.append(folder_.home / "runs" / "note", "");
  fs::create_symlink(folder_.home, folder_.home / "runs" / "link-1");
  folder_.run(".deleted");
  EXPECT_EQ(catalogue_.list().size(), 3U);
  EXPECT_EQ(catalogue_.count(), 3U);
  EXPECT_EQ(catalogue_.find("words")->id, "words-1");  // no job file: the id without its number
  EXPECT_EQ(catalogue_.find("sums").error().code, ErrorCode::kInvalid);
  for (const char* const none : {"other", "link-1", "..", ".", "", "sums-1/logs", ".deleted"})
    EXPECT_EQ(catalogue_.find(none).error().code, ErrorCode::kNotFound) << none;
}

TEST_F(RunCatalogueTest, DamagedFilesDoNotHideARun) {
  const fs::path run = folder_.run("sums-1");
  folder_.append(run / "job.yaml", "\xff\xfe");
  folder_.append(run / "result.json", "{\"state\": \"Succ");
  folder_.append(run / "metrics.jsonl", "\xff\x80\n\n\n");
  nlohmann::json shown_run = shown("sums-1");
  EXPECT_EQ(shown_run["name"], "sums");
  EXPECT_EQ(shown_run["state"], "Interrupted");
  EXPECT_EQ(shown_run["step"], 0);
  folder_.replace(run / "result.json", R"({"state":7,"steps":"many","eval":[1]})");
  shown_run = shown("sums-1");
  EXPECT_EQ(shown_run["state"], "Interrupted");
  EXPECT_TRUE(shown_run["eval_final"].is_null());
}

TEST_F(RunCatalogueTest, ARunThatLivesIsNotDeleted) {  // RC-1
  const FileLock held = lock("sums-1");
  const auto refused = catalogue_.remove("sums-1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_NE(refused.error().help.find("cancel"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_.run("sums-1")));
}

TEST_F(RunCatalogueTest, ADeletedRunIsWhollyGoneAndItsNumberIsNotGivenAgain) {  // RC-2
  const fs::path runs = folder_.home / "runs";
  folder_.append(folder_.run("sums-1") / "logs/rollout.0.1.log", "text\n");
  folder_.append(folder_.run("sums-2") / "job.yaml", "sums 5");
  // A controller that was killed while it deleted left this.
  fs::create_directories(runs / ".deleted/words-4/logs");
  ASSERT_TRUE(catalogue_.remove("sums-1"));
  EXPECT_FALSE(fs::exists(runs / "sums-1"));
  EXPECT_TRUE(was_deleted(runs, "sums-1"));
  EXPECT_FALSE(was_deleted(runs, "sums-2"));
  EXPECT_TRUE(fs::is_empty(runs / ".deleted/sums-1"));
  EXPECT_TRUE(fs::is_empty(runs / ".deleted/words-4"));
  EXPECT_EQ(catalogue_.remove("sums-1").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(catalogue_.remove("../runs/sums-2").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(catalogue_.remove(".deleted").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(catalogue_.list().size(), 1U);
}

}  // namespace
}  // namespace tandem::runs
