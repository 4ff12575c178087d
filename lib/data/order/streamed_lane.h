// One lane of the streamed order: the sequence of samples that it reads from its shards of one
// source.
//
// The lanes share the shards: shard s belongs to lane s mod `lanes`. If there are fewer shards than
// lanes, several lanes share a shard, each with every m-th sample. A lane permutes its shards, and
// samples within groups of shuffle_shards shards. After its last shard it starts its next pass in
// another order, independently of the other lanes.
//
// The size of a shard is looked up only when the lane reaches the shard or a later number is
// requested.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/philox.h"
#include "lib/data/order/shard_offsets.h"

namespace scaletrain::data {

struct LaneOptions {
  std::uint64_t seed = 0;
  std::int64_t shards = 0;
  std::int64_t lanes = 1;
  std::int64_t shuffle_shards = 1;    // 0 counts as 1
  std::string place = "/data/lanes";  // for the error about a lane without a sample
};

class StreamedLane {
 public:
  // Returns the number of samples in a shard; may open it. Called by any thread, but not
  // concurrently for one lane.
  using SizeOf = std::function<std::int64_t(std::int64_t shard)>;

  StreamedLane(const LaneOptions& options, std::int64_t lane, SizeOf size_of);

  // Returns sample `number` of the lane, counted over all passes; any thread. Throws
  // core::DataError if the lane has no sample, and the errors of size_of.
  SamplePlace at(std::int64_t number);

  // Returns another sample from the group of shards of sample `number`, to replace a bad one.
  SamplePlace replacement(std::int64_t number, core::Philox& draws);

  // The shards needed from sample `number` on, in order: two groups of them. Looks up no size:
  // returns {} while another thread looks one up, or if sizes before `number` are not known yet.
  std::vector<std::int64_t> upcoming(std::int64_t number);

 private:
  // One pass over the lane's shards: their order, and where each ends. Sizes are looked up a group
  // at a time.
  struct Pass {
    std::int64_t number = 0;
    std::vector<std::int64_t> shards;
    std::vector<std::int64_t> ends;  // sample counts up to the end of each shard of known size

    std::int64_t end() const { return ends.empty() ? 0 : ends.back(); }
    bool whole() const { return ends.size() == shards.size(); }
  };

  struct Found {
    const Pass* pass = nullptr;
    std::int64_t offset = 0, group = 0, begin = 0, end = 0;  // the group's samples: [begin, end)
  };

  Found find(std::int64_t number);
  Found in_pass(const Pass& pass, std::int64_t offset) const;
  SamplePlace place(const Pass& pass, std::int64_t offset) const;
  std::int64_t group_size() const;
  void learn_group(Pass& pass) const;
  // Keeps the first pass for its length, and two others because read-ahead overlaps passes.
  Pass& pass(std::int64_t number);
  Pass make_pass(std::int64_t number) const;

  LaneOptions options_;
  std::int64_t lane_;
  SizeOf size_of_;
  std::vector<std::int64_t> shards_;
  std::int64_t part_ = 0, parts_ = 1;  // reads every parts_-th sample of its shards, from part_ on
  std::mutex mutex_;
  Pass first_;
  std::array<std::optional<Pass>, 2> recent_;
};

}  // namespace scaletrain::data
