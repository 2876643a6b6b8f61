// Actors of a user's program as their processes run them, in virtual time: asks by JSON and by
// peers, deaths and restarts, drains, and the same run from the same seed.
#include "actors/program/simulated_job.h"

#include <gtest/gtest.h>

#include "tests/actors/program/counter.h"
#include "tests/seeds.h"

namespace tandem {
namespace {

using namespace counter_example;
using nlohmann::json;

const Program& program() {
  static const Program counters = std::move(Program().actor<Counter>("counter"));
  return counters;
}

TEST(SimulatedJob, an_actor_is_asked_by_peers_and_in_json) {
  SimulatedJob job(program(), 1);
  job.start("counter/0", {{"from", 10}});
  EXPECT_TRUE(job.running("counter/0"));
  const auto counter = job.find<Counter::Inbox>("counter/0");
  EXPECT_EQ(job.ask(counter, Add{2}).value(), 12);
  EXPECT_EQ(job.ask_json("counter/0", {{"add", 3}}).value(), json(15));
  EXPECT_EQ(job.ask_json("counter/0", {{"reset", nullptr}}).value(), json());
  EXPECT_EQ(job.ask(counter, GetTotal{}).value(), 0);
}

TEST(SimulatedJob, actors_find_each_other_by_name) {
  SimulatedJob job(program(), 2);
  job.start("counter/0");
  job.start("counter/1");
  EXPECT_EQ(job.ask(job.find<Counter::Inbox>("counter/0"), AddToPeer{"counter/1", 5}).value(), 5);
  EXPECT_EQ(
      job.ask_json("counter/0", {{"add_to_peer", {{"peer", "job-1/counter/1"}, {"amount", 2}}}})
          .value(),
      json(7));
  const auto unknown = job.ask(job.find<Counter::Inbox>("counter/0"), AddToPeer{"counter/7", 5});
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(unknown.error().message, "job-1/counter/7 is not running");
}

TEST(SimulatedJob, an_inbox_of_another_type_finds_no_actor) {
  using Other = std::variant<Ask<GetTotal>, Ask<Add>>;  // the same messages in another order
  SimulatedJob job(program(), 3);
  job.start("counter/0");
  EXPECT_EQ(job.ask(job.find<Other>("counter/0"), Add{1}).error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(job.ask_json("counter/0", {{"get_total", {}}}).value(), json(0));
}

TEST(SimulatedJob, a_killed_actor_starts_anew_and_its_refs_stay_valid) {
  SimulatedJob job(program(), 4);
  job.start("counter/0");
  const auto counter = job.find<Counter::Inbox>("counter/0");
  EXPECT_EQ(job.ask(counter, Add{2}).value(), 2);
  job.kill("counter/0");
  EXPECT_EQ(job.ask(counter, Add{2}).error().message, "job-1/counter/0 is not running");
  EXPECT_TRUE(job.run_until([&] { return job.running("counter/0"); }));
  EXPECT_EQ(job.starts("counter/0"), 2u);
  EXPECT_EQ(job.ask(counter, Add{2}).value(), 2);
}

TEST(SimulatedJob, a_failure_ends_the_process_and_a_stop_ends_it_with_0) {  // PG-1
  SimulatedJob job(program(), 5);
  job.start("counter/0");
  EXPECT_EQ(job.ask_json("counter/0", {{"fail", "no disk"}}).value(), json());
  EXPECT_TRUE(job.run_until([&] { return !job.running("counter/0"); }));
  EXPECT_EQ(job.exit_status("counter/0"), 1);
  EXPECT_EQ(job.failures(),
            std::vector<std::string>{"job-1/counter/0: job-1/counter/0 threw: no disk"});
  EXPECT_TRUE(job.run_until([&] { return job.running("counter/0"); }));
  EXPECT_EQ(job.ask_json("counter/0", {{"finish", nullptr}}).value(), json());
  EXPECT_TRUE(job.run_until([&] { return !job.running("counter/0"); }));
  EXPECT_EQ(job.exit_status("counter/0"), 0);
  job.run_for(std::chrono::seconds(60));
  EXPECT_FALSE(job.running("counter/0"));
  EXPECT_EQ(job.starts("counter/0"), 2u);
}

TEST(SimulatedJob, an_actor_that_cannot_be_made_reports_why) {
  SimulatedJob job(program(), 6);
  job.start("counter/0", {{"form", 10}});
  EXPECT_FALSE(job.running("counter/0"));
  ASSERT_FALSE(job.failures().empty());
  EXPECT_NE(job.failures()[0].find("args: there is no field form; its fields are from"),
            std::string::npos)
      << job.failures()[0];
}

TEST(SimulatedJob, a_drained_actor_handles_what_it_has_accepted) {  // PG-2
  for_seeds(50, [](std::uint64_t seed) {
    int answered = 0, refused = 0;
    SimulatedJob job(program(), seed);
    job.start("counter/0");
    const auto counter = job.find<Counter::Inbox>("counter/0");
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(counter.tell(Ask<Add>{{1}, ReplyTo<std::int64_t>([&](auto total) {
                                        ++(total ? answered : refused);
                                      })}),
                Delivery::kAccepted);
    }
    job.drain("counter/0");
    job.run_for(std::chrono::seconds(1));
    EXPECT_EQ(answered + refused, 20);
    EXPECT_EQ(job.exit_status("counter/0"), 0);
    EXPECT_TRUE(job.failures().empty());
  });
}

// Counts its starts, asks a counter on behalf of others, and ends a drain when it owes no answer.
class Broker {
 public:
  using Inbox = std::variant<Ask<AddToPeer>, Ask<GetTotal>, Fail>;
  explicit Broker(const ActorStart& start) : peers_(start.peers) {}

