// Each section is one step, or a Sequence, whose members may be Sequences as well. A step that is
// not implemented and could change the tokens or the text is refused by its name. Steps run here in
// a fixed order; an order in the file that could give another result is refused too.
#include "actors/model/tokenizer_steps.h"

#include <functional>

#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

using nlohmann::json;
using Step = NormalizerStep;

constexpr int kNestingMax = 4;              // levels of Sequences in Sequences
constexpr std::size_t kStepBytesMax = 256;  // of a text that is put in, or replaced
constexpr std::size_t kStepsMax = 64;

using ReadStep = std::function<Result<void>(const json& step, const std::string& type)>;

// Calls `read` for each step of a section, in order. `section` names it in errors; `list` is the
// key under which its Sequence has steps.
struct Section {
  const char* name;
  const char* list;
};
Result<void> each_step(const json& step, const Section& section, const TokenizerFile& file,
                       const ReadStep& read, int depth = 0) {
  const std::string type = type_of(step);
  if (type != "Sequence") {
    if (!step.is_object()) return file.refuse(std::string(section.name) + " " + type);
    return read(step, type);
  }
  const json* list = member(step, section.list);
  if (list == nullptr || !list->is_array() || list->size() > kStepsMax || depth == kNestingMax)
    return file.refuse(std::string(section.name) + " " + type + " of this form");
  for (const json& inner : *list)
    if (Result<void> done = each_step(inner, section, file, read, depth + 1); !done) return done;
  return {};
}

