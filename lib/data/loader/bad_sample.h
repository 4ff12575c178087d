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
  std::int64_t epoch = 0, position = 0;  // where it was to be; epoch 0 in an evaluation
};

class BadSampleError : public core::DataError {
 public:
  explicit BadSampleError(BadSample sample)
      : core::DataError(sample.place, sample.reason,
                        "replace the image or leave the sample out; \"bad_samples\": \"skip\" "
                        "takes another one in its place"),
        sample_(std::move(sample)) {}

  const BadSample& sample() const { return sample_; }

 private:
  BadSample sample_;
};

}  // namespace scaletrain::data
