// A bucket of gradients that ranks exchange, for tests.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "lib/core/text/hash.h"
#include "lib/dist/group.h"
#include "lib/parallel/compress/bucket.h"
#include "tests/dist/ranks.h"

namespace scaletrain::testing {

using parallel::BucketExchange;
using parallel::Slot;
using parallel::Wire;

// A matrix of two blocks or more, a bias, a kernel of rows of 27, and a matrix whose factors would
// be larger than it.
inline std::vector<Slot> slots() {
  return {{.name = "fc.weight", .begin = 0, .elements = 1200, .rows = 40},
          {.name = "fc.bias", .begin = 1200, .elements = 40},
          {.name = "conv.weight", .begin = 1240, .elements = 216, .rows = 8},
          {.name = "small.weight", .begin = 1456, .elements = 6, .rows = 3}};
}
inline constexpr std::int64_t kBucketElements = 1462, kMatrixElements = 1200 + 216 + 6,
                              kVectorElements = 40;

inline at::Tensor gradient(int rank, int step) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(100 * step + rank);
  return at::randn({kBucketElements}, generator);
}

inline at::Tensor not_left_out() { return at::zeros({}); }

// The mean of one step, in place of `flat`.
inline void exchange(BucketExchange& bucket, const at::Tensor& flat,
                     const at::Tensor& found_inf = not_left_out()) {
  bucket.begin(flat);
  bucket.go_on();
  bucket.finish();
  bucket.end_step(found_inf);
}

inline std::string digest_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  core::Sha256 hash;
  hash.update(std::as_bytes(
      std::span(whole.const_data_ptr<float>(), static_cast<std::size_t>(whole.numel()))));
  return hash.hex();
}

// A job of one bucket that is compressed as `name` says.
struct BucketJob {
  BucketJob(const core::WorkerEnv& env, const std::string& name, std::int64_t rank = 2)
      : group(env, at::kCPU, std::chrono::seconds(30), core::Beat(), {}),
        wire(group.process_group()),
        bucket(parallel::make_bucket({.name = name, .rank = rank}, 7, wire, slots(), at::kCPU)) {
    at::set_num_threads(1);
  }

  dist::Group group;
  Wire wire;
  std::unique_ptr<BucketExchange> bucket;
};

// What `body` says on each rank, which is the same; on two ranks and four.
template <class Body>
void check_ranks(const Body& body, const std::string& expected) {
  for (const int world_size : {2, 4}) {
    CAPTURE(world_size);
    for (const auto& result : run_ranks({.world_size = world_size}, body)) {
      CHECK(result.text == expected);
    }
  }
}

using Numbers = std::vector<double>;

inline Numbers numbers(const at::Tensor& tensor) {
  const at::Tensor doubles = tensor.to(at::kDouble).contiguous();
  const auto* const values = doubles.const_data_ptr<double>();
  return {values, values + doubles.numel()};
}

inline double largest_difference(const at::Tensor& got, const Numbers& expected) {
  const Numbers values = numbers(got);
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::abs(values[i] - expected[i]));
  }
  return largest;
}

}  // namespace scaletrain::testing
