// The free room of all nodes, kept from one placement to the next and ordered, so that to find the
// node for a rank takes about as long on a thousand nodes as on ten. Plain state of one thread. Not
// responsible for the order in which ranks are placed (placement.h).
//
//   FR-1  best() is the node that a look at all nodes would choose.
//   FR-2  The sums and the sets here are those of a count over all nodes.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/fleet/placement_input.h"

namespace tandem::scheduler {

class FreeRoom {
 public:
  using Nodes = std::map<std::string, NodeCapacity, std::less<>>;  // by name

  FreeRoom() = default;
  explicit FreeRoom(std::span<const NodeCapacity> nodes);
  FreeRoom(const FreeRoom& other);
  FreeRoom(FreeRoom&&) = default;
  FreeRoom& operator=(const FreeRoom&) = delete;

  void set(NodeCapacity node);  // a new one, or one that has changed
  void erase(const std::string& node);
  // A rank takes its share of a node, on these of its GPUs; give() undoes it.
  void take(const std::string& node, std::span<const std::int32_t> gpus, const Resources& rank);
  void give(const std::string& node, std::span<const std::int32_t> gpus, const Resources& rank);

  // The best node for the rest of a gang, of which `wanted` ranks have no place: the one that takes
  // most of them; among equals the one with the least to spare, GPUs before CPUs, so that scarce
  // resources and whole nodes stay free. SPREAD turns the second choice around. Names break ties,
  // so that the same nodes give the same placement. Null where no node takes one.
  //
  // Looks at few nodes, but for a gang of several ranks that no node holds together, for nodes
  // whose GPUs are free in pieces, and for those that NCCL rules out.
  const NodeCapacity* best(const Gang& gang, std::int64_t wanted) const;

  bool empty() const { return nodes_.empty(); }
  std::vector<NodeCapacity> all() const;  // copies, by name
  const Nodes& nodes() const { return nodes_; }
  bool fits_empty(const Resources& rank) const;  // whether a node could hold it if nothing ran
  std::string cordoned() const;                  // "a, b's GPU 3"
  // What is free on all nodes together; of the GPUs, what ranks of this gang can take.
  Resources free_for(const Gang& gang) const;
  const Resources& free() const { return free_; }
  std::int64_t largest_memory() const;  // of a node; 0: one announces none, or there is no node
  // How many nodes the calls of best() have looked at: for tests of FR-1's cost.
  std::int64_t looked_at() const { return looked_at_; }

 private:
  struct Place {  // of a node in the order
    std::int64_t gpu = 0, cpu = 0, memory = 0;
    std::string_view name;
    auto operator<=>(const Place&) const = default;
  };
  struct ByAmounts {
    bool operator()(const Resources& one, const Resources& other) const;
  };
  static Place place_of(const NodeCapacity& node);

  void change(const std::string& node, std::span<const std::int32_t> gpus, const Resources& rank,
              std::int64_t times);
  void count(const NodeCapacity& node, int by);  // in the order, the sums and the sets
  std::int64_t ranks_on(const Place& place, const Gang& gang, std::int64_t wanted) const;
  Place least_for(const Gang& gang, std::int64_t wanted) const;
  const NodeCapacity* first_with_all(const Gang& gang, std::int64_t wanted) const;
  const NodeCapacity* last_with_all(const Gang& gang, std::int64_t wanted) const;
  const NodeCapacity* most(const Gang& gang, std::int64_t wanted) const;

  Nodes nodes_;
  std::set<Place> order_;  // of all nodes; the names are those of nodes_
  std::map<Resources, std::int64_t, ByAmounts> sizes_;  // of empty nodes
  std::set<std::string> cordoned_;                      // cordoned_parts() of all nodes
  Resources free_;
  std::int64_t gpus_whole_ = 0;      // GPUs that are wholly free, in thousandths
  std::int64_t memory_unknown_ = 0;  // nodes that announce no memory, where any amount fits
  mutable std::int64_t looked_at_ = 0;
};

}  // namespace tandem::scheduler
