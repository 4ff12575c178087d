// Reads one file of a checkpoint into shards of any layout, whatever layout wrote it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lib/checkpoint/tensors.h"
#include "lib/dist/group.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/units/shard.h"

namespace scaletrain::checkpoint {

struct ReadOptions {
  bool casts_floats = false;   // a stored floating-point dtype may differ from the shard's
  bool allows_others = false;  // the file may have tensors that are not wanted
};

// A file that this rank can open, compared with the shards that it is to fill.
class ShardReader {
 public:
  // A target shard that this rank does not hold is a tensor, or a parameter with state, of other
  // ranks: the file may have it. Throws core::CheckpointError naming the first three tensors of
  // each kind that are missing, left over, of another shape or of another dtype.
  ShardReader(const std::filesystem::path& file, const units::Shards& wanted,
              ReadOptions options = {});

  // Fills `targets`, any shards of the tensors that the file was compared with, on several threads.
  void read(
      const units::Shards& targets, const Progress& progress = [] {}) const;

 private:
  format::StoredTensors file_;
};

// Ranks that open the file. With kRank0 rank 0 reads full tensors and broadcasts them, because
// other nodes may not see the folder; kEachRank suits a model that is too large for one rank.
enum class ReadBy { kEachRank, kRank0 };

// Fills shards on all ranks of a group.
class GroupReader {
 public:
  // `find` returns the file's path, on ranks that open it. Throws there what ShardReader does.
  GroupReader(dist::Group& group, ReadBy by, const std::function<std::filesystem::path()>& find,
              units::Shards wanted, ReadOptions options = {});

  // Collective, once all ranks have a reader.
  void read(const Progress& progress = [] {});

 private:
  void read_and_broadcast(const Progress& progress);

  dist::Group& group_;
  ReadBy by_;
  units::Shards shards_;
  std::optional<ShardReader> reader_;  // on ranks that open the file
};

}  // namespace scaletrain::checkpoint
