// Tests what the Controller does with effects whose receivers have no room for them.
#include "actors/controller/controller.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

// The mailbox of an exchange, full for as long as the test says.
class FullMailbox final : public actor::Target<ExchangeControl> {
 public:
  actor::Delivery post(ExchangeControl message) override {
    if (full) return actor::Delivery::kFull;
    taken.push_back(std::move(message));
    return actor::Delivery::kAccepted;
  }
  bool full = true;
  std::vector<ExchangeControl> taken;
};

ControllerActions actions_to(std::shared_ptr<FullMailbox> exchange) {
  ControllerActions actions;
  actions.expect = [](const std::string&, const node::RankId&) {};
  actions.cut_link = [](const node::RankId&) {};
  actions.agent = [](const std::string&, Incarnation) {  // gone: no rank can be started
    return actor::Ref<node::AgentInbox>();
  };
  actions.rank_arguments = [](const node::RankId&) { return std::vector<std::string>(); };
  actions.make_run_directory = [](const JobShape&) -> Result<RunDirectory> {
    return RunDirectory{"job-1", "runs/job-1"};
  };
  actions.open_exchange = [exchange](const JobRecord&) -> Result<actor::Ref<ExchangeControl>> {
    return actor::Ref<ExchangeControl>({"exchange/job-1", Incarnation{1}}, exchange);
  };
  actions.bulk_endpoints = [](const std::string&) { return std::vector<std::string>(); };
  actions.close_exchange = [](const std::string&) {};
  actions.remember = [](std::span<const DurableEvent>) { return Result<void>(); };
  actions.journal = [](const runs::ClusterEvent&) -> Result<void> { return {}; };
  return actions;
}

// Starts a controller. The function tells it a message, and lets it do what is due.
std::function<void(Controller::Inbox)> teller(actor::SimulatedExecutor& executor,
                                              actor::System& system,
                                              const ControllerActions& actions) {
  const auto controller = system.spawn<Controller>(
      "controller", [actions] { return std::make_unique<Controller>(1, actions); });
  return [&executor, controller](Controller::Inbox message) {
    ASSERT_EQ(controller.tell(std::move(message)), actor::Delivery::kAccepted);
    executor.run_until([] { return false; }, std::chrono::milliseconds(50));
  };
}

TEST(Controller, AnExchangeWhoseMailboxIsFullIsToldOnceItHasRoom) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  const auto exchange = std::make_shared<FullMailbox>();
  const auto controller = system.spawn<Controller>(
      "controller", [exchange] { return std::make_unique<Controller>(1, actions_to(exchange)); });
  const auto tell = [&](Controller::Inbox message) {
    ASSERT_EQ(controller.tell(std::move(message)), actor::Delivery::kAccepted);
    executor.at(executor.now() + std::chrono::milliseconds(50), [] {});
    executor.run_until([] { return false; }, std::chrono::milliseconds(50));
  };
  tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  tell(actor::Ask<Submit>{{shape_of(1)}, {}});
  tell(actor::Ask<Cancel>{{"job-1"}, {}});
  EXPECT_TRUE(exchange->taken.empty());
  exchange->full = false;
  executor.run_until([&] { return exchange->taken.size() == 4; }, std::chrono::seconds(1));
  ASSERT_GE(exchange->taken.size(), 4u) << "three actors that could not start, and the cancel";
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(std::holds_alternative<messages::ActorDown>(exchange->taken[i])) << i;
  EXPECT_TRUE(std::holds_alternative<messages::EndJob>(exchange->taken[3])) << "in their order";
}

// The agent of a node, and a program whose link takes nothing.
class AgentTold final : public actor::Target<node::AgentInbox> {
 public:
  actor::Delivery post(node::AgentInbox message) override {
    told.push_back(std::move(message));
    return actor::Delivery::kAccepted;
  }
  std::vector<node::AgentInbox> told;
};
class FullLink final : public actor::Target<messages::ProgramInbox> {
 public:
  actor::Delivery post(messages::ProgramInbox) override { return actor::Delivery::kFull; }
};

