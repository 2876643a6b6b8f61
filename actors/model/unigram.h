// The Unigram model: among all ways to cut a text into pieces of the vocabulary, the one whose
// scores (log-probabilities) have the highest sum (Kudo, 2018; SentencePiece). Ids are those of the
// `tokenizers` library's models::Unigram, its order of additions and its choice between equal sums
// included.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::model {

// Immutable after construction; encode() may be called from several threads at once.
class Unigram {
 public:
  struct Piece {
    std::string text;  // UTF-8, not empty
    double score = 0;
  };
  // The piece of index i has the id i.
  struct Vocabulary {
    std::vector<Piece> pieces;
    std::optional<std::int32_t> unknown;  // unk_id: stands for characters that no piece begins with
    // The pieces of single bytes, for the bytes of an unknown character; -1 in each where the model
    // has no byte_fallback.
    std::array<std::int32_t, 256> bytes;
  };
  explicit Unigram(Vocabulary vocabulary);

  // Appends the ids of `text` (valid UTF-8). Returns the byte offset of a character that nothing in
  // the vocabulary stands for, or nothing if all are encoded. Time and memory grow linearly with
  // the text.
  std::optional<std::size_t> encode(std::string_view text, std::vector<std::int32_t>& ids) const;

 private:
  // The pieces as a tree by bytes. The children of a node are neighbours, ascending by byte.
  struct Node {
    std::uint32_t children = 0;  // index of the first one
    std::int32_t id = -1;        // of the piece that ends here
    std::uint16_t count = 0;     // of children
    unsigned char byte = 0;      // that leads here
  };
  const Node* child(const Node& node, char byte) const;
  void build(const std::vector<Piece>& pieces);

  std::vector<Node> nodes_;  // the root first
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::optional<std::int32_t> unknown_;
  std::array<std::int32_t, 256> bytes_;
};

}  // namespace tandem::model
