// An actor is a plain class with `using Inbox = std::variant<M…>` and one `handle(Context&, M)` per
// message. No base class. Handlers run to completion, one at a time, so an actor needs no lock of
// its own; a handler must not block. A forgotten handler is a compile error at
// `static_assert(actor::Actor<MyActor>)`. How an actor is started and restarted: system.h.
#pragma once

#include <concepts>
#include <utility>
#include <variant>

namespace tandem::actor {

class Context;

// A has a handler for messages of type M.
template <class A, class M>
concept Handles = requires(A actor, Context& cx, M message) {
  actor.handle(cx, std::move(message));
};

// A has a handler for each alternative of the variant V.
template <class A, class V>
inline constexpr bool handles_all = false;
template <class A, class... M>
inline constexpr bool handles_all<A, std::variant<M...>> = (Handles<A, M> && ...);

// A class that System::spawn takes: its Inbox lists the messages, and each has a handler.
template <class A>
concept Actor = requires {
  typename A::Inbox;
}
&&handles_all<A, typename A::Inbox>;

// Calls the handler for the alternative that `message` holds.
template <Actor A>
void deliver(A& actor, Context& cx, typename A::Inbox message) {
  std::visit([&](auto&& m) { actor.handle(cx, std::move(m)); }, std::move(message));
}

}  // namespace tandem::actor
