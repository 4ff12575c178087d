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

  // Adds what all ranks must have alike to `claims`.
  void claim(std::vector<dist::Claim>& claims) const;

  // Writes what a resume compares into `state`; shards of the streamed order stay as they are.
  void describe(format::TrainState& state) const;

  // Puts what any rank knows of the streamed order's shards into `state`, and warns of those with
  // other samples than `state` says. Every rank calls it before a checkpoint is written.
  void gather(dist::Group& group, format::TrainState& state) const;

 private:
  std::shared_ptr<const data::SampleSet> set_;
  bool streamed_ = false;
  std::int64_t samples_ = 0, per_device_ = 0;
  std::string index_digest_, set_digest_;
};

}  // namespace scaletrain::train
