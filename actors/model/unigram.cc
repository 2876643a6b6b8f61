// Viterbi's algorithm over the places between characters. The best path to each place is extended
// by every piece that begins there, which a walk down the tree of pieces finds.
#include "actors/model/unigram.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score, as in SentencePiece

// The best way to reach a place of the text.
struct Place {
  double score = 0;
  std::uint32_t begin = 0;   // where its last piece begins
  std::int32_t id = kNoWay;  // of its last piece
  static constexpr std::int32_t kNoWay = -2, kUnknown = -1;
};

}  // namespace

Unigram::Unigram(Vocabulary vocabulary) : unknown_(vocabulary.unknown), bytes_(vocabulary.bytes) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const Piece& piece : vocabulary.pieces) {
    scores_.push_back(piece.score);
    lowest = std::min(lowest, piece.score);
  }
  unknown_score_ = lowest - kUnknownPenalty;
  build(vocabulary.pieces);
}

// Breadth first: the node of a range of sorted pieces that agree in their first `depth` bytes gets
// one child for each byte that follows.
void Unigram::build(const std::vector<Piece>& pieces) {
  std::vector<std::int32_t> sorted(pieces.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::stable_sort(sorted, {}, [&](std::int32_t i) -> const std::string& {
    return pieces[static_cast<std::size_t>(i)].text;
  });
  const auto text = [&](std::size_t at) -> const std::string& {
    return pieces[static_cast<std::size_t>(sorted[at])].text;
  };
  struct Range {
    std::size_t begin, end, depth;
  };
  std::vector<Range> ranges{{0, pieces.size(), 0}};
  nodes_.emplace_back();
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    auto [at, end, depth] = ranges[node];
    // A piece that occurs twice has its last id.
    for (; at < end && text(at).size() == depth; ++at) nodes_[node].id = sorted[at];
    nodes_[node].children = static_cast<std::uint32_t>(nodes_.size());
    while (at < end) {
      const char byte = text(at)[depth];
      const std::size_t begin = at;
      while (at < end && text(at)[depth] == byte) ++at;
      nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
      ranges.push_back({begin, at, depth + 1});
      ++nodes_[node].count;
    }
  }
}

const Unigram::Node* Unigram::child(const Node& node, char byte) const {
  const auto wanted = static_cast<unsigned char>(byte);
  const Node* const begin = nodes_.data() + node.children;
  const Node* const end = begin + node.count;
  const Node* const at = std::lower_bound(
      begin, end, wanted, [](const Node& a, unsigned char b) { return a.byte < b; });
  return at != end && at->byte == wanted ? at : nullptr;
}

std::optional<std::size_t> Unigram::encode(std::string_view text,
                                           std::vector<std::int32_t>& ids) const {
  std::vector<Place> places(text.size() + 1);
  const auto reach = [&](std::size_t begin, std::size_t end, std::int32_t id, double score) {
    Place& place = places[end];
    const double sum = score + places[begin].score;
    if (place.id != Place::kNoWay && !(sum > place.score)) return;
    place = {sum, static_cast<std::uint32_t>(begin), id};
  };
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t next = begin;
    next_code_point(text, next);
    bool whole_character = false;  // some piece is just this character
    const Node* node = nodes_.data();
    for (std::size_t at = begin; at < text.size(); ++at) {
      node = child(*node, text[at]);
      if (node == nullptr) break;
      if (node->id < 0) continue;
      reach(begin, at + 1, node->id, scores_[static_cast<std::size_t>(node->id)]);
      whole_character = whole_character || at + 1 == next;
    }
    if (!whole_character) reach(begin, next, Place::kUnknown, unknown_score_);
    begin = next;
  }
  // Back from the end; unknown characters in a row are one stretch.
  struct Chosen {
    std::size_t begin, end;
    std::int32_t id;
  };
  std::vector<Chosen> path;
  for (std::size_t end = text.size(); end > 0;) {
    const Place& place = places[end];
    if (place.id < 0 && !path.empty() && path.back().id < 0)
      path.back().begin = place.begin;
    else
      path.push_back({place.begin, end, place.id});
    end = place.begin;
  }
  const bool falls_back = bytes_[0] >= 0;
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    if (at->id >= 0) {
      ids.push_back(at->id);
    } else if (falls_back) {
      for (const char c : text.substr(at->begin, at->end - at->begin))
        ids.push_back(bytes_[static_cast<unsigned char>(c)]);
    } else if (unknown_) {
      ids.push_back(*unknown_);
    } else {
      return at->begin;
    }
  }
  return std::nullopt;
}

}  // namespace tandem::model
