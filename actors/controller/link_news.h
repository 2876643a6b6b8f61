// What the callbacks of the links tell the controller: that a peer came or went. No other message
// tells of it again, so that news which a full mailbox does not take waits here, in its order. A
// message of a peer that came behind must wait as well, and stays in its link.
//
//   LN-1  The controller hears all news, in order, and before the messages that came after it.
#pragma once

#include <deque>

#include "actors/controller/controller.h"
#include "runtime/base/guarded.h"

namespace tandem::controller {

// Any thread may call.
class LinkNews {
 public:
  explicit LinkNews(actor::Ref<Controller::Inbox> controller);
  void tell(Controller::Inbox news);
  // Whether the controller has taken everything, after another attempt. To be asked before a
  // message of a peer is let through, and from time to time.
  bool all_told();

 private:
  bool flush(std::deque<Controller::Inbox>& waiting) const;

  const actor::Ref<Controller::Inbox> controller_;
  // Bounded by how often peers come and go while the mailbox is full.
  Guarded<std::deque<Controller::Inbox>> waiting_;
};

}  // namespace tandem::controller
