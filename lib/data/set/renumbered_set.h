// A set whose class numbers are replaced by those of the training set, matched by class name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/set/dataset.h"
#include "lib/format/tar/class_names.h"

namespace scaletrain::data {

class RenumberedSet : public Dataset {
 public:
  // `numbers`: number in `classes` of each class of `whole`.
  RenumberedSet(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> numbers,
                std::vector<std::string> classes);

  std::int64_t size() const override { return whole_->size(); }
  std::int64_t shard_count() const override { return whole_->shard_count(); }
  std::int64_t shard_size(std::int64_t shard) const override { return whole_->shard_size(shard); }
  std::vector<std::int64_t> known_sizes() const override { return whole_->known_sizes(); }
  std::int64_t shard_digest(std::int64_t shard) const override;
  std::vector<std::int64_t> open_digests() const override { return whole_->open_digests(); }
  std::vector<DatasetPart> parts() const override { return whole_->parts(); }
  std::string shard_path(std::int64_t shard) const override { return whole_->shard_path(shard); }
  void announce(const std::vector<std::int64_t>& shards) const override {
    whole_->announce(shards);
  }
  std::int64_t label(std::int64_t shard, std::int64_t sample) const override;
  // Throws core::DataError for a label that has no name, too.
  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override;
  std::string image_place(std::int64_t shard, const RawSample& sample) const override {
    return whole_->image_place(shard, sample);
  }
  std::string label_place(std::int64_t shard, const RawSample& sample) const override {
    return whole_->label_place(shard, sample);
  }
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  bool has_name(std::int64_t label) const { return label < std::ssize(numbers_); }
  std::int64_t number_of(std::int64_t label, std::int64_t shard, const RawSample& raw) const;

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::string> classes_;
};

// Returns `set` with the class numbers of `known`; `set` itself if either has no names or both have
// the same list. Throws like format::numbers_by_name; `place` is what names the classes of `set`.
std::shared_ptr<const Dataset> renumbered(std::shared_ptr<const Dataset> set,
                                          const format::ClassNames& known,
                                          const std::string& place);

}  // namespace scaletrain::data
