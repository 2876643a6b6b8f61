// The tokenizer.json of a model that somebody downloaded, and a text to encode with it, which
// stands behind a line "--". Checked: every id of the text is within the vocabulary; what decodes
// is UTF-8; a text decoded piece by piece is the text decoded at once (TK-2); ids of no token
// decode too.
#include <limits>

#include "actors/model/tokenizer.h"
#include "actors/model/utf8.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

using model::SpecialTokens;

void decode(const model::Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  for (const SpecialTokens special : {SpecialTokens::kKeep, SpecialTokens::kSkip}) {
    const std::string whole = tokenizer.decode(ids, special);
    CHECK(!model::first_malformed_utf8(whole));
    model::StreamDecoder stream(tokenizer, special);
    std::string joined;
    for (const std::int32_t id : ids) joined += stream.push(id);
    joined += stream.finish();
    CHECK(joined == whole);
  }
}

}  // namespace

void tokenizer(std::string_view input) {
  Pieces pieces(input);
  const auto tokenizer = model::Tokenizer::parse(pieces.text(), "tokenizer.json");
  if (!tokenizer) {
    CHECK(tokenizer.error().where.starts_with("tokenizer.json"));
    return;
  }
  const std::string_view text = pieces.rest();
  for (const auto& ids : {tokenizer->encode(text), tokenizer->encode_prompt(text)}) {
    if (!ids) continue;
    for (const std::int32_t id : *ids) CHECK(id >= 0 && id < tokenizer->vocab_size());
    decode(*tokenizer, *ids);
  }
  std::vector<std::int32_t> ids{-1, std::numeric_limits<std::int32_t>::max(),
                                std::numeric_limits<std::int32_t>::min(), tokenizer->vocab_size()};
  for (const char c : text.substr(0, 64)) ids.push_back(static_cast<unsigned char>(c));
  decode(*tokenizer, ids);
}

}  // namespace tandem::fuzz
