#include "lib/data/set/subset.h"

#include <fmt/format.h>

#include <utility>

#include "lib/data/set/set_digest.h"

namespace scaletrain::data {
namespace {

constexpr std::uint64_t kChoiceKey = 0x737562736574;  // ASCII "subset": the same for every run

}  // namespace

Subset::Subset(std::shared_ptr<const Dataset> whole, std::int64_t size)
    : whole_(std::move(whole)),
      size_(size),
      offsets_(shard_sizes(*whole_)),
      choice_(kChoiceKey, whole_->size()) {}

std::int64_t Subset::shard_digest(std::int64_t /*shard*/) const {
  return digest_number(fmt::format("{} of {}", size_, index_digest(*whole_)));
}

std::int64_t Subset::label(std::int64_t /*shard*/, std::int64_t sample) const {
  const SamplePlace there = place(sample);
  return whole_->label(there.shard, there.sample);
}

void Subset::read_into(std::int64_t /*shard*/, std::int64_t sample, RawSample& raw) const {
  const SamplePlace there = place(sample);
  whole_->read_into(there.shard, there.sample, raw);
  raw.stored_shard = there.shard;
}

std::string Subset::image_place(std::int64_t /*shard*/, const RawSample& sample) const {
  return whole_->image_place(sample.stored_shard, sample);
}

std::string Subset::label_place(std::int64_t /*shard*/, const RawSample& sample) const {
  return whole_->label_place(sample.stored_shard, sample);
}

SamplePlace Subset::place(std::int64_t sample) const { return offsets_.locate(choice_(sample)); }

}  // namespace scaletrain::data