// It would wait for ever for the message that says which actor it is.
TEST(Controller, AProgramThatCannotBeToldWhatItIsIsEnded) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  const auto agent = std::make_shared<AgentTold>();
  ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
  actions.agent = [agent](const std::string&, Incarnation) {
    return actor::Ref<node::AgentInbox>({"agent", Incarnation{1}}, agent);
  };
  actions.program = [](const node::RankId& id) {
    return actor::Ref<messages::ProgramInbox>({id.actor, id.incarnation},
                                              std::make_shared<FullLink>());
  };
  const auto tell = teller(executor, system, actions);
  tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  tell(actor::Ask<Submit>{{actors_alone(1)}, {}});
  ASSERT_EQ(agent->told.size(), 1u);
  const auto* const spawn = std::get_if<node::SpawnRank>(&agent->told.front());
  ASSERT_TRUE(spawn);
  tell(RankConnected{spawn->id});
  ASSERT_EQ(agent->told.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<node::StopRankProcess>(agent->told.back()));
}

// A controller that dies in between would leave a run without a result.
TEST(Controller, TheResultIsWrittenBeforeTheJobIsForgotten) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  std::vector<std::string> order;
  ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
  actions.write_result = [&](const JobRecord& job, const std::string&) -> Result<void> {
    order.push_back("result of " + job.id);
    return {};
  };
  actions.remember = [&](std::span<const DurableEvent> events) -> Result<void> {
    for (const DurableEvent& event : events)
      if (std::holds_alternative<JobLeft>(event)) order.push_back("left");
    return {};
  };
  const auto tell = teller(executor, system, actions);
  tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  tell(actor::Ask<Submit>{{actors_alone(1)}, {}});
  tell(actor::Ask<Cancel>{{"job-1"}, {}});
  EXPECT_EQ(order, (std::vector<std::string>{"result of job-1", "left"}));
}

TEST(Controller, ANumberOfActorsThatNobodyCanHaveWishedIsNotTakenUp) {
  for (const std::int32_t damaged : {-1, std::numeric_limits<std::int32_t>::max()}) {
    actor::SimulatedExecutor executor(1);
    actor::System system(executor, nullptr);
    std::vector<JobTaken> kept;
    ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
    actions.own_run_directory = [](const std::string&, const JobShape&) { return Result<void>(); };
    actions.remember = [&](std::span<const DurableEvent> events) -> Result<void> {
      for (const DurableEvent& event : events)
        if (const auto* job = std::get_if<JobTaken>(&event)) kept.push_back(*job);
      return {};
    };
    const auto tell = teller(executor, system, actions);
    const JobShape shape = actors_alone(3);
    const messages::Role role = shape.roles.at(0);
    JobTaken remembered{
        .job = "job-1", .run_dir = "runs/job-1", .yaml = {}, .wanted = {{name(role), damaged}}};
    tell(actor::Ask<TakeUp>{{{{std::move(remembered), shape}}}, {}});
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].wanted.at(name(role)), 3) << damaged;
  }
}

// Nothing is lost, and the order stays: a job that is remembered before it is left is left.
TEST(Controller, ADiskThatIsFullDelaysWhatIsRemembered) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  bool full = false;
  std::vector<DurableEvent> journalled;
  std::vector<std::string> news;
  ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
  actions.remember = [&](std::span<const DurableEvent> events) -> Result<void> {
    if (full) return Error{ErrorCode::kFailed, "no space left"};
    journalled.insert(journalled.end(), events.begin(), events.end());
    return {};
  };
  actions.journal = [&](const runs::ClusterEvent& event) -> Result<void> {
    if (event.kind == "controller") news.push_back(event.message);
    return {};
  };
  const auto tell = teller(executor, system, actions);
  tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  ASSERT_EQ(journalled.size(), 1u);
  full = true;
  tell(actor::Ask<Submit>{{shape_of(1)}, {}});
  tell(NodeDown{"vm", Incarnation{1}});
  executor.run_until([] { return false; }, std::chrono::seconds(5));
  EXPECT_EQ(journalled.size(), 1u);
  ASSERT_EQ(news.size(), 1u) << "said once";
  EXPECT_NE(news[0].find("no space left"), std::string::npos);
  full = false;
  executor.run_until([&] { return news.size() == 2; }, std::chrono::seconds(5));
  std::vector<std::string_view> kinds;
  for (const DurableEvent& event : journalled)
    if (const auto kind = kind_of(event); kinds.empty() || kind != kinds.back())
      kinds.push_back(kind);
  const std::vector<std::string_view> in_order{
      "node_joined", "job_taken",  "incarnations_reserved", "actor_started", "job_serves",
      "node_left",   "actor_ended"};
  EXPECT_EQ(kinds, in_order);
}

