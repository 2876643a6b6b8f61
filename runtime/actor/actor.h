// An actor is a plain class with `using Inbox = std::variant<M…>` and one `handle(Context&, M)` per
// message. No base class. Handlers run to completion, one at a time; a forgotten handler is a
// compile error at `static_assert(runtime::Actor<MyActor>)`.
#pragma once

#include <concepts>
#include <utility>
#include <variant>

namespace tandem::runtime {

class Context;

template <class A, class M>
concept Handles = requires(A actor, Context& cx, M message) {
  actor.handle(cx, std::move(message));
};

template <class A, class V>
inline constexpr bool handles_all = false;
template <class A, class... M>
inline constexpr bool handles_all<A, std::variant<M...>> = (Handles<A, M> && ...);

template <class A>
concept Actor = requires {
  typename A::Inbox;
}
&&handles_all<A, typename A::Inbox>;

template <Actor A>
void deliver(A& actor, Context& cx, typename A::Inbox message) {
  std::visit([&](auto&& m) { actor.handle(cx, std::move(m)); }, std::move(message));
}

}  // namespace tandem::runtime
