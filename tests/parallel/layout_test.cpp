#include "lib/parallel/layout.h"

#include <ATen/ops/empty.h>
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "lib/core/error.h"

namespace {

using namespace scaletrain;
using parallel::BucketLayout;

at::Tensor megabytes(std::int64_t count) { return at::empty({count << 18}); }  // of 4-byte floats

TEST_CASE("buckets hold the parameters from the last to the first") {
  // A bucket is closed by the parameter that fills it: 1 MB, then 25 MB.
  const BucketLayout layout = parallel::make_layout(
      {megabytes(20), megabytes(20), megabytes(20), at::empty({8}), megabytes(2), at::empty({8})});
  CHECK(layout == BucketLayout{{5, 4}, {3, 2, 1}, {0}});
  CHECK(parallel::make_layout({}).empty());
}

TEST_CASE("the last buckets are halved until what comes last has 4 MB at most") {
  struct Case {
    std::vector<std::int64_t> megabytes;  // of the parameters, from the first on
    BucketLayout layout;
  };
  for (const Case& one : {Case{{1, 2, 2, 10, 30}, {{4}, {3}, {2}, {1, 0}}},
                          Case{{1, 3, 4, 4, 4, 30}, {{5}, {4, 3}, {2}, {1, 0}}},
                          Case{{1, 1, 25, 25, 30}, {{4}, {3}, {2}, {1, 0}}},
                          Case{{2, 10, 10, 10, 30}, {{4}, {3, 2}, {1}, {0}}},
                          Case{{1, 1, 1, 1, 30}, {{4}, {3, 2, 1, 0}}},
                          Case{{5, 1, 1, 1, 30}, {{4}, {3, 2, 1, 0}}}, Case{{1, 1}, {{1}, {0}}}}) {
    std::vector<at::Tensor> parameters;
    for (const std::int64_t size : one.megabytes) parameters.push_back(megabytes(size));
    std::string found;
    for (const auto& bucket : parallel::make_layout(parameters)) {
      found += fmt::format("[{}] ", fmt::join(bucket, " "));
    }
    CAPTURE(found);
    CHECK(parallel::make_layout(parameters) == one.layout);
  }
}

std::string mistake(const BucketLayout& layout) {
  try {
    parallel::check_layout(layout, 3);
  } catch (const core::CheckpointError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a saved layout names each parameter once") {
  CHECK(mistake({{2, 1}, {0}}).empty());
  const std::string text =
      "bucket layout: does not name each of the model's 3 parameters once (1 mistakes)\n"
      "  the checkpoint belongs to another model; resume with its own recipe";
  CHECK(mistake({{2}, {0}}) == text);         // 1 is missing
  CHECK(mistake({{2, 1}, {0, 1}}) == text);   // 1 is there twice
  CHECK(mistake({{2, 1}, {0, 3}}) == text);   // 3 is unknown
  CHECK(mistake({{2, 1}, {0, -1}}) == text);  // so is -1
  CHECK(mistake({{2, 1}, {}, {0}}) == text);  // an empty bucket
}

}  // namespace
