// Messages of an inbox from JSON: {"add": 2} for Ask<Add>. The object has one member, the
// snake_case name of a message. Its value is an object of the message's fields; or, for a message
// with one field, that field's value; or {} or null for a message without fields.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "actors/messages/program.h"
#include "actors/program/json_value.h"
#include "runtime/actor/ref.h"
#include "runtime/wire/schema.h"

namespace tandem::program {

namespace json_detail {

template <class Struct, auto... kMembers>
Result<void> read_message(const json& value, Struct& out,
                          wire::WireFields<Struct, kMembers...> fields, const std::string& at) {
  if constexpr (sizeof...(kMembers) == 0) {
    if (value.is_null()) return {};
  } else if constexpr (sizeof...(kMembers) == 1) {
    // An object with the field's name has the fields; anything else is the field itself.
    const bool named = value.is_object() && value.size() == 1 && member(value, fields.names);
    if (!named) return read(value, ((out.*kMembers), ...), at);
  }
  return read_fields(value, out, fields, at);
}

// The fields that an alternative of an inbox brings: those of the question of an Ask, else its own.
template <class M>
struct Carried {
  using Type = M;
};
template <class Q>
struct Carried<actor::Ask<Q>> {
  using Type = Q;
};

template <class M>
std::string name_of() {
  using Carries = typename Carried<M>::Type;
  return snake_case(wire_fields(static_cast<const Carries*>(nullptr)).type);
}

template <class... M>
std::string names_of(std::type_identity<std::variant<M...>>) {
  std::string names;
  ((names += (names.empty() ? "" : ", ") + name_of<M>()), ...);
  return names;
}

// The one member of a question. Errors: `body` is no such object.
struct Question {
  json object;
  std::string name;
  const json& value() const { return object.begin().value(); }
};
Result<Question> parse_question(const std::string& body, const std::string& names);
Error no_such_message(const std::string& name, const std::string& names);

// Reads the message M, tells it, and answers `reply`.
template <class M, class Inbox>
void tell_message(const actor::Ref<Inbox>& actor, const json& value, const std::string& name,
                  const actor::ReplyTo<messages::AskedJson>& reply) {
  using Carries = typename Carried<M>::Type;
  Carries carried{};
  if (auto read = read_message(value, carried, wire_fields(&carried), name); !read)
    return reply(read.error());
  actor::Delivery sent = actor::Delivery::kAccepted;
  if constexpr (wire::AskShaped<M>) {
    using R = typename Carries::Reply;
    const actor::ReplyTo<R> answer([reply](Result<R> result) {
      if (!result) return reply(result.error());
      if constexpr (std::is_void_v<R>)
        reply(messages::AskedJson{"null"});
      else
        reply(messages::AskedJson{dump_json(write(*result))});
    });
    sent = actor.tell(Inbox(M{std::move(carried), answer}));
    if (sent != actor::Delivery::kAccepted) answer(actor::undelivered(actor.address().name, sent));
  } else {
    sent = actor.tell(Inbox(std::move(carried)));
    reply(sent == actor::Delivery::kAccepted
              ? Result<messages::AskedJson>(messages::AskedJson{"null"})
              : Result<messages::AskedJson>(actor::undelivered(actor.address().name, sent)));
  }
}

template <class Inbox, class... M>
void tell_json_of(const actor::Ref<Inbox>& actor, const std::string& body,
                  const actor::ReplyTo<messages::AskedJson>& reply,
                  std::type_identity<std::variant<M...>> inbox) {
  const std::string names = names_of(inbox);
  const auto question = parse_question(body, names);
  if (!question) return reply(question.error());
  const auto one = [&]<class One>(std::type_identity<One>) {
    if (name_of<One>() != question->name) return false;
    tell_message<One>(actor, question->value(), question->name, reply);
    return true;
  };
  const bool known = (one(std::type_identity<M>{}) || ...);
  if (!known) reply(no_such_message(question->name, names));
}

}  // namespace json_detail

// Tells the actor the message that `body` stands for. `reply` gets the answer as JSON text, null
// for a message that is not asked, or an Error: kInvalid, with the names of what exists, if `body`
// is no message of Inbox; the answer's own; kUnreachable if the actor does not take it. May be
// called from any thread.
template <class Inbox>
void tell_json(const actor::Ref<Inbox>& actor, const std::string& body,
               const actor::ReplyTo<messages::AskedJson>& reply) {
  json_detail::tell_json_of(actor, body, reply, std::type_identity<Inbox>{});
}

}  // namespace tandem::program