std::string text_of(const json& object, const char* key) {
  const json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

// A count that may be absent; nothing where it is no count.
std::optional<std::size_t> count_of(const json& object, const char* key) {
  const json* value = member(object, key);
  if (value == nullptr) return 0;
  if (!value->is_number_unsigned() || *value > kStepBytesMax) return std::nullopt;
  return value->get<std::size_t>();
}

// {"pattern": {"String": …}, "content": …}
Result<Step> replace_step(const json& step, const char* section, const TokenizerFile& file) {
  const json* pattern = member(step, "pattern");
  const std::string text =
      pattern != nullptr && pattern->is_object() ? text_of(*pattern, "String") : "";
  const std::string content = text_of(step, "content");
  if (text.empty() || text.size() > kStepBytesMax || content.size() > kStepBytesMax)
    return file.refuse(std::string(section) + " Replace of anything but a String");
  return Step{Step::Kind::kReplace, text, content};
}

// Replace as a normalizer: of a String, or of one of the expressions that transformers writes where
// it converts a SentencePiece model.
Result<Step> normalizing_replace(const json& step, const TokenizerFile& file) {
  const json* pattern = member(step, "pattern");
  const std::string regex =
      pattern != nullptr && pattern->is_object() ? text_of(*pattern, "Regex") : "";
  if (regex.empty()) return replace_step(step, "normalizer", file);
  const std::string content = text_of(step, "content");
  if (content.size() > kStepBytesMax)
    return file.refuse("normalizer Replace by more than " + std::to_string(kStepBytesMax) +
                       " bytes");
  if (regex == " {2,}") return Step{Step::Kind::kReplaceRuns, {}, content};
  if (regex == "\\A +| +\\z" && content.empty()) return Step{Step::Kind::kTrimSpaces};
  if (regex == "\\A\u2581") return Step{Step::Kind::kReplaceStart, "\u2581", content};
  return file.refuse("normalizer Replace of the regex '" + regex + "'");
}

Result<void> read_charsmap(const json& step, const TokenizerFile& file, TokenizerParts& parts) {
  const json* blob = member(step, "precompiled_charsmap");
  if (blob == nullptr || !blob->is_string())
    return file.fail("normalizer Precompiled has no text 'precompiled_charsmap'");
  Result<Charsmap> map = Charsmap::parse(blob->get_ref<const std::string&>());
  if (!map) return file.fail("normalizer Precompiled cannot be read: " + map.error().message);
  parts.normalizer.push_back(
      {Step::Kind::kCharsmap, {}, {}, std::make_shared<const Charsmap>(*std::move(map))});
  return {};
}

// Metaspace as pre_tokenizer and as decoder, of older files and newer.
Result<Metaspace> read_metaspace(const json& step, const char* section, const TokenizerFile& file) {
  Metaspace read{.mark = text_of(step, "replacement"), .split = flag(step, "split", true)};
  std::size_t at = 0;
  if (!read.mark.empty() && !first_malformed_utf8(read.mark)) next_code_point(read.mark, at);
  const std::string scheme = text_of(step, "prepend_scheme");
  const bool adds = flag(step, "add_prefix_space", true);
  const bool known = scheme.empty() || scheme == "always" || scheme == "first" || scheme == "never";
  // The library refuses a file that says both "add a space" in the old way and "never" in the new.
  if (at == 0 || at != read.mark.size() || !known ||
      (!adds && (scheme.empty() || scheme == "always")))
    return file.refuse(std::string(section) + " " + step.dump());
  if (scheme == "first") read.prepend = Metaspace::Prepend::kFirst;
  if (scheme == "never" || !adds) read.prepend = Metaspace::Prepend::kNever;
  return read;
}

Result<void> add_split(Result<WordSplit> split, TokenizerParts& parts) {
  if (!split) return split.error();
  parts.splits.push_back(*std::move(split));
  return {};
}

Result<void> read_split(const json& step, const TokenizerFile& file, TokenizerParts& parts) {
  struct Name {
    const char* text;
    SplitBehavior behavior;
  };
  constexpr Name kNames[] = {{"Isolated", SplitBehavior::kIsolated},
                             {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
                             {"MergedWithNext", SplitBehavior::kMergedWithNext},
                             {"Contiguous", SplitBehavior::kContiguous},
                             {"Removed", SplitBehavior::kRemoved}};
  const std::string behavior = text_of(step, "behavior");
  WordSplit::Options options{.invert = flag(step, "invert", false)};
  bool known = false;
  for (const Name& name : kNames)
    if (behavior == name.text) {
      options.behavior = name.behavior;
      known = true;
    }
  if (!known) return file.refuse("pre_tokenizer Split with behavior '" + behavior + "'");
  const json* pattern = member(step, "pattern");
  if (pattern == nullptr || !pattern->is_object())
    return file.refuse("pre_tokenizer Split without a pattern");
  if (const std::string text = text_of(*pattern, "String"); !text.empty())
    return add_split(WordSplit::of_text(text, file.name, options), parts);
  return add_split(WordSplit::make(text_of(*pattern, "Regex"), file.name, options), parts);
}

Result<void> read_byte_level(const json& step, const TokenizerFile& file, TokenizerParts& parts) {
  if (parts.symbols == Symbols::kCharacters)
    return file.refuse("pre_tokenizer ByteLevel without its decoder");
  if (parts.metaspace) return file.refuse("pre_tokenizer ByteLevel after Metaspace");
  if (parts.whitespace_split) return file.refuse("pre_tokenizer ByteLevel after WhitespaceSplit");
  parts.symbols = Symbols::kBytes;
  parts.add_prefix_space = flag(step, "add_prefix_space", true);
  // The library would then add a space to every piece of the earlier step.
  if (parts.add_prefix_space && !parts.splits.empty())
    return file.refuse("pre_tokenizer ByteLevel with add_prefix_space after Split or Digits");
  if (!flag(step, "use_regex", true)) return {};
  return add_split(WordSplit::make(kGpt2Regex, file.name, {}), parts);
}

}  // namespace

Error TokenizerFile::fail(const std::string& problem) const {
  return Error{.message = "tokenizer: " + problem, .where = name};
}

Error TokenizerFile::refuse(const std::string& what) const {
  return Error{.message = "tokenizer: " + what + " is not supported",
               .where = name,
               .help =
                   "supported: BPE over bytes, as GPT-2, Llama 3, Qwen and DeepSeek have it, BPE "
                   "as SentencePiece makes it, as Llama 2, Mistral and Gemma have it, and "
                   "Unigram; take the tokenizer.json that was published with such a model"};
}

const json* member(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

bool flag(const json& object, const char* key, bool fallback) {
  const json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

std::string type_of(const json& step) {
  const json* type = step.is_object() ? member(step, "type") : nullptr;
  return type != nullptr && type->is_string() ? type->get<std::string>() : step.dump();
}

Result<void> read_normalizer(const json& step, const TokenizerFile& file, TokenizerParts& parts) {
  return each_step(step, {"normalizer", "normalizers"}, file,
                   [&](const json& one, const std::string& type) -> Result<void> {
                     if (type == "NFC") {
                       parts.normalizer.push_back({Step::Kind::kNfc});
                       return {};
                     }
                     if (type == "Prepend") {
                       const std::string content = text_of(one, "prepend");
                       if (content.empty() || content.size() > kStepBytesMax)
                         return file.refuse("normalizer Prepend of this text");
                       parts.normalizer.push_back({Step::Kind::kPrepend, {}, content});
                       return {};
                     }
                     if (type == "Precompiled") return read_charsmap(one, file, parts);
                     if (type == "Strip") {
                       if (flag(one, "strip_left", true))
                         parts.normalizer.push_back({Step::Kind::kStripLeft});
                       if (flag(one, "strip_right", true))
                         parts.normalizer.push_back({Step::Kind::kStripRight});
                       return {};
                     }
                     if (type != "Replace") return file.refuse("normalizer " + type);
                     Result<Step> replace = normalizing_replace(one, file);
                     if (!replace) return replace.error();
                     parts.normalizer.push_back(*std::move(replace));
                     return {};
                   });
}

Result<void> read_pre_tokenizer(const json& step, const TokenizerFile& file,
                                TokenizerParts& parts) {
  return each_step(step, {"pre_tokenizer", "pretokenizers"}, file,
                   [&](const json& one, const std::string& type) -> Result<void> {
                     if (parts.symbols == Symbols::kBytes)
                       return file.refuse("pre_tokenizer " + type + " after ByteLevel");
                     if (type == "ByteLevel") return read_byte_level(one, file, parts);
                     if (type == "Split") return read_split(one, file, parts);
                     if (type == "Digits") {
                       const bool single = flag(one, "individual_digits", false);
                       return add_split(
                           WordSplit::make(single ? kDigitRegex : kDigitsRegex, file.name, {}),
                           parts);
                     }
                     if (type == "WhitespaceSplit") {
                       if (parts.metaspace || !parts.splits.empty())
                         return file.refuse("pre_tokenizer WhitespaceSplit after another step");
                       parts.whitespace_split = true;
                       return {};
                     }
                     if (type != "Metaspace") return file.refuse("pre_tokenizer " + type);
                     if (parts.metaspace || !parts.splits.empty())
                       return file.refuse("pre_tokenizer Metaspace after another step");
                     Result<Metaspace> metaspace = read_metaspace(one, "pre_tokenizer", file);
                     if (!metaspace) return metaspace.error();
                     parts.metaspace = *std::move(metaspace);
                     return {};
                   });
}

// Replace, Metaspace and ByteFallback act on each token, in this order; Fuse joins the tokens, and
// Strip then acts on the whole text.
Result<void> read_decoder(const json& step, const TokenizerFile& file, TokenizerParts& parts) {
  if (type_of(step) == "ByteLevel") {
    parts.symbols = Symbols::kAscii;  // until the pre_tokenizer says that it is kBytes
    return {};
  }
  parts.symbols = Symbols::kCharacters;
  bool fused = false;
  DecoderRules& rules = parts.decoder;
  return each_step(
      step, {"decoder", "decoders"}, file,
      [&](const json& one, const std::string& type) -> Result<void> {
        const auto start = count_of(one, "start"), end = count_of(one, "stop");
        const bool late = fused || rules.byte_fallback || !rules.first_without.empty();
        if (type == "Fuse") {
          fused = true;
        } else if (type == "ByteFallback") {
          if (fused) return file.refuse("decoder ByteFallback after Fuse");
          rules.byte_fallback = true;
        } else if (type == "Replace" && !late) {
          Result<Step> replace = replace_step(one, "decoder", file);
          if (!replace) return replace.error();
          rules.replace.push_back(*std::move(replace));
        } else if (type == "Metaspace" && !late) {
          const Result<Metaspace> metaspace = read_metaspace(one, "decoder", file);
          if (!metaspace) return metaspace.error();
          rules.replace.push_back({Step::Kind::kReplace, metaspace->mark, " "});
          if (metaspace->prepend != Metaspace::Prepend::kNever)
            rules.first_without = metaspace->mark;
        } else if (type == "Strip" && fused && text_of(one, "content") == " " && start &&
                   end == 0u) {
          rules.strip += *start;
        } else {
          return file.refuse("decoder " + (late || type == "Strip" ? one.dump() : type));
        }
        return {};
      });
}

namespace {

// `single` is a list of {"SpecialToken": {"id": NAME}} around one {"Sequence": {"id": "A"}};
// special_tokens.NAME.ids are the ids that a name stands for.
Result<void> read_template(const json& step, const TokenizerFile& file, TokenizerParts& parts) {
  const json* single = member(step, "single");
  const json* tokens = member(step, "special_tokens");
  if (single == nullptr || !single->is_array())
    return file.fail("post_processor TemplateProcessing has no list 'single'");
  std::vector<std::int32_t> before, after;
  int texts = 0;
  for (const json& piece : *single) {
    if (piece.is_object() && piece.contains("Sequence") &&
        piece.value(json::json_pointer("/Sequence/id"), "A") == "A") {
      ++texts;
      continue;
    }
    const std::string name = piece.is_object() && piece.contains("SpecialToken")
                                 ? piece.value(json::json_pointer("/SpecialToken/id"), "")
                                 : "";
    const json* token =
        tokens != nullptr && tokens->is_object() ? member(*tokens, name.c_str()) : nullptr;
    const json* ids = token != nullptr && token->is_object() ? member(*token, "ids") : nullptr;
    if (ids == nullptr || !ids->is_array())
      return file.fail("post_processor TemplateProcessing has " + piece.dump() +
                       ", whose ids special_tokens does not give");
    for (const json& id : *ids) {
      if (!id.is_number_integer() || id < 0 || id >= parts.bytes.size())
        return file.fail("post_processor TemplateProcessing has the token id " + id.dump() +
                         ", which neither model.vocab nor added_tokens has");
      (texts == 0 ? before : after).push_back(id.get<std::int32_t>());
    }
  }
  if (texts != 1)
    return file.refuse("post_processor TemplateProcessing whose 'single' has the text " +
                       std::to_string(texts) + " times");
  parts.before.insert(parts.before.begin(), before.begin(), before.end());
  parts.after.insert(parts.after.end(), after.begin(), after.end());
  return {};
}

}  // namespace

// A ByteLevel post_processor only changes offsets of tokens in the text, which are not kept here.
Result<void> read_post_processor(const json& step, const TokenizerFile& file,
                                 TokenizerParts& parts) {
  return each_step(step, {"post_processor", "processors"}, file,
                   [&](const json& one, const std::string& type) -> Result<void> {
                     if (type == "ByteLevel") return {};
                     if (type == "TemplateProcessing") return read_template(one, file, parts);
                     return file.refuse("post_processor " + type);
                   });
}

}  // namespace tandem::model
