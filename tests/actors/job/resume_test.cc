#include "actors/job/resume.h"

#include <gtest/gtest.h>

#include <functional>

#include "actors/job/print_job.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

namespace fs = std::filesystem;

// runs/tiny-1 has begun, has its own job.yaml and checkpoints; runs/tiny-2 has not.
class Resume : public testing::Test {
 protected:
  Resume() {
    folder.write("runs/tiny-1/journal.sqlite", "");
    folder.write("runs/tiny-1/job.yaml", print_job(folder.full()));
    for (const char* name : {"step-9", "step-40", "step-x", ".step-50"})
      folder.write("runs/tiny-1/checkpoints/" + std::string(name) + "/config.json", "{}");
    folder.write("runs/tiny-2/job.yaml", "");
  }
  JobFolder folder;
  const fs::path runs = folder.root() / "runs";
  const fs::path run = fs::canonical(folder.root()) / "runs/tiny-1";
};

TEST_F(Resume, IsFoundByItsFolderOrItsId) {
  for (const fs::path& named : {run, runs / "../runs/tiny-1", fs::path("tiny-1")}) {
    const auto found = find_run(named, runs);
    ASSERT_TRUE(found) << render(found.error());
    EXPECT_EQ(*found, run);
  }
  for (const char* none : {"tiny-2", "tiny-3", "/nowhere"}) {
    const auto found = find_run(none, runs);
    ASSERT_FALSE(found) << none;
    EXPECT_EQ(exit_code(found.error().code), 1);
    EXPECT_EQ(found.error().where, none);
  }
}

TEST_F(Resume, ARunOfActorsAloneIsFoundByItsJobFile) {
  const std::string yaml = "name: demo\nactors:\n  counter: { command: [/bin/true] }\n";
  folder.write("runs/demo-1/job.yaml", yaml);
  const auto found = find_run("demo-1", runs);
  ASSERT_TRUE(found) << render(found.error());
  EXPECT_NE(resume_hint("submit", *found), "");
  const auto job = load_job_of({}, *found, {});
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_TRUE(check_resumable(job->spec, *found));
  // Neither kind goes on as the other.
  EXPECT_EQ(exit_code(check_resumable(folder.full(), *found).error().code), 64);
  EXPECT_EQ(exit_code(check_resumable(job->spec, run).error().code), 64);
}

TEST_F(Resume, ItsNewestCheckpointIsTheGreatestCompleteOne) {
  EXPECT_EQ(newest_checkpoint(run), 40);
  EXPECT_EQ(newest_checkpoint(runs / "tiny-2"), std::nullopt);
}

TEST_F(Resume, ItsOwnJobFileIsTakenWhereNoOtherIsGiven) {
  const auto own = load_job_of({}, run, {"rollout.n=3"});
  ASSERT_TRUE(own) << render(own.error());
  EXPECT_EQ(own->spec.rollout.n, 3);
  EXPECT_EQ(own->spec.data.train_files, folder.full().data.train_files);
  folder.write("other.yaml", "seed: 5\n" + folder.minimal());
  const auto other = load_job_of(folder.root() / "other.yaml", run, {});
  ASSERT_TRUE(other) << render(other.error());
  EXPECT_EQ(other->spec.seed, 5);
  EXPECT_EQ(load_job_of({}, {}, {}).error().code, ErrorCode::kInvalid);
}

TEST_F(Resume, AJobThatEndsBeforeItsCheckpointIsRefusedWithBothNumbers) {
  JobSpec job = folder.full();
  for (const std::int64_t steps : {40, 41, 1000}) {
    job.learner.total_training_steps = steps;
    EXPECT_TRUE(check_resumable(job, run)) << steps;
  }
  job.learner.total_training_steps = 39;
  const auto refused = check_resumable(job, run);
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code(refused.error().code), 64);
  EXPECT_NE(refused.error().message.find("step 40"), std::string::npos);
  EXPECT_NE(refused.error().message.find("step 39"), std::string::npos);
  job = folder.full();
  job.learner.resume_mode = ResumeMode::kDisable;
  EXPECT_EQ(exit_code(check_resumable(job, run).error().code), 64);
}

