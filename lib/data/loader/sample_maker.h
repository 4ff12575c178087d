// Makes one sample of a batch: looks it up, reads, checks, decodes and transforms it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "lib/core/philox.h"
#include "lib/data/augment/transform.h"
#include "lib/data/image/decode.h"
#include "lib/data/loader/class_flags.h"
#include "lib/data/loader/jpeg_warnings.h"
#include "lib/data/loader/read_ahead.h"
#include "lib/data/order/order.h"
#include "lib/data/set/dataset.h"

namespace scaletrain::data {

// Source and options of a loader's samples; shared by its threads.
struct SampleSource {
  std::shared_ptr<const Dataset> dataset;
  std::function<SamplePlace(std::int64_t epoch, std::int64_t position)> place;
  // Returns a random sample to replace a bad one; null: bad samples are not replaced.
  std::function<SamplePlace(std::int64_t epoch, std::int64_t position, core::Philox& draws)>
      replacement;
  bool skip_bad = false;  // false: a bad sample is an error
  Transforms transforms;
  DecodeOptions decode;
  std::shared_ptr<JpegWarnings> jpeg_warnings{};  // lenient JPEG decoding only
  // Returns the height and width of a sample's image.
  std::function<std::int64_t(std::int64_t epoch, std::int64_t position)> size_at;
  std::int64_t num_classes = 0;
  bool multi_label = false;                    // a sample may have any number of classes
  ListFormat list_format = ListFormat::kAuto;  // how list labels are read
  std::uint64_t seed = 0;
};

// Has its own decoder and working memory; used by one thread.
class SampleMaker : public Maker {
 public:
  explicit SampleMaker(const SampleSource& source);

  // Writes pixels and label (ImageColumn). Throws core::DataError naming shard and member.
  Made make(std::int64_t epoch, std::int64_t position, const Row& row) override;

 private:
  void make_at(SamplePlace place, std::int64_t epoch, std::int64_t position, const Row& row,
               Made& made);
  void write_label(SamplePlace place, const Row& row) const;

  const SampleSource& source_;
  RawSample raw_;
  Decoder decoder_;
  Workspace work_;
};

}  // namespace scaletrain::data
