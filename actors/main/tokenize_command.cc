// Two forms. Texts are words of the command line or the whole of standard input, and the answer is
// for people or one JSON document. With --jsonl a program sends one JSON value per line and gets
// exactly one line for each, so that it may pair them by number; the first bad line therefore ends
// the command with its number.
//
// Text is encoded as a prompt is (encode_prompt), with the tokens that the post-processor puts
// around a text. Decoding keeps special tokens, so that the ids can be recognised in the text.
#include "actors/main/tokenize_command.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>

#include "actors/cli/shared_options.h"
#include "actors/cli/views.h"
#include "actors/model/tokenizer.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::app {
namespace {

using model::SpecialTokens;
using model::Tokenizer;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

Error invalid(std::string message, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), "", std::move(help)};
}

// The id that `word` names. An id past the vocabulary is an error here, unlike in
// Tokenizer::decode(): the user has mistyped it.
Result<std::int32_t> parse_id(const Tokenizer& tokenizer, std::string_view word) {
  const std::int32_t count = tokenizer.vocab_size();
  std::int32_t id = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc{} || stop != word.data() + word.size() || id < 0 || id >= count)
    return invalid("`" + std::string(word) + "` is not a token id",
                   "the ids of this tokenizer are 0 to " + std::to_string(count - 1) +
                       "; give them as `tandem tokenize` prints them: 12 7 431");
  return id;
}

// Appends token ids that are separated by white space, commas or brackets, so that a JSON list and
// the printed form will both do.
Result<void> parse_ids(const Tokenizer& tokenizer, std::string_view text, Ids& ids) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  for (std::size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const auto id = parse_id(tokenizer, text.substr(at, end - at));
    if (!id) return id.error();
    ids.push_back(*id);
    at = end;
  }
  return {};
}

Result<Ids> encoded(const Tokenizer& tokenizer, const std::string& text) {
  auto ids = tokenizer.encode_prompt(text);
  if (!ids)
    return invalid(ids.error().message, "give UTF-8 text that the model's tokenizer covers");
  return ids;
}

// The answer to one line of --jsonl: a list of ids for a string, or with `decode` the reverse.
Result<json> answer_to(const Tokenizer& tokenizer, std::string_view line, bool decode) {
  const json given = parse_json(line);
  if (!decode) {
    if (!given.is_string())
      return invalid("the line is not a JSON string in UTF-8", R"(as in "12 + 30 =")");
    auto ids = encoded(tokenizer, given.get<std::string>());
    if (!ids) return ids.error();
    return json(*std::move(ids));
  }
  if (!given.is_array())
    return invalid("the line is not a JSON list of token ids", "as in [12,7,431]");
  Ids ids;
  for (const json& id : given) {
    // The id is read as text, so that 7.5, "7" and true are no ids.
    const auto known = parse_id(tokenizer, dump_json(id));
    if (!known) return known.error();
    ids.push_back(*known);
  }
  return json(tokenizer.decode(ids, SpecialTokens::kKeep));
}

constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;
constexpr std::size_t kTextBytesMax = std::size_t{256} << 20;

// Reads up to `end`, or to the end of the input where that is nullopt. False, with nothing read, at
// the end of the input. More than `bytes_max` bytes are an error: the input may have no end.
Result<bool> read_until(std::istream& in, std::optional<char> end, std::size_t bytes_max,
                        std::string& text) {
  text.clear();
  using Traits = std::istream::traits_type;
  for (;;) {
    const auto c = in.rdbuf()->sbumpc();
    if (Traits::eq_int_type(c, Traits::eof())) return !text.empty();
    if (end && Traits::to_char_type(c) == *end) return true;
    if (text.size() == bytes_max)
      return Error{
          ErrorCode::kInvalid,
          "more than " + std::to_string(bytes_max) + " bytes" + (end ? " in one line" : ""),
          "the input", "give it in smaller pieces"};
    text += Traits::to_char_type(c);
  }
}

