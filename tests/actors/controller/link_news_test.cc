#include "actors/controller/link_news.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tandem::controller {
namespace {

class Mailbox final : public actor::Target<Controller::Inbox> {
 public:
  actor::Delivery post(Controller::Inbox message) override {
    if (room == 0) return actor::Delivery::kFull;
    --room;
    if (const auto* down = std::get_if<NodeDown>(&message)) heard.push_back(down->node);
    return actor::Delivery::kAccepted;
  }
  int room = 0;
  std::vector<std::string> heard;
};

TEST(LinkNews, WaitsForAFullMailboxInItsOrder_LN1) {
  const auto mailbox = std::make_shared<Mailbox>();
  LinkNews news(actor::Ref<Controller::Inbox>({"controller", Incarnation{1}}, mailbox));
  EXPECT_TRUE(news.all_told());
  news.tell(NodeDown{"a", {1}});
  news.tell(NodeDown{"b", {1}});
  EXPECT_FALSE(news.all_told());
  mailbox->room = 1;
  EXPECT_FALSE(news.all_told());
  mailbox->room = 9;
  news.tell(NodeDown{"c", {1}});
  EXPECT_TRUE(news.all_told());
  EXPECT_EQ(mailbox->heard, (std::vector<std::string>{"a", "b", "c"}));
}

}  // namespace
}  // namespace tandem::controller
