// A job's reward at work without a job: its verifier in an actor of its own on one thread, since a
// verifier works within turns of one. It judges completions for `tandem eval` and `tandem score` as
// a reward actor would.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/job_spec.h"
#include "actors/reward/verifier.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/link/io_thread.h"

namespace tandem::app {

// The verifier of the job's reward, in its sandbox where the job asks for one.
Result<std::unique_ptr<reward::Verifier>> verifier_of(const job::JobSpec& job, link::IoThread& io);

struct Judged {
  std::size_t number = 0;  // the place of the item among all that were given, from 0
  messages::TrajectoryScore score;
  std::optional<std::string> found;  // as Verifier::found()
};

// One thread at a time.
class Judging {
 public:
  explicit Judging(std::unique_ptr<reward::Verifier> verifier);
  ~Judging();  // drops the completions under judgement; a program is ended

  // Gives `items` to the verifier, and returns all completions that have been judged and were not
  // returned before. Where there are none it waits for the first, at most for `wait`. An empty
  // answer: none came in time, or none is left. An error is the verifier's own: it has given up.
  Result<std::vector<Judged>> next(std::vector<reward::ScoreItem> items, Duration wait);
  std::size_t open() const { return given_ - returned_; }  // given and not returned

 private:
  struct Room;
  std::unique_ptr<Room> room_;
  std::size_t given_ = 0, returned_ = 0;
};

// The scores of `items`, in their order.
Result<std::vector<messages::TrajectoryScore>> judge_all(std::unique_ptr<reward::Verifier> verifier,
                                                         std::vector<reward::ScoreItem> items);

}  // namespace tandem::app