TEST_F(Resume, AResumeNamesTheKeysThatHaveAnotherValue) {
  const JobSpec before = folder.full();
  EXPECT_TRUE(changes_of_resume(before, before).empty());
  JobSpec now = before;
  now.learner.total_training_steps += 5;
  const auto longer = changes_of_resume(before, now);
  ASSERT_EQ(longer.size(), 1u) << "the order of prompts is the same";
  EXPECT_NE(longer[0].find("`learner.total_training_steps` " +
                           std::to_string(before.learner.total_training_steps) + " → " +
                           std::to_string(now.learner.total_training_steps)),
            std::string::npos)
      << longer[0];
  now.data.filter_overlong_prompts = !before.data.filter_overlong_prompts;
  now.data.shuffle = !before.data.shuffle;
  const auto shifted = changes_of_resume(before, now);
  ASSERT_EQ(shifted.size(), 2u);
  EXPECT_NE(shifted[1].find("`data.shuffle`, `data.filter_overlong_prompts`"), std::string::npos)
      << shifted[1];
  // The filter of long prompts counts the tokens of what other keys make of a record.
  const auto shifts = [&](const std::function<void(DataSpec&)>& change, bool filter) {
    JobSpec first = before;
    first.data.filter_overlong_prompts = filter;
    JobSpec second = first;
    change(second.data);
    return changes_of_resume(first, second).size() == 2;
  };
  for (const bool filter : {false, true}) {
    EXPECT_TRUE(shifts([](DataSpec& data) { data.max_samples = 7; }, filter));
    EXPECT_TRUE(shifts([](DataSpec& data) { data.mixture = {{"a", 1}}; }, filter));
    EXPECT_EQ(shifts([](DataSpec& data) { data.prompt_is = PromptIs::kChat; }, filter), filter);
    EXPECT_EQ(shifts([](DataSpec& data) { data.system_prompt = "x"; }, filter), filter);
    EXPECT_EQ(shifts([](DataSpec& data) { data.max_prompt_length = 7; }, filter), filter);
    EXPECT_FALSE(shifts([](DataSpec& data) { data.data_source_key = "x"; }, filter));
    EXPECT_FALSE(shifts([](DataSpec& data) { data.truncation = Truncation::kLeft; }, filter));
  }
  now = before;
  now.warm_start.reset();
  const auto without = changes_of_resume(before, now);
  ASSERT_EQ(without.size(), 1u);
  EXPECT_NE(without[0].find(" → absent"), std::string::npos) << without[0];
}

TEST_F(Resume, ManyChangedKeysAreCountedPastTheTenth) {
  const JobSpec before = folder.full();
  JobSpec now = before;
  now.warm_start.reset();
  now.rollout.n += 1;
  now.seed += 1;
  now.name += "x";
  std::size_t changed = 0;
  for (const PrintedKey& key : printed_keys(before))
    changed += key.path.starts_with("warm_start.") ? 1 : 0;
  changed += 3;
  ASSERT_GT(changed, 10u);
  EXPECT_NE(changes_of_resume(before, now)[0].find("and " + std::to_string(changed - 10) + " more"),
            std::string::npos);
}

TEST_F(Resume, TheHintIsACommandThatAShellUnderstands) {
  EXPECT_EQ(resume_command("run", "/a/b-1"), "tandem run --resume /a/b-1");
  EXPECT_EQ(resume_command("submit", "/a b/it's"), "tandem submit --resume '/a b/it'\\''s'");
  EXPECT_EQ(resume_hint("run", run), "resume with: " + resume_command("run", run) + "\n");
  EXPECT_EQ(resume_hint("run", runs / "tiny-2"), "") << "it never began";
}

}  // namespace
}  // namespace tandem::job
