#include "actors/controller/link_news.h"

#include <utility>

namespace tandem::controller {

LinkNews::LinkNews(actor::Ref<Controller::Inbox> controller) : controller_(std::move(controller)) {}

void LinkNews::tell(Controller::Inbox news) {
  waiting_.with([&](auto& waiting) {
    waiting.push_back(std::move(news));
    (void)flush(waiting);
  });
}

bool LinkNews::all_told() {
  return waiting_.with([this](auto& waiting) { return flush(waiting); });
}

bool LinkNews::flush(std::deque<Controller::Inbox>& waiting) const {
  while (!waiting.empty()) {
    if (controller_.tell(waiting.front()) == actor::Delivery::kFull) return false;
    waiting.pop_front();
  }
  return true;
}

}  // namespace tandem::controller