// Line n of the output answers line n of `lines`, so that no line may be left out.
Result<void> tokenize_lines(const Tokenizer& tokenizer, const TokenizeCommand& command,
                            std::istream& lines, std::ostream& out) {
  std::string line;
  for (std::int64_t number = 1;; ++number) {
    const auto more = read_until(lines, '\n', kLineBytesMax, line);
    if (!more) return more.error();
    if (!*more) break;
    auto answer = answer_to(tokenizer, line, command.decode);
    if (!answer) {
      Error error = answer.error();
      error.where = *command.jsonl + ":" + std::to_string(number);
      return error;
    }
    out << cli::shown_json(*answer) << "\n";
  }
  return {};
}

Result<void> tokenize_file(const Tokenizer& tokenizer, const TokenizeCommand& command,
                           std::istream& in, std::ostream& out) {
  if (*command.jsonl == "-") return tokenize_lines(tokenizer, command, in, out);
  // <(command) is a pipe whose writer exists; any other pipe would be waited for.
  if (!is_descriptor(*command.jsonl))
    if (const auto regular = refuse_irregular(*command.jsonl); !regular) return regular;
  std::ifstream file(*command.jsonl);
  if (!file) return file_error("open file", *command.jsonl);
  return tokenize_lines(tokenizer, command, file, out);
}

// [{"text": …, "ids": […]}, …]; with --decode one such object.
Result<json> tokenize_texts(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                            bool decode) {
  json items = json::array();
  Ids all;
  for (const std::string& text : texts) {
    // All words together are one sequence of ids: a character may take several tokens.
    if (decode) {
      if (auto parsed = parse_ids(tokenizer, text, all); !parsed) return parsed.error();
      continue;
    }
    const auto ids = encoded(tokenizer, text);
    if (!ids) return ids.error();
    items.push_back({{"text", text}, {"ids", *ids}});
  }
  if (decode)
    items.push_back({{"ids", all}, {"text", tokenizer.decode(all, SpecialTokens::kKeep)}});
  return items;
}

std::string shown_item(const json& item, const TokenizeCommand& command, bool terminal) {
  std::string line;
  if (command.decode)
    line = item["text"].get<std::string>();
  else
    for (const json& id : item["ids"]) line += (line.empty() ? "" : " ") + dump_json(id);
  return terminal ? visible(line, Lines::kMany) : line;
}

}  // namespace

int tokenize(const TokenizeCommand& command, std::istream& in, const cli::Console& console) {
  const auto tokenizer = Tokenizer::read(command.model / "tokenizer.json");
  if (!tokenizer) return console.complain(tokenizer.error());
  if (command.jsonl) {
    const auto done = tokenize_file(*tokenizer, command, in, console.out);
    return done ? 0 : console.complain(done.error());
  }
  std::vector<std::string> texts = command.texts;
  if (texts.empty()) {
    const auto read = read_until(in, std::nullopt, kTextBytesMax, texts.emplace_back());
    if (!read) return console.complain(read.error());
  }
  const auto items = tokenize_texts(*tokenizer, texts, command.decode);
  if (!items) return console.complain(items.error());
  if (command.output == cli::OutputForm::kJson) {
    console.out << cli::shown_json(*items, 2) << "\n";
    return 0;
  }
  for (const json& item : *items)
    console.out << shown_item(item, command, console.terminal) << "\n";
  return 0;
}

cli::VerbHelp TokenizeCommand::help() {
  return {.name = "tokenize",
          .group = cli::VerbGroup::kModels,
          .description = "The token ids of texts, or the text of token ids",
          .examples = {"tandem tokenize MODEL_DIR 'Once upon a time'",
                       "tandem tokenize MODEL_DIR < prompt.txt",
                       "tandem tokenize MODEL_DIR --decode 12 7 431",
                       "tandem tokenize MODEL_DIR --jsonl texts.jsonl"}};
}

void TokenizeCommand::options(cli::Options& options) {
  add_model(options, model);
  const cli::Option text =
      options.add("TEXT", texts, "What to tokenize; else standard input is read")
          .value("...")
          .as_written();
  options.flag("--decode", decode, "Take ids and print their text");
  options
      .add("--jsonl", jsonl,
           "Take a JSON string from each line of FILE (-: of standard input) and print the "
           "JSON list of its ids on one line; with --decode the reverse")
      .value("FILE")
      .excludes(text);
  using enum cli::OutputForm;
  add_output(options, output, {kTable, kJson});
}

Result<int> TokenizeCommand::run(const cli::VerbContext& context) {
  return tokenize(*this, std::cin, context.console);
}

}  // namespace tandem::app
