#include "actors/main/kept_prompts.h"

#include <gtest/gtest.h>

#include "actors/main/job_shape.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::app {
namespace {

class KeptPromptsTest : public testing::Test {
 protected:
  KeptPromptsTest() { job_.data.val_files.clear(); }
  controller::JobShape kept(bool accepted = true) {
    controller::JobShape shape = job_shape(job_);
    auto read = read_prompts(job_);
    EXPECT_TRUE(read) << render(read.error());
    prompts_.keep(*std::move(read), shape);
    if (accepted) prompts_.accept(shape);
    return shape;
  }

  const job::JobFolder folder_;
  job::JobSpec job_ = folder_.full();
  KeptPrompts prompts_{10 << 20};
};

TEST_F(KeptPromptsTest, AreTakenOnceByTheJobThatTheyWereReadFor) {
  const controller::JobShape shape = kept();
  EXPECT_FALSE(prompts_.take(job_shape(job_))) << "another job with the same text";
  const auto taken = prompts_.take(shape);
  ASSERT_TRUE(taken);
  EXPECT_GT(taken->training.records.size(), 0u);
  EXPECT_FALSE(prompts_.take(shape));
}

TEST_F(KeptPromptsTest, OfTheNewestJobsAreHeld) {
  std::vector<controller::JobShape> shapes;
  for (int i = 0; i < 5; ++i) shapes.push_back(kept());
  shapes[3].spec.reset();
  shapes.push_back(kept());
  // Texts lie in blocks of 4 MiB: two have room in 10.
  std::vector<bool> taken;
  for (const controller::JobShape& shape : shapes)
    taken.push_back(prompts_.take(shape).has_value());
  EXPECT_EQ(taken, (std::vector<bool>{false, false, false, false, true, true}));
  KeptPrompts none(0);
  controller::JobShape shape = job_shape(job_);
  none.keep(*read_prompts(job_), shape);
  none.accept(shape);
  EXPECT_TRUE(none.take(shape)) << "the newest are held whatever their size";
}

TEST_F(KeptPromptsTest, OfAJobThatIsRefusedCostOthersNothing) {
  const controller::JobShape first = kept(), second = kept();
  for (int i = 0; i < 5; ++i) kept(/*accepted=*/false);
  const controller::JobShape refused = kept(/*accepted=*/false);
  EXPECT_TRUE(prompts_.take(first));
  EXPECT_TRUE(prompts_.take(second));
  EXPECT_TRUE(prompts_.take(refused)) << "it is kept as long as its shape";
}

TEST_F(KeptPromptsTest, AreReadByOneAtATime) {
  auto turn = prompts_.turn_to_read();
  EXPECT_TRUE(turn);
  EXPECT_FALSE(prompts_.turn_to_read());
  turn.reset();
  EXPECT_TRUE(prompts_.turn_to_read());
}

TEST_F(KeptPromptsTest, EndWithTheJob) {
  controller::JobShape shape = kept();
  const std::weak_ptr<const job::JobSpec> job = shape.spec;
  shape.spec.reset();
  EXPECT_TRUE(job.expired());
  EXPECT_FALSE(prompts_.take(shape));
}

}  // namespace
}  // namespace tandem::app
