// A job of a user's actors on one thread, in virtual time, from one seed: for tests. The actors run
// as their processes would run them, by the same host, codec and forwarder; only processes and
// links are simulated. A link delays each message by a drawn time and keeps their order. The same
// seed gives the same run.
//
//   tandem::SimulatedJob job(program, 7);
//   job.start("counter/0");
//   const auto counter = job.find<Counter::Inbox>("counter/0");
//   EXPECT_EQ(job.ask(counter, Add{2}).value(), 2);
//   job.kill("counter/0");          // as kill -9: a new incarnation follows after a second
//
// All calls come from one thread, and none from within a handler. Included by users as
// <tandem/testing.h>.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "actors/program/program.h"
#include "runtime/actor/simulated_executor.h"

namespace tandem {

class SimulatedJob {
 public:
  static constexpr Duration kDeadline = std::chrono::seconds(10);
  static constexpr Duration kRestartAfter = std::chrono::seconds(1);
  static constexpr Duration kDelayMax = std::chrono::milliseconds(5);  // per message

  // `program` outlives the job.
  SimulatedJob(const Program& program, std::uint64_t seed, std::string name = "job-1");
  ~SimulatedJob();
  SimulatedJob(const SimulatedJob&) = delete;
  SimulatedJob& operator=(const SimulatedJob&) = delete;

  // Starts the process of "counter/0" and waits until it is ready or has failed. CHECKed: its role
  // has a class. A process that fails is started again after kRestartAfter, without end.
  void start(const std::string& actor, const nlohmann::json& args = nlohmann::json::object());
  void kill(const std::string& actor);
  // Asks the actor to drain, and waits until its process has ended.
  void drain(const std::string& actor);

  // Finds an actor as a peer of the job does.
  template <class Inbox>
  Ref<Inbox> find(const std::string& actor) {
    return peers_of_test().find<Inbox>(actor);
  }
  // Asks, and runs the job until the answer is there.
  template <class Q, class Inbox>
  Result<typename Q::Reply> ask(const Ref<Inbox>& whom, Q question, Duration deadline = kDeadline) {
    using R = typename Q::Reply;
    const auto answer = std::make_shared<std::optional<Result<R>>>();
    const Delivery sent = whom.tell(Ask<Q>{
        std::move(question), ReplyTo<R>([answer](Result<R> got) { *answer = std::move(got); })});
    if (sent != Delivery::kAccepted) return actor::undelivered(whom.address().name, sent);
    if (!run_until([&] { return answer->has_value(); }, deadline)) return late(whom.address().name);
    return std::move(**answer);
  }
  // Asks as `tandem ask` does: `question` is an object such as {"add": 2}.
  Result<nlohmann::json> ask_json(const std::string& actor, const nlohmann::json& question,
                                  Duration deadline = kDeadline);

  // Runs until `done()`, which is the result, or until nothing is left to do within `limit`.
  bool run_until(const std::function<bool()>& done, Duration limit = kDeadline);
  void run_for(Duration time);

  bool running(const std::string& actor) const;
  std::uint64_t starts(const std::string& actor) const;  // incarnations so far
  // The exit code of the last process that ended by itself; nullopt: none has.
  std::optional<int> exit_status(const std::string& actor) const;
  // Every report of a failure, in order: "job-1/counter/0: threw …".
  const std::vector<std::string>& failures() const { return failures_; }
  actor::SimulatedExecutor& executor() { return executor_; }

 private:
  class Lane;
  struct Peer;
  struct Wanted;
  class Controller;

  Peers peers_of_test();
  static Error late(const std::string& name);
  std::string full_name(const std::string& actor) const { return name_ + "/" + actor; }
  Wanted& wanted(const std::string& actor);
  void spawn(const std::string& full_name);
  void end(const ActorId& id, std::optional<int> exit_status);
  std::shared_ptr<Peer> connect(const ActorId& id);
  link::ParcelSender to_star(const std::shared_ptr<Peer>& peer);
  link::ParcelSender to_peer(const ActorId& peer);
  link::Offer arrived(const ActorId& from, const std::string& frame);

  const Program& program_;
  const std::string name_;
  actor::SimulatedExecutor executor_;
  link::Forwarder forwarder_;
  link::Directory controller_;                             // the ports of the controller
  std::map<std::string, std::shared_ptr<Peer>> peers_;     // actors whose link is up, by name
  std::map<std::string, std::unique_ptr<Wanted>> wanted_;  // by full name
  std::shared_ptr<Peer> test_;                             // the test itself, as a peer
  std::vector<std::string> failures_;
};

}  // namespace tandem
