#include "lib/parallel/compress/compression.h"

#include <utility>

namespace scaletrain::parallel {

std::vector<Slot> slots_of(const std::vector<units::NamedParameter>& parameters,
                           const std::vector<std::int64_t>& bucket) {
  std::vector<Slot> slots;
  std::int64_t begin = 0;
  for (const std::int64_t number : bucket) {
    const units::NamedParameter& parameter = parameters[static_cast<std::size_t>(number)];
    const std::int64_t elements = parameter.tensor.numel();
    const bool is_matrix = parameter.tensor.dim() > 1 && elements > 0;
    slots.push_back({.name = parameter.name,
                     .begin = std::exchange(begin, begin + elements),
                     .elements = elements,
                     .rows = is_matrix ? parameter.tensor.size(0) : 0,
                     .shard = parameter.state(at::Tensor())});
  }
  return slots;
}

Compression::Compression(const recipe::Compress& compress, std::uint64_t seed,
                         const dist::Group& group)
    : compress_(compress), seed_(seed), device_(group.device()), wire_(group.process_group()) {}

void Compression::add(std::vector<Slot> slots) {
  plain_.push_back(make_plain(wire_));
  compressed_.push_back(make_bucket(compress_, seed_, wire_, std::move(slots), device_));
}

void Compression::begin_step(std::int64_t step) {
  exchanges_.now = step < compress_.warmup ? &plain_ : &compressed_;
}

void Compression::end_step(const at::Tensor& found_inf) {
  for (const auto& bucket : *exchanges_.now) bucket->end_step(found_inf);
}

units::Shards Compression::state() {
  units::Shards result;
  for (const auto& bucket : compressed_) result.merge(bucket->state());
  return result;
}

std::unique_ptr<Compression> make_compression(const std::optional<recipe::Compress>& compress,
                                              std::uint64_t seed, const dist::Group& group) {
  if (!compress || group.world_size() == 1) return nullptr;
  return std::make_unique<Compression>(*compress, seed, group);
}

}  // namespace scaletrain::parallel
