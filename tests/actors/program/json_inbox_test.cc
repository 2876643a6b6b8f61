// Questions in JSON: the messages that are understood, the answers, and the errors' texts.
#include "actors/program/json_inbox.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/actors/program/counter.h"

namespace tandem::program {
namespace {

using namespace counter_example;

class Mailbox final : public actor::Target<Counter::Inbox> {
 public:
  Delivery post(Counter::Inbox message) override {
    if (!takes) return Delivery::kFull;
    messages.push_back(std::move(message));
    return Delivery::kAccepted;
  }
  std::deque<Counter::Inbox> messages;
  bool takes = true;
};

class JsonInbox : public testing::Test {
 protected:
  void tell(const std::string& body) {
    answer.reset();
    tell_json(Ref<Counter::Inbox>({"job-1/counter/0", {1}}, mailbox), body,
              ReplyTo<messages::AskedJson>([this](auto result) { answer = std::move(result); }));
  }
  std::string error_of(const std::string& body) {
    tell(body);
    EXPECT_TRUE(answer && !*answer) << body;
    EXPECT_EQ((*answer).error().code, ErrorCode::kInvalid);
    EXPECT_TRUE(mailbox->messages.empty());
    return (*answer).error().message + "; " + (*answer).error().help;
  }
  template <class M>
  M taken() {
    auto message = std::get<M>(std::move(mailbox->messages.front()));
    mailbox->messages.pop_front();
    return message;
  }
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  std::optional<Result<messages::AskedJson>> answer;
};

TEST_F(JsonInbox, one_field_is_given_bare_or_by_name) {
  for (const char* body : {R"({"add": 2})", R"({"add": {"amount": 2}})"}) {
    tell(body);
    const auto ask = taken<Ask<Add>>();
    EXPECT_EQ(ask.question.amount, 2);
    EXPECT_FALSE(answer);
    ask.reply(17);
    EXPECT_EQ(answer->value().body, "17");
  }
}

TEST_F(JsonInbox, no_field_is_null_or_an_empty_object) {
  for (const char* body : {R"({"get_total": null})", R"({"get_total": {}})"}) {
    tell(body);
    taken<Ask<GetTotal>>().reply(Error{ErrorCode::kNotFound, "no total yet"});
    EXPECT_EQ(answer->error().code, ErrorCode::kNotFound);
    EXPECT_EQ(answer->error().message, "no total yet");
  }
}

TEST_F(JsonInbox, several_fields_by_name_and_an_answer_of_fields) {
  tell(R"({"describe": {"title": "best", "limits": [-128, 127]}})");
  const auto ask = taken<Ask<Describe>>();
  EXPECT_EQ(ask.question.title, "best");
  EXPECT_EQ(ask.question.limits, (std::vector<std::int8_t>{-128, 127}));
  EXPECT_EQ(ask.question.note, std::nullopt);
  ask.reply(Scores{{{"a", 0.5}}, std::nullopt});
  EXPECT_EQ(answer->value().body, R"({"by_name":{"a":0.5},"note":null})");
}

TEST_F(JsonInbox, a_told_message_answers_null) {
  tell(R"({"reset": {}})");
  taken<Reset>();
  EXPECT_EQ(answer->value().body, "null");
  mailbox->takes = false;
  tell(R"({"reset": {}})");
  EXPECT_EQ(answer->error().code, ErrorCode::kUnreachable);
  tell(R"({"add": 2})");
  EXPECT_EQ(answer->error().message, "job-1/counter/0 is at its limit");
}

TEST_F(JsonInbox, what_is_wrong_is_named_with_what_exists) {
  const std::string all = "add, get_total, describe, add_to_peer, reset, fail, finish";
  EXPECT_EQ(error_of("{"), "the question is not JSON; its messages are " + all);
  EXPECT_EQ(
      error_of("[]"),
      "a question is an object with one member, the name of a message; its messages are " + all);
  EXPECT_EQ(error_of(R"({"ad": 2})"),
            "there is no message ad; the actor's messages are " + all + "; ");
  EXPECT_EQ(error_of(R"({"add": "2"})"),
            "add: expected an integer from -9223372036854775808 to 9223372036854775807, got "
            "\"2\"; ");
  EXPECT_EQ(error_of(R"({"add": 9223372036854775808})").substr(0, 24), "add: expected an integer");
  EXPECT_EQ(error_of(R"({"add": 2.5})").substr(0, 24), "add: expected an integer");
  EXPECT_EQ(error_of(R"({"get_total": 1})"), "get_total: expected an object, got 1; ");
  EXPECT_EQ(error_of(R"({"describe": {"title": "x"}})"),
            "describe: the field limits is missing; its fields are title, limits, note; ");
  EXPECT_EQ(error_of(R"({"describe": {"title": "x", "limits": [], "nte": ""}})"),
            "describe: there is no field nte; its fields are title, limits, note; ");
  EXPECT_EQ(error_of(R"({"describe": {"title": "x", "limits": [1, 128]}})"),
            "describe.limits[1]: expected an integer from -128 to 127, got 128; ");
}

TEST(SnakeCase, begins_a_word_at_each_capital) {
  EXPECT_EQ(snake_case("Add"), "add");
  EXPECT_EQ(snake_case("GetTotal"), "get_total");
  EXPECT_EQ(snake_case("HTTPGet"), "http_get");
  EXPECT_EQ(snake_case("Top10Of"), "top10_of");
}

}  // namespace
}  // namespace tandem::program
