// The tree of a template: what the parser makes and the interpreter walks. It never changes once
// it is made.
//
//   JP-1  A tree is at most kTreeDepthMax nodes deep, whatever the text; a chain of a thousand `+`
//         is a deep tree as well, and is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/jinja/operators.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

inline constexpr int kTreeDepthMax = 400;

// A name, as an index into Tree::names.
using NameId = std::uint32_t;

struct Expression;
using ExpressionPointer = std::unique_ptr<const Expression>;

// The arguments of a call, a filter or a test.
struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  ExpressionPointer star, star_star;  // *items and **dict; null: absent
};

struct Expression {
  enum class Kind : std::uint8_t {
    kConstant,    // constant
    kName,        // name_id, text
    kNamespaced,  // text.attribute, as the target of a set: name_id, attribute in `attribute`
    kTuple,       // parts
    kList,        // parts
    kDict,        // parts: key, value, key, value, …
    kCondition,   // parts: the value, the condition, the other value (null: undefined)
    kOr,          // parts: two
    kAnd,         // parts: two
    kNot,         // parts: one
    kCompare,     // parts: one more than comparisons
    kArithmetic,  // parts: two; arithmetic
    kConcat,      // parts: those between ~
    kNegative,    // parts: one
    kPositive,    // parts: one
    kAttribute,   // parts: the object; text
    kItem,        // parts: the object, the key
    kSlice,       // parts: the object, start, stop, step, each of which may be null
    kCall,        // parts: what is called; arguments
    kFilter,      // parts: the value (null: the text of the block); text; arguments
    kTest,        // parts: the value; text; arguments
  };
  Kind kind = Kind::kConstant;
  Arithmetic arithmetic = Arithmetic::kAdd;
  int line = 1;
  int depth = 1;
  NameId name_id = 0;
  std::string text, attribute;
  Value constant;
  std::vector<ExpressionPointer> parts;
  std::vector<Comparison> comparisons;
  CallArguments arguments;
};

struct Statement;
using Body = std::vector<std::unique_ptr<const Statement>>;

struct Parameter {
  std::string name;
  NameId name_id = 0;
  ExpressionPointer otherwise;  // its default; null: it has none
};

// A macro, or the block of a call.
struct Signature {
  std::string name;
  std::vector<Parameter> parameters;
  // Whether the body uses these names, which are then filled at a call.
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};

struct Statement {
  enum class Kind : std::uint8_t {
    kData,      // text
    kOutput,    // expressions
    kIf,        // expressions[i] is the condition of bodies[i]; one more body is the else
    kFor,       // target, expressions: the items and the condition (null: none); bodies: body, else
    kSet,       // target, expressions: the value
    kSetBlock,  // target, expressions: the filters (null: none); bodies
    kWith,      // targets, expressions: their values; bodies
    kMacro,     // name_id, signature, bodies
    kCallBlock,   // expressions: the call; signature, bodies
    kFilter,      // expressions: the filters; bodies
    kGeneration,  // bodies
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kData;
  int line = 1;
  bool recursive = false;  // kFor
  bool uses_loop = false;  // kFor: its body names `loop`
  NameId name_id = 0;
  std::string text;
  std::vector<ExpressionPointer> targets;
  std::vector<ExpressionPointer> expressions;
  std::vector<Body> bodies;
  Signature signature;
};

struct Tree {
  Body body;
  std::vector<std::string> names;  // every name that the template reads or writes
};

}  // namespace tandem::jinja