// An agent, as far as the controller sees it.
class HonestAgent final : public actor::Target<node::AgentInbox> {
 public:
  actor::Delivery post(node::AgentInbox message) override {
    if (const auto* spawn = std::get_if<node::SpawnRank>(&message)) spawned.push_back(spawn->id);
    return actor::Delivery::kAccepted;
  }
  std::vector<node::RankId> spawned;
};

// The next controller must know of each process: the changes of the step that starts some are not
// journalled, and one of its actors is told to end before they are.
TEST(Controller, AProcessStartsOnceTheJournalHasIt_CC1) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  bool full = false;
  const auto agent = std::make_shared<HonestAgent>();
  ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
  actions.agent = [&](const std::string&, Incarnation incarnation) {
    return actor::Ref<node::AgentInbox>({"vm", incarnation}, agent);
  };
  actions.program = [](const node::RankId&) { return actor::Ref<messages::ProgramInbox>(); };
  actions.remember = [&](std::span<const DurableEvent>) -> Result<void> {
    if (full) return Error{ErrorCode::kFailed, "no space left"};
    return {};
  };
  const auto tell = teller(executor, system, actions);
  tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  full = true;
  tell(actor::Ask<Submit>{{actors_alone(3)}, {}});
  tell(actor::Ask<Scale>{{{"job-1", {"counter"}, 2}}, {}});
  executor.run_until([] { return false; }, std::chrono::seconds(5));
  EXPECT_TRUE(agent->spawned.empty());
  full = false;
  executor.run_until([&] { return agent->spawned.size() == 2; }, std::chrono::seconds(5));
  ASSERT_EQ(agent->spawned.size(), 2u);
  EXPECT_EQ(agent->spawned[0].actor, "job-1/counter/0");
  EXPECT_EQ(agent->spawned[1].actor, "job-1/counter/1");
  executor.run_until([&] { return false; }, std::chrono::seconds(5));
  EXPECT_EQ(agent->spawned.size(), 2u);
}

// A controller with a node, whose journal fails for as long as the test says. It keeps the answers
// to wishes, and how many changes of each kind were journalled.
struct FailingJournal {
  FailingJournal() {
    ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
    actions.agent = [agent = std::make_shared<HonestAgent>()](const std::string& node,
                                                              Incarnation incarnation) {
      return actor::Ref<node::AgentInbox>({node, incarnation}, agent);
    };
    actions.make_run_directory = [this](const JobShape&) -> Result<RunDirectory> {
      const std::string id = "job-" + std::to_string(++runs);
      return RunDirectory{id, "runs/" + id};
    };
    actions.remember = [this](std::span<const DurableEvent> events) -> Result<void> {
      executor.pass(takes);
      if (full) return Error{ErrorCode::kFailed, "no space left", "controller.sqlite"};
      for (const DurableEvent& event : events) ++journalled[kind_of(event)];
      return {};
    };
    tell = teller(executor, system, actions);
    tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  }
  template <class Question>
  void ask(Question question) {
    using Reply = Result<typename Question::Reply>;
    const auto note = [this](const Reply& reply) {
      answers.push_back(reply ? Result<void>() : Result<void>(reply.error()));
    };
    tell(actor::Ask<Question>{std::move(question), actor::ReplyTo<typename Question::Reply>(note)});
  }
  bool answered(std::size_t count) {
    executor.run_until([&] { return answers.size() >= count; }, std::chrono::seconds(5));
    return answers.size() == count;
  }

  bool full = false;
  Duration takes{0};  // each write
  int runs = 0;
  std::map<std::string_view, int> journalled;
  std::vector<Result<void>> answers;
  actor::SimulatedExecutor executor{1};
  actor::System system{executor, nullptr};
  std::function<void(Controller::Inbox)> tell;
};

TEST(Controller, TellsHowLongItsJournalTakes) {
  FailingJournal world;
  const auto slowest = [&] {
    double seconds = -1;
    world.tell(actor::Ask<GetCluster>{
        {}, actor::ReplyTo<ClusterView>([&](const Result<ClusterView>& view) {
          seconds = view->journal_write_s;
        })});
    return seconds;
  };
  EXPECT_EQ(slowest(), 0) << "a simulated disk takes no time";
  world.takes = std::chrono::milliseconds(700);
  world.ask(Submit{actors_alone(1)});
  EXPECT_DOUBLE_EQ(slowest(), 0.7);
}

