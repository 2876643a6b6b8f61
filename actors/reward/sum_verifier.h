// The reward of several verifiers: each scores the completion, and the sum of what they pay is the
// reward. Also the reward of one verifier whose score is scaled, or that is for some data sources
// alone.
//
//   reward = paid(sum of the paid(score) of the parts that are for the record's data source)
//
// with paid() of payment.h; the outer one has numbers of its own. A part without sources is for
// every record. A record that no part is for is a failure, and so is the whole where a part has
// failed: a sum without one of its parts would be another reward.
//
// The sum's `extra` has a number for each part under its name, clip(scale * score + bias), and the
// members of the part's own `extra` under "name.member"; one that does not fit is left out. Of a
// single part without a name, `extra` is the part's own, with `raw`, its score. The completion
// votes for the answer of the part with the greatest weight that has found one, whose `pred` is
// kept.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/reward/payment.h"
#include "actors/reward/verifier.h"

namespace tandem::reward {

struct RewardPart {
  std::string name;  // empty: the only part, of a job that names none
  std::vector<std::string> sources;
  Payment payment;
};

// The reward of the parts that `scores` has a score for, one for each part. Pure.
messages::TrajectoryScore sum_of(
    const std::vector<RewardPart>& parts, const Payment& whole,
    const std::vector<std::optional<messages::TrajectoryScore>>& scores);

class SumVerifier final : public Verifier {
 public:
  // A verifier for each part, in the same order.
  SumVerifier(std::vector<RewardPart> parts, Payment whole,
              std::vector<std::unique_ptr<Verifier>> verifiers);

  void score(actor::Context& cx, ScoreItem item, Done done) override;
  std::optional<std::string> found(const ScoreItem& item) const override;
  void report_to(Told told) override;

 private:
  bool is_for(const RewardPart& part, const ScoreItem& item) const;

  const std::vector<RewardPart> parts_;
  const Payment whole_;
  const std::vector<std::unique_ptr<Verifier>> verifiers_;
};

}  // namespace tandem::reward
