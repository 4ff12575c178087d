#include "lib/dist/replicate.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/process/beat.h"
#include "tests/dist/ranks.h"

namespace scaletrain::dist {
namespace {

constexpr std::int64_t kMessage = 8 << 20;  // elements of a message

// Every type, shape and order in memory; of one type as much as two messages have.
std::vector<at::Tensor> tensors_of(int rank) {
  return {at::arange(6, at::kFloat).view({2, 3}) + rank,
          (at::arange(6, at::kFloat).view({2, 3}) - rank).t(),
          at::full({}, 7 + rank, at::kLong),
          at::zeros({0, 4}),
          at::full({kMessage - 1}, 1 + rank, at::kByte),
          at::full({1}, 3 + rank, at::kByte),
          at::full({kMessage - 1}, 5 + rank, at::kByte),
          at::full({1}, 6 + rank, at::kByte),
          at::full({3}, rank, at::kDouble)};
}

}  // namespace

TEST_CASE("all ranks get rank 0's tensors, in place, in few messages") {
  for (const auto& result :
       testing::run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) -> std::string {
         const core::Descriptor file = core::make_beat_file();
         const core::BeatReader beat(file.get());
         Group group(env, at::kCPU, std::chrono::seconds(30), core::Beat(file.get()));
         const std::vector<at::Tensor> own = tensors_of(env.rank), expected = tensors_of(0);
         const std::int64_t before = beat.state().collectives;
         replicate(group, own, "tensors");
         // Of floats, integers and doubles one each, of bytes two.
         const std::int64_t messages = beat.state().collectives - before;
         if (messages != 5) return std::to_string(messages) + " messages";
         for (std::size_t i = 0; i < own.size(); ++i) {
           if (!at::equal(own[i], expected[i])) return "not " + std::to_string(i);
           if (own[i].strides() != expected[i].strides()) return "another order in memory";
         }
         return "fine";
       })) {
    CHECK(result.text == "fine");
  }
}

TEST_CASE("one rank keeps what it has") {
  Group group({}, at::kCPU, std::chrono::seconds(1));
  const at::Tensor own = at::ones({2});
  replicate(group, {own}, "tensors");
  CHECK(at::equal(own, at::ones({2})));
}

}  // namespace scaletrain::dist