// Whoever asks for those `since` a number would get the earlier ones again.
TEST(Controller, EventsOfARunThatGoesOnHaveNumbersBehindThoseThatItHas) {
  std::vector<std::int64_t> numbers;
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
  actions.events_before = 7;
  actions.make_run_directory = [](const JobShape&) -> Result<RunDirectory> {
    return RunDirectory{"job-1", "runs/job-1", 200};
  };
  actions.journal = [&numbers](const runs::ClusterEvent& event) -> Result<void> {
    if (event.subject == "job-1") numbers.push_back(event.seq);
    return {};
  };
  const auto tell = teller(executor, system, actions);
  tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  tell(actor::Ask<Submit>{{shape_of(1)}, {}});
  ASSERT_FALSE(numbers.empty());
  EXPECT_EQ(numbers.front(), 201);
}

TEST(Controller, EventsThatTheJournalDoesNotTakeAreSaidOnceAndCounted) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  bool full = true;
  int refused = 0;
  ControllerActions actions = actions_to(std::make_shared<FullMailbox>());
  actions.journal = [&](const runs::ClusterEvent&) -> Result<void> {
    if (!full) return {};
    ++refused;
    return Error{ErrorCode::kFailed, "no space left"};
  };
  const ScopedLogging logging("test", LogLevel::kWarnings);
  testing::internal::CaptureStderr();
  const auto tell = teller(executor, system, actions);
  for (const char* node : {"a", "b", "c"})
    tell(node::NodeUp{node, Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  full = false;
  for (const char* node : {"d", "e"})
    tell(node::NodeUp{node, Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  const std::string said = testing::internal::GetCapturedStderr();
  const std::size_t first = said.find("event=journal_failed");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("event=journal_failed", first + 1), std::string::npos) << said;
  EXPECT_GE(refused, 3);
  EXPECT_NE(said.find("events_lost=" + std::to_string(refused) + "\n"), std::string::npos) << said;
}

// Its user may go away with the answer, and the controller may die then.
TEST(Controller, AWishIsAnsweredOnceTheJournalHasIt_CC6) {
  FailingJournal world;
  world.ask(Submit{shape_of(1)});
  ASSERT_EQ(world.answers.size(), 1u);
  world.full = true;
  world.ask(Scale{{"job-1", messages::Role::kRollout, 2}});
  world.ask(Cordon{CordonNode{"vm", "it is old"}});
  world.ask(Cancel{"job-1"});
  world.ask(Cancel{"job-1"});  // it changes nothing more, and is no more durable for that
  EXPECT_EQ(world.answers.size(), 1u) << "the journal has none of them";
  world.full = false;
  ASSERT_TRUE(world.answered(5));
  for (const char* const kind : {"role_scaled", "node_cordoned", "job_left"})
    EXPECT_EQ(world.journalled[kind], 1) << kind;
  for (const Result<void>& answer : world.answers) EXPECT_TRUE(answer);
  world.ask(Cordon{UncordonNode{"vm"}});
  EXPECT_EQ(world.answers.size(), 6u) << "at once";
}

TEST(Controller, AWishThatTheJournalDoesNotTakeStandsAndItsUserIsToldSo_CC6) {
  FailingJournal world;
  world.full = true;
  world.ask(Submit{shape_of(1)});
  world.ask(Scale{{"job-1", messages::Role::kRollout, 2}});
  ASSERT_TRUE(world.answered(2));
  for (std::size_t i = 0; i < 2; ++i) {
    const Error& error = world.answers[i].error();
    EXPECT_EQ(error.code, ErrorCode::kTimedOut);
    EXPECT_EQ(error.where, "controller.sqlite");
    for (const char* const part : {"job-1", "stands", "no space left"})
      EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  }
  world.full = false;
  world.executor.run_until([&] { return world.journalled.contains("role_scaled"); },
                           std::chrono::seconds(5));
  EXPECT_EQ(world.journalled["job_taken"], 1);
  EXPECT_EQ(world.journalled["role_scaled"], 1);
  EXPECT_EQ(world.answers.size(), 2u) << "each is answered once";
}

// A second try would otherwise make a second job.
TEST(Controller, NoJobIsTakenWhileTheJournalFails_CC6) {
  FailingJournal world;
  world.full = true;
  world.tell(node::NodeUp{"other", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  world.ask(Submit{shape_of(1)});
  ASSERT_EQ(world.answers.size(), 1u) << "at once";
  EXPECT_EQ(world.answers[0].error().code, ErrorCode::kFailed);
  EXPECT_NE(world.answers[0].error().message.find("no space left"), std::string::npos);
  EXPECT_EQ(world.runs, 0);
  world.full = false;
  world.executor.run_until([&] { return world.journalled["node_joined"] == 2; },
                           std::chrono::seconds(5));
  EXPECT_FALSE(world.journalled.contains("job_taken"));
  world.ask(Submit{shape_of(1)});
  ASSERT_EQ(world.answers.size(), 2u);
  EXPECT_TRUE(world.answers[1]);
  EXPECT_EQ(world.runs, 1);
}

// A user's program, as far as the controller sees it.
class Program final : public actor::Target<messages::ProgramInbox> {
 public:
  actor::Delivery post(messages::ProgramInbox message) override {
    if (gone) return actor::Delivery::kGone;
    if (auto* ask = std::get_if<actor::Ask<messages::AskJson>>(&message))
      asked.push_back(std::move(*ask));
    return actor::Delivery::kAccepted;
  }
  bool gone = false;
  std::vector<actor::Ask<messages::AskJson>> asked;
};

TEST(Controller, AQuestionToAProgramIsAnsweredOnceOrFailsByName) {
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  const auto program = std::make_shared<Program>();
  class Agent final : public actor::Target<node::AgentInbox> {
    actor::Delivery post(node::AgentInbox) override { return actor::Delivery::kAccepted; }
  };
  ControllerActions actions = actions_to(nullptr);
  actions.agent = [agent = std::make_shared<Agent>()](const std::string& node, Incarnation life) {
    return actor::Ref<node::AgentInbox>({node, life}, agent);
  };
  actions.program = [program](const node::RankId& id) {
    return actor::Ref<messages::ProgramInbox>({id.actor, id.incarnation}, program);
  };
  const auto controller = system.spawn<Controller>(
      "controller", [actions] { return std::make_unique<Controller>(1, actions); });
  const auto tell = [&](Controller::Inbox message) {
    ASSERT_EQ(controller.tell(std::move(message)), actor::Delivery::kAccepted);
    executor.at(executor.now() + std::chrono::milliseconds(50), [] {});
    executor.run_until([] { return false; }, std::chrono::milliseconds(50));
  };
  std::vector<Result<messages::AskedJson>> answers;
  const auto ask = [&](const std::string& actor) {
    tell(actor::Ask<AskProgram>{
        {actor, R"({"add": 2})", std::chrono::seconds(5)},
        actor::ReplyTo<messages::AskedJson>(
            [&](Result<messages::AskedJson> answer) { answers.push_back(answer); })});
  };
  tell(node::NodeUp{"vm", Incarnation{1}, 8, std::int64_t{1} << 40, 1});
  tell(actor::Ask<Submit>{{actors_alone(1)}, {}});
  const std::string counter = "job-1/counter/0";
  const node::RankId id{counter, Incarnation{1}, 0};
  ask(counter);
  ask("job-1/counter/1");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].error().code, ErrorCode::kUnreachable) << "it is not ready";
  EXPECT_EQ(answers[1].error().code, ErrorCode::kNotFound);
  tell(RankConnected{id});
  tell(messages::RankReady{counter, id.incarnation, 0});

  ask(counter);
  ASSERT_EQ(program->asked.size(), 1u);
  EXPECT_EQ(program->asked[0].question.body, R"({"add": 2})");
  program->asked[0].reply(messages::AskedJson{"5"});
  executor.run_until([&] { return answers.size() == 3; }, std::chrono::seconds(1));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[2]->body, "5");

  ask(counter);
  executor.run_until([&] { return answers.size() == 4; }, std::chrono::seconds(6));
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[3].error().code, ErrorCode::kTimedOut);
  EXPECT_EQ(answers[3].error().message, "job-1/counter/0 did not answer within 5 s");
  program->asked[1].reply(messages::AskedJson{"late"});

  ask(counter);
  tell(node::RankExited{.id = id, .signal = 9});
  ASSERT_EQ(answers.size(), 5u) << "the late answer is dropped";
  EXPECT_EQ(answers[4].error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(answers[4].error().message,
            "job-1/counter/0 ended before it answered: killed by SIGKILL (9)");
}

}  // namespace
}  // namespace tandem::controller
