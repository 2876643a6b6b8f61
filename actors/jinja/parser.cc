#include "actors/jinja/parser.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "actors/jinja/expression_parser.h"
#include "runtime/base/text.h"

namespace tandem::jinja {
namespace {

using Kind = Statement::Kind;
using Draft = std::unique_ptr<Statement>;

// A template's file is bounded by who reads it; this bounds the tokens, and so the tree.
constexpr std::size_t kTemplateBytesMax = 4u << 20;

constexpr auto kRefusedTags = std::to_array<std::string_view>(
    {"block", "extends", "include", "import", "from", "autoescape"});

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : in_(std::move(tokens)) {}

  Result<Tree> tree() {
    Tree tree;
    tree.body = body_until({});
    if (in_.error()) return *in_.error();
    tree.names = std::move(in_).names();
    return tree;
  }

 private:
  using Ends = std::span<const std::string_view>;

  Draft draft(Kind kind) const {
    auto made = std::make_unique<Statement>();
    made->kind = kind;
    made->line = in_.current().line;
    return made;
  }

  // The statements up to a tag of `ends`, whose name is then the current token; to the end of the
  // template where there are none.
  Body body_until(Ends ends) {
    Body body;
    while (in_.ok() && in_.current().type != TokenType::kEnd) {
      const TokenType type = in_.current().type;
      if (type == TokenType::kData) {
        Draft made = draft(Kind::kData);
        made->text = in_.take().text;
        body.push_back(std::move(made));
      } else if (type == TokenType::kVariableBegin) {
        Draft made = draft(Kind::kOutput);
        in_.take();
        made->expressions.push_back(in_.tuple());
        in_.expect(TokenType::kVariableEnd);
        body.push_back(std::move(made));
      } else {
        in_.expect(TokenType::kBlockBegin);
        if (std::ranges::any_of(ends, [&](std::string_view end) { return in_.at_name(end); }))
          return body;
        body.push_back(statement());
        in_.expect(TokenType::kBlockEnd);
      }
    }
    if (!ends.empty() && in_.ok())
      in_.fail("the template ends, and `" + std::string(ends.back()) + "` is missing");
    return body;
  }

  // The body of a tag, whose own end is still to come. The end's name is left as current token.
  Body body_of(Ends ends) {
    in_.skip_operator(":");
    in_.expect(TokenType::kBlockEnd);
    return body_until(ends);
  }
  Body whole_body(std::string_view end) {
    Body body = body_of(std::span(&end, 1));
    in_.take();
    return body;
  }

  // A body that is a function of its own: a break in it cannot leave a loop around it.
  Body function_body(std::string_view end, Signature* signature) {
    const int loops = std::exchange(loops_, 0);
    const auto used = std::exchange(in_.used, {});
    Body body = whole_body(end);
    loops_ = loops;
    const auto mine = std::exchange(in_.used, used);
    in_.used.loop = used.loop || mine.loop;
    if (signature != nullptr) {
      signature->uses_caller = mine.caller;
      signature->uses_kwargs = mine.kwargs;
      signature->uses_varargs = mine.varargs;
    }
    in_.used.caller = used.caller || mine.caller;
    in_.used.kwargs = used.kwargs || mine.kwargs;
    in_.used.varargs = used.varargs || mine.varargs;
    return body;
  }

  Draft statement() {
    const ExpressionParser::Level level(in_, 8);
    if (!in_.ok()) return draft(Kind::kData);
    if (in_.current().type != TokenType::kName) {
      in_.fail("expected the name of a tag");
      return draft(Kind::kData);
    }
    using Parse = Draft (Parser::*)();
    static constexpr std::pair<std::string_view, Parse> kTags[] = {
        {"if", &Parser::parse_if},         {"for", &Parser::parse_for},
        {"set", &Parser::parse_set},       {"with", &Parser::parse_with},
        {"macro", &Parser::parse_macro},   {"call", &Parser::parse_call},
        {"filter", &Parser::parse_filter}, {"generation", &Parser::parse_generation},
        {"print", &Parser::parse_print},   {"break", &Parser::parse_jump},
        {"continue", &Parser::parse_jump}};
    const std::string name = in_.current().text;
    for (const auto& [tag, parse] : kTags)
      if (tag == name) return (this->*parse)();
    in_.fail(std::ranges::count(kRefusedTags, name) > 0
                 ? "the tag `" + name + "` is not supported: a chat template is one text"
                 : "unknown tag `" + name + "`");
    return draft(Kind::kData);
  }

  Draft parse_if() {
    static constexpr std::string_view kEnds[] = {"elif", "else", "endif"};
    Draft made = draft(Kind::kIf);
    do {
      in_.take();
      made->expressions.push_back(in_.tuple(false));
      made->bodies.push_back(body_of(kEnds));
    } while (in_.ok() && in_.at_name("elif"));
    if (in_.skip_name("else"))
      made->bodies.push_back(whole_body("endif"));
    else
      in_.take();
    return made;
  }

