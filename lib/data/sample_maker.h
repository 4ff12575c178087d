// One sample of a batch: found, read, checked, decoded, transformed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "lib/core/philox.h"
#include "lib/data/dataset.h"
#include "lib/data/decode.h"
#include "lib/data/loader.h"
#include "lib/data/order.h"
#include "lib/data/read_ahead.h"
#include "lib/data/transform.h"

namespace scaletrain::data {

// What the samples of a loader have in common; shared by its threads.
struct SampleSource {
  std::shared_ptr<const Dataset> dataset;
  std::function<SamplePlace(std::int64_t epoch, std::int64_t position)> place;
  // What stands in for a bad sample, another one each time; null: nothing does.
  std::function<SamplePlace(std::int64_t epoch, std::int64_t position, core::Philox& draws)>
      replacement;
  bool skip_bad = false;  // otherwise a bad sample is an error
  Transforms transforms;
  DecodeOptions decode;
  std::int64_t image_size = 0;
  std::int64_t num_classes = 0;
  std::uint64_t seed = 0;
};

// With its own decoder and working memory; for one thread.
class SampleMaker : public Maker {
 public:
  explicit SampleMaker(const SampleSource& source);

  // Writes [image_size, image_size, 3] to `pixels`. Throws core::DataError naming shard and member.
  Made make(std::int64_t epoch, std::int64_t position, std::span<std::uint8_t> pixels) override;

 private:
  void make_at(SamplePlace place, std::int64_t epoch, std::int64_t position,
               std::span<std::uint8_t> pixels, Made& made);

  const SampleSource& source_;
  RawSample raw_;
  Decoder decoder_;
  Workspace work_;
};

}  // namespace scaletrain::data