  void start(Context&) { ++starts_; }
  void drain(Context& cx) {
    draining_ = true;
    if (owed_ == 0) cx.stop();
  }
  void handle(Context& cx, Ask<AddToPeer> ask) {
    ++owed_;
    cx.ask(peers_.find<Counter::Inbox>(ask.question.peer), Add{ask.question.amount},
           std::chrono::seconds(5), [this, reply = ask.reply](Context& then, auto total) {
             reply(std::move(total));
             --owed_;
             if (draining_) drain(then);
           });
  }
  void handle(Context&, const Ask<GetTotal>& ask) { ask.reply(starts_); }
  void handle(Context&, const Fail& fail) { throw std::runtime_error(fail.why); }

 private:
  const Peers peers_;
  std::int64_t starts_ = 0;
  int owed_ = 0;
  bool draining_ = false;
};

TEST(SimulatedJob, start_is_called_once_for_each_object_before_its_first_message) {
  Program brokers;
  brokers.actor<Broker>("broker", {.restart = {.restarts_max = 1}});
  for_seeds(20, [&](std::uint64_t seed) {
    SimulatedJob job(brokers, seed);
    job.start("broker/0");
    EXPECT_EQ(job.ask_json("broker/0", {{"get_total", nullptr}}).value(), json(1));
    EXPECT_EQ(job.ask_json("broker/0", {{"fail", "once"}}).value(), json());
    EXPECT_EQ(job.ask_json("broker/0", {{"get_total", nullptr}}).value(), json(1));
    EXPECT_EQ(job.starts("broker/0"), 1u) << "it was restarted within its process";
  });
}

TEST(SimulatedJob, an_actor_may_end_a_drain_itself) {  // PG-2
  Program both;
  both.actor<Broker>("broker").actor<Counter>("counter");
  for_seeds(50, [&](std::uint64_t seed) {
    int answered = 0, refused = 0;
    SimulatedJob job(both, seed);
    job.start("broker/0");
    job.start("counter/0");
    const auto broker = job.find<Broker::Inbox>("broker/0");
    for (int i = 0; i < 10; ++i) {
      const ReplyTo<std::int64_t> reply([&](auto total) { ++(total ? answered : refused); });
      ASSERT_EQ(broker.tell(Ask<AddToPeer>{{"counter/0", 1}, reply}), Delivery::kAccepted);
    }
    job.drain("broker/0");
    job.run_for(std::chrono::seconds(1));
    EXPECT_EQ(answered + refused, 10);
    EXPECT_EQ(job.ask_json("counter/0", {{"get_total", nullptr}}).value(), json(answered));
    EXPECT_EQ(job.exit_status("broker/0"), 0);
  });
}

TEST(SimulatedJob, the_same_seed_gives_the_same_run) {
  const auto run = [](std::uint64_t seed) {
    SimulatedJob job(program(), seed);
    job.start("counter/0");
    job.start("counter/1");
    for (int i = 0; i < 10; ++i)
      (void)job.ask(job.find<Counter::Inbox>("counter/0"), AddToPeer{"counter/1", i});
    job.kill("counter/1");
    job.run_for(std::chrono::seconds(5));
    return std::pair(job.executor().steps(), job.executor().now().ns);
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

}  // namespace
}  // namespace tandem
