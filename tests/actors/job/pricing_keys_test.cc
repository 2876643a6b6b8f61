// The section `pricing` of a job.
//
// Tests actors/job/job_keys.cc, actors/job/job_rules.h.
#include <gtest/gtest.h>

#include "actors/job/load_job.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

TEST(PricingKeys, PricesAreOfBothPoolsOrOfNone) {
  const JobFolder folder;
  const auto with = [&](const std::string& pricing) {
    return folder.parse(folder.minimal() + "pricing: " + pricing + "\n");
  };
  EXPECT_FALSE(folder.parse(folder.minimal())->spec.pricing);
  const auto priced = with("{ rollout: 2.10, learner: 4, currency: credits }");
  ASSERT_TRUE(priced) << render(priced.error());
  EXPECT_EQ(priced->spec.pricing,
            (scheduler::Pricing{.rollout = 2.1, .learner = 4, .currency = "credits"}));
  EXPECT_EQ(with("{ rollout: 0, learner: 0 }")->spec.pricing, scheduler::Pricing{});
  EXPECT_HAS(refused(with("{ rollout: -1, learner: 4 }")).message,
             "`pricing.rollout` is out of range: -1");
  EXPECT_HAS(refused(with("{ rollout: 1, learner: .nan }")).message,
             "`pricing.learner` is out of range");
  EXPECT_HAS(refused(with("{ rollout: 1, learner: 2e6 }")).message,
             "`pricing.learner` is out of range");
  EXPECT_HAS(refused(with("{ rollout: 1 }")).message, "`pricing.learner` is missing");
  EXPECT_HAS(refused(with("{ rollout: 1, learner: 1, reward: 1 }")).message,
             "unknown key `pricing.reward`");
  const Refused currency = refused(with("{ rollout: 1, learner: 1, currency: US$ }"));
  EXPECT_HAS(currency.message, "`US$` is no currency");
  EXPECT_HAS(currency.help, "at most 16 letters");
}

}  // namespace
}  // namespace tandem::job
