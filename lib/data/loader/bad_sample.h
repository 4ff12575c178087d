// Samples whose image cannot be decoded, and how a recipe handles them (/data/bad_samples).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::data {

struct BadSample {
  std::string place;                     // for messages: shard, member and byte
  std::string reason;                    // "the image does not decode: the file is truncated"
  std::string shard, key;                // as in RawSample
  std::int64_t epoch = 0, position = 0;  // place in training; epoch 0: evaluation
};

class BadSampleError : public core::DataError {
 public:
  // `decodes_leniently`: true if /data/jpeg "lenient" could decode it.
  explicit BadSampleError(BadSample sample, bool decodes_leniently = false)
      : core::DataError(
            sample.place, sample.reason,
            decodes_leniently
                ? R"(set "jpeg": "lenient" in "data", which decodes what libjpeg only warns about)"
                : R"(replace the image or leave the sample out; "bad_samples": "skip" takes )"
                  "another one in its place"),
        sample_(std::move(sample)) {}

  const BadSample& sample() const { return sample_; }

 private:
  BadSample sample_;
};

}  // namespace scaletrain::data