  Draft parse_for() {
    static constexpr std::string_view kEnds[] = {"else", "endfor"};
    Draft made = draft(Kind::kFor);
    in_.take();
    made->targets.push_back(in_.target("in", false));
    if (!in_.skip_name("in")) in_.fail("expected `in`");
    made->expressions.push_back(in_.tuple(false, "recursive"));
    made->expressions.push_back(in_.skip_name("if") ? in_.expression() : nullptr);
    made->recursive = in_.skip_name("recursive");
    const bool outer = std::exchange(in_.used.loop, false);
    ++loops_;
    made->bodies.push_back(body_of(kEnds));
    --loops_;
    made->uses_loop = in_.used.loop || made->recursive;
    in_.used.loop = in_.used.loop || outer;
    if (in_.skip_name("else"))
      made->bodies.push_back(whole_body("endfor"));
    else
      in_.take();
    return made;
  }

  Draft parse_set() {
    Draft made = draft(Kind::kSet);
    in_.take();
    made->targets.push_back(in_.target({}, true));
    if (in_.skip_operator("=")) {
      made->expressions.push_back(in_.tuple());
      return made;
    }
    made->kind = Kind::kSetBlock;
    made->expressions.push_back(in_.filters(nullptr, false));
    made->bodies.push_back(whole_body("endset"));
    return made;
  }

  Draft parse_with() {
    Draft made = draft(Kind::kWith);
    in_.take();
    while (in_.ok() && in_.current().type != TokenType::kBlockEnd) {
      if (!made->targets.empty()) in_.expect_operator(",");
      made->targets.push_back(in_.name_target());
      in_.expect_operator("=");
      made->expressions.push_back(in_.expression());
    }
    made->bodies.push_back(whole_body("endwith"));
    return made;
  }

  void parse_signature(Signature& signature) {
    in_.expect_operator("(");
    while (in_.ok() && !in_.at_operator(")")) {
      if (!signature.parameters.empty()) in_.expect_operator(",");
      const ExpressionPointer name = in_.name_target();
      if (!in_.ok()) return;
      Parameter parameter{name->text, name->name_id, nullptr};
      if (in_.skip_operator("="))
        parameter.otherwise = in_.expression();
      else if (!signature.parameters.empty() && signature.parameters.back().otherwise)
        in_.fail("a parameter without a default follows one with a default");
      signature.parameters.push_back(std::move(parameter));
    }
    in_.expect_operator(")");
  }

  Draft parse_macro() {
    Draft made = draft(Kind::kMacro);
    in_.take();
    if (const ExpressionPointer name = in_.name_target()) {
      made->name_id = name->name_id;
      made->signature.name = name->text;
    }
    parse_signature(made->signature);
    made->bodies.push_back(function_body("endmacro", &made->signature));
    return made;
  }

  Draft parse_call() {
    Draft made = draft(Kind::kCallBlock);
    in_.take();
    made->signature.name = "caller";
    if (in_.at_operator("(")) parse_signature(made->signature);
    ExpressionPointer call = in_.expression();
    if (in_.ok() && (!call || call->kind != Expression::Kind::kCall))
      in_.fail("a call block needs a call");
    made->expressions.push_back(std::move(call));
    made->bodies.push_back(function_body("endcall", &made->signature));
    return made;
  }

  Draft parse_filter() {
    Draft made = draft(Kind::kFilter);
    in_.take();
    made->expressions.push_back(in_.filters(nullptr, true));
    made->bodies.push_back(whole_body("endfilter"));
    return made;
  }

  Draft parse_generation() {
    Draft made = draft(Kind::kGeneration);
    in_.take();
    made->bodies.push_back(function_body("endgeneration", nullptr));
    return made;
  }

  Draft parse_print() {
    Draft made = draft(Kind::kOutput);
    in_.take();
    while (in_.ok() && in_.current().type != TokenType::kBlockEnd) {
      if (!made->expressions.empty()) in_.expect_operator(",");
      made->expressions.push_back(in_.expression());
    }
    return made;
  }

  Draft parse_jump() {
    Draft made = draft(in_.at_name("break") ? Kind::kBreak : Kind::kContinue);
    if (loops_ == 0) in_.fail("`" + in_.current().text + "` is outside of a loop");
    in_.take();
    return made;
  }

  ExpressionParser in_;
  int loops_ = 0;  // that a break can leave
};

}  // namespace

Result<Tree> parse_template(std::string_view text) {
  if (text.size() > kTemplateBytesMax)
    return syntax_error(
        1, "the template has more than " + std::to_string(kTemplateBytesMax >> 20) + " MiB");
  if (valid_utf8(text) != text) return syntax_error(1, "the template is not UTF-8");
  auto tokens = tokenize(text);
  if (!tokens) return tokens.error();
  return Parser(*std::move(tokens)).tree();
}

}  // namespace tandem::jinja
