// Samples whose image does not decode, and what a recipe may do about them (/data/bad_samples).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::data {

struct BadSample {
  std::string place;                     // as in messages: shard, member and byte
  std::string reason;                    // "the image does not decode: the file is truncated"
  std::string shard, key;                // as RawSample has them
  std::int64_t epoch = 0, position = 0;  // its place in training; epoch 0: evaluation
};

class BadSampleError : public core::DataError {
 public:
  // `decodes_leniently`: as /data/jpeg "lenient" would have it.
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
