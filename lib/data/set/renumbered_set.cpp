#include "lib/data/set/renumbered_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "lib/core/error.h"

namespace scaletrain::data {

RenumberedSet::RenumberedSet(std::shared_ptr<const Dataset> whole,
                             std::vector<std::int64_t> numbers, std::vector<std::string> classes)
    : whole_(std::move(whole)), numbers_(std::move(numbers)), classes_(std::move(classes)) {}

std::int64_t RenumberedSet::shard_digest(std::int64_t shard) const {
  return digest_number(
      fmt::format("{} as {}", whole_->shard_digest(shard), fmt::join(numbers_, " ")));
}

std::int64_t RenumberedSet::label(std::int64_t shard, std::int64_t sample) const {
  const std::int64_t label = whole_->label(shard, sample);
  if (label < 0) return label;
  if (!has_name(label)) return number_of(label, shard, whole_->read(shard, sample));
  return numbers_[static_cast<std::size_t>(label)];
}

void RenumberedSet::read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const {
  whole_->read_into(shard, sample, raw);
  if (raw.label >= 0) {
    raw.label = number_of(raw.label, shard, raw);
    return;
  }
  for (std::int64_t& label : raw.labels) label = number_of(label, shard, raw);
}

std::int64_t RenumberedSet::number_of(std::int64_t label, std::int64_t shard,
                                      const RawSample& raw) const {
  if (has_name(label)) return numbers_[static_cast<std::size_t>(label)];
  throw core::DataError(
      whole_->label_place(shard, raw),
      fmt::format("label {} has no name among the {} classes of its set, which are matched by name",
                  label, numbers_.size()),
      "correct the label, or name the class in classes.json");
}

std::shared_ptr<const Dataset> renumbered(std::shared_ptr<const Dataset> set,
                                          const format::ClassNames& known,
                                          const std::string& place) {
  if (known.names.empty() || set->classes().empty() || set->classes() == known.names) return set;
  std::vector<std::int64_t> numbers = format::numbers_by_name(set->classes(), known, place);
  return std::make_shared<RenumberedSet>(std::move(set), std::move(numbers), known.names);
}

}  // namespace scaletrain::data
