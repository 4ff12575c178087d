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

std::string text_of(const BucketLayout& layout) {
  std::string text;
  for (const auto& bucket : layout) text += fmt::format("[{}]", fmt::join(bucket, " "));
  return text;
}

TEST_CASE("buckets hold the parameters from the last to the first") {
  CHECK(text_of(parallel::make_layout({megabytes(20), megabytes(20), megabytes(20), at::empty({8}),
                                       megabytes(2), at::empty({8})})) == "[5 4][3][2][1][0]");
  CHECK(parallel::make_layout({}).empty());
}

TEST_CASE("buckets grow by a quarter from the last one of 4 MB on, up to 25 MB") {
  struct Case {
    std::vector<std::int64_t> megabytes;  // of the parameters, from the first on
    const char* layout;
  };
  for (const Case& one :
       {Case{{1, 2, 2, 10, 30}, "[4][3][2][1 0]"}, Case{{1, 3, 4, 4, 4, 30}, "[5][4][3][2][1 0]"},
        Case{{1, 1, 25, 25, 30}, "[4][3][2][1 0]"}, Case{{2, 10, 10, 10, 30}, "[4][3][2][1][0]"},
        Case{{1, 1, 1, 1, 30}, "[4][3 2 1 0]"}, Case{{5, 1, 1, 1, 30}, "[4][3 2 1][0]"},
        Case{{1, 1}, "[1][0]"}, Case{{1, 9, 1, 9, 1, 9, 30}, "[6][5 4][3 2][1][0]"}}) {
    std::vector<at::Tensor> parameters;
    for (const std::int64_t size : one.megabytes) parameters.push_back(megabytes(size));
    CHECK(text_of(parallel::make_layout(parameters)) == one.layout);
  }
  std::vector<std::size_t> sizes;
  for (const auto& bucket : parallel::make_layout(std::vector<at::Tensor>(120, megabytes(1)))) {
    sizes.push_back(bucket.size());
  }
  CHECK(fmt::format("{}", fmt::join(sizes, " ")) == "1 19 23 19 15 12 9 7 6 5 4");
}

TEST_CASE("a bucket has tensors of one type, and none waits for one that is done after it") {
  // As of bf16_pure, where a BatchNorm stays in fp32.
  const auto layout_of_layers = [](std::int64_t megabytes) {
    std::vector<at::Tensor> parameters;
    for (int layer = 0; layer < 4; ++layer) {
      parameters.push_back(at::empty({megabytes << 19}, at::kBFloat16));
      parameters.push_back(at::empty({8}));
    }
    return text_of(parallel::make_layout(parameters));
  };
  CHECK(layout_of_layers(5) == "[6][4][2][7 5 3 1][0]");
  CHECK(layout_of_layers(1) == "[6][7 5 3 1][4 2 0]");
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
  CHECK(mistake({{2, 1}, {0, 1}}) == text);   // 1 occurs twice
  CHECK(mistake({{2, 1}, {0, 3}}) == text);   // 3 is unknown
  CHECK(mistake({{2, 1}, {0, -1}}) == text);  // so is -1
  CHECK(mistake({{2, 1}, {}, {0}}) == text);  // an empty bucket
}

}  // namespace
