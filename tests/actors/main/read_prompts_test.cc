#include "actors/main/read_prompts.h"

#include <gtest/gtest.h>

#include "actors/main/job_shape.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::app {
namespace {

class KeptPrompts : public testing::Test {
 protected:
  KeptPrompts() { job_.data.val_files.clear(); }
  controller::JobShape kept() {
    controller::JobShape shape = job_shape(job_);
    auto read = read_prompts(job_);
    EXPECT_TRUE(read) << render(read.error());
    prompts_.keep(*std::move(read), shape);
    return shape;
  }

  const job::JobFolder folder_;
  job::JobSpec job_ = folder_.full();
  ReadPrompts prompts_;
};

TEST_F(KeptPrompts, AreTakenOnceByTheJobThatTheyWereReadFor) {
  const controller::JobShape shape = kept();
  EXPECT_FALSE(prompts_.take(job_shape(job_))) << "another job with the same text";
  const controller::JobShape copy = shape;
  const auto taken = prompts_.take(copy);
  ASSERT_TRUE(taken);
  EXPECT_GT(taken->training.records.size(), 0u);
  EXPECT_FALSE(prompts_.take(shape));
}

TEST_F(KeptPrompts, OfOneJobAloneAreHeld) {
  const controller::JobShape first = kept(), second = kept();
  EXPECT_FALSE(prompts_.take(first));
  EXPECT_TRUE(prompts_.take(second));
}

TEST_F(KeptPrompts, EndWithTheJob) {
  controller::JobShape shape = kept();
  const std::weak_ptr<const job::JobSpec> job = shape.spec;
  shape.spec.reset();
  EXPECT_TRUE(job.expired());
  EXPECT_FALSE(prompts_.take(shape));
}

}  // namespace
}  // namespace tandem::app
