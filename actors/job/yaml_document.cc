#include "actors/job/yaml_document.h"

#include <yaml-cpp/eventhandler.h>

#include <optional>
#include <sstream>

#include "actors/job/yaml_fault.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::job {
namespace {

Error yaml_error(std::string message, std::string where, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), std::move(where), std::move(help)};
}

// Refuses input that yaml-cpp would take silently or explain badly: bytes that are not UTF-8, zero
// bytes, and tabs in the indentation.
Result<void> check_text(std::string_view text, const YamlText& what) {
  if (text.size() > kYamlBytesMax)
    return yaml_error(what.noun + " is longer than " + std::to_string(kYamlBytesMax) + " bytes",
                      what.name, what.too_long_help);
  int line = 0, column = 0;
  bool indentation = true;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const CodePoint point = first_code_point(text.substr(i));
    const auto here = [&] { return yaml_place(what, line, column); };
    if (!point.valid || c == '\0')
      return yaml_error(what.noun + " is not UTF-8 text", here(), "save it as UTF-8");
    if (c == '\t' && indentation)
      return yaml_error("a tab in the indentation", here(), "YAML wants spaces");
    // `indentation` stays true while only spaces have followed the last newline.
    indentation = c == '\n' || (indentation && c == ' ');
    line += c == '\n';
    column = c == '\n' ? 0 : column + 1;
    i += point.bytes;
  }
  return {};
}

// Sees a text as it is parsed, and ends the parse where the text nests too deep: yaml-cpp parses,
// copies and destroys by recursion, and would overflow the stack.
struct TooDeep : YAML::ParserException {
  using YAML::ParserException::ParserException;
};

class Outline final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override { root_.reset(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { see(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { see(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    see(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapEnd() override { --depth_; }

  // Where the root of the document stands that was seen last.
  YAML::Mark root() const { return root_.value_or(YAML::Mark::null_mark()); }

 private:
  void see(const YAML::Mark& mark) {
    if (!root_) root_ = mark;
  }
  void enter(const YAML::Mark& mark) {
    see(mark);
    if (++depth_ > kNestingMax)
      throw TooDeep(mark, "nested more than " + std::to_string(kNestingMax) + " deep");
  }
  std::size_t depth_ = 0;
  std::optional<YAML::Mark> root_;
};

// Why a second document is one too many; `mark` is the place of its root.
Error second_document(std::string_view text, const YAML::Mark& mark, const YamlText& what) {
  const std::string where = yaml_place(what, mark.line, mark.column);
  // yaml-cpp ends a document before a comma outside of brackets.
  const auto at = static_cast<std::size_t>(mark.pos);
  if (mark.pos >= 0 && at < text.size() && text[at] == ',')
    return yaml_error("not valid YAML: a value cannot begin with a comma", where,
                      "remove the comma, or put a text that begins with one in quotes");
  return yaml_error("more than one YAML document", where,
                    "a job is one document; remove the `---`");
}

}  // namespace

std::string yaml_place(const YamlText& text, int line, int column) {
  if (!text.has_lines || line < 0) return text.name;
  return text.name + ":" + std::to_string(line + 1) + ":" + std::to_string(column + 1);
}

// The one place where yaml-cpp may throw: its parser has no other way to report.
Result<YAML::Node> parse_yaml(std::string_view text, const YamlText& what) {
  if (auto checked = check_text(text, what); !checked) return checked.error();
  try {
    std::istringstream stream{std::string(text)};
    // Parsed twice: first for the outline alone, which builds no nodes, then into nodes. No
    // document after the second is looked at: yaml-cpp finds empty ones for ever in front of a
    // comma.
    YAML::Parser parser(stream);
    Outline outline;
    if (!parser.HandleNextDocument(outline)) return YAML::Node();
    if (parser.HandleNextDocument(outline)) return second_document(text, outline.root(), what);
    return YAML::Load(std::string(text));
  } catch (const TooDeep& error) {  // no mistake of one line, which an excerpt would show
    return yaml_error(
        "not valid YAML: " + error.msg, yaml_place(what, error.mark.line, error.mark.column),
        "keep lists and maps in each other to " + std::to_string(kNestingMax) + " levels");
  } catch (const YAML::Exception& error) {
    const YamlFault fault = find_yaml_fault(text, error.mark.line, error.mark.column, error.msg);
    const std::string where = yaml_place(what, fault.line, fault.column);
    return yaml_error("not valid YAML: " + error.msg,
                      what.has_lines ? where + yaml_excerpt(text, fault) : where, fault.help);
  }
}

}  // namespace tandem::job
