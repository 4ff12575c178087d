// Facts about the training set, which other ranks and a resume compare.
//
// A set in the indexed order is counted and recognised by digests at once. One in the streamed
// order would have to be opened for that: what ranks learn of its shards is gathered for each
// checkpoint, and a resume compares every shard when it is opened (lib/data/set/shards.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/set/sample_set.h"
#include "lib/dist/group.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/task/task.h"

namespace scaletrain::train {

class TrainingSet {
 public:
  TrainingSet() = default;
  // `streamed`: in the streamed order. `per_device`: samples of a micro-step.
  TrainingSet(const task::OpenSet& open, bool streamed, std::int64_t per_device);

  // Adds facts that must agree on all ranks to `claims`.
  void claim(std::vector<dist::Claim>& claims) const;

  // Writes facts that a resume compares into `state`; shards of a streamed order are not changed.
  void describe(format::TrainState& state) const;

  // Collects the known sizes and digests of a streamed order's shards from all ranks into `state`,
  // and warns of shards with other samples than `state` says. All ranks call it before a checkpoint
  // is written.
  void gather(dist::Group& group, format::TrainState& state) const;

 private:
  std::shared_ptr<const data::SampleSet> set_;
  bool streamed_ = false;
  std::int64_t samples_ = 0, per_device_ = 0;
  std::string index_digest_, set_digest_;
};

}  // namespace scaletrain::train
