// Comparison of data-parallel replicas against silent data corruption: digests of the parameters
// and the optimizer state of all ranks that own the same elements.
//
// Without a hardware error these are equal bit for bit: every rank applies the same update to the
// result of the same reduction. Sharded tensors are compared over the ranks that own the same
// shard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/train/run/run.h"

namespace scaletrain::train {

// The first tensor in which ranks differ, in the order of the lowest rank that holds it.
struct ReplicaDifference {
  std::string tensor;        // "fc.weight", or of the optimizer "exp_avg/fc.weight"
  std::int64_t element = 0;  // first differing one, in row-major order of the full tensor
  std::int64_t tensors = 0;  // number of tensors that differ among these ranks
  std::vector<std::pair<int, double>> values;  // of the element, by rank of the job
  // Ranks that differ from a majority of those with the same elements; empty: there is none, as
  // between two replicas.
  std::vector<int> wrong;

  // "exp_avg/fc.weight, element 7: 0.5 on rank 0, 1e+30 on rank 1; 3 tensors differ"
  std::string text() const;
  // "rank 1 is wrong: the 3 other ranks agree", or why no rank can be named.
  std::string verdict() const;
};

class ReplicaCheck {
 public:
  explicit ReplicaCheck(Run& run);

  // Returns why nothing can be compared; "" if replicas can.
  std::string not_applicable() const;

  // Compares the replicas after a step; nullopt if they are equal. The same on all ranks of the
  // run. Waits for the device. Collective; call only if applicable.
  std::optional<ReplicaDifference> compare();

 private:
  struct Item {
    std::int64_t key = 0;  // of its name and its elements
    std::string name;
    units::Shard shard;
  };
  class Table;

  std::vector<Item> items() const;
  Table gather(const std::vector<Item>& own);
  std::optional<ReplicaDifference> locate(const Table& table, const std::vector<Item>& own);
  std::vector<double> values_at(const Item* item, std::int64_t element);

  Run& run_;
  dist::Group& replicas_;        // ranks that own the same elements
  std::int64_t most_items_ = 0;  // of any of them; 0: not known yet
};

}  // namespace scaletrain::train
