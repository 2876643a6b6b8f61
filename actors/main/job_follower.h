// Submits one job over HTTP and follows it, on a thread of its own: whoever wants to know of the
// job is free to hear signals while the controller is away, reads data or does not answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/cli/client.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/json.h"

namespace tandem::app {

class JobFollower {
 public:
  struct Submission {
    std::string path, yaml;  // of the request
  };
  struct Seen {
    nlohmann::json job;                 // as the API shows it; null until it is accepted
    bool over = false;                  // it has ended
    std::optional<Error> failure = {};  // why it is not followed any more
  };

  // Begins at once. The job is the only one that the controller has or gets: one that dies before
  // it has answered may have accepted the job, which the next controller then has. `may_come_back`
  // is asked, on the follower's thread, while no controller answers; false ends the following with
  // an error. `console` outlives the object.
  JobFollower(const cli::ApiAddress& controller, Submission submission,
              std::function<bool()> may_come_back, const cli::Console& console);
  // Returns within a second, or when the request that is under way has its answer.
  ~JobFollower();

  Seen seen() const;
  void cancel();  // the job is asked to end, as soon as it is accepted and the controller answers
  void stop();    // it is not followed any more

 private:
  class Follow;  // the actor
  struct State;
  std::shared_ptr<State> state_;
  actor::ThreadedExecutor executor_;
  actor::System system_;
};

}  // namespace tandem::app
