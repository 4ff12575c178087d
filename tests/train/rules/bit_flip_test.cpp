#include "lib/train/rules/bit_flip.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/train/rules/fault.h"

namespace scaletrain::train {

TEST_CASE("a bit flip names its rank, step, place, bit and perhaps its element") {
  const auto flip = parse_bit_flip("flip-bit:rank=1@step=20:where=moments:bit=30:index=7");
  REQUIRE(flip);
  CHECK(flip->rank == 1);
  CHECK(flip->step == 20);
  CHECK(flip->where == BitFlip::Where::kMoments);
  CHECK(flip->bit == 30);
  CHECK(flip->index == 7);
  const auto first = parse_bit_flip("flip-bit:rank=0@step=1:where=comm:bit=0");
  REQUIRE(first);
  CHECK(first->where == BitFlip::Where::kComm);
  CHECK(first->index == 0);
  CHECK_FALSE(parse_bit_flip("kill@3,1"));
}

TEST_CASE("an invalid bit flip is refused") {
  for (const std::string rest :
       {"", "rank=1", "rank=1@step=2:where=weights", "rank=1@step=2:where=nowhere:bit=1",
        "rank=x@step=2:where=weights:bit=1", "rank=1@step=2:where=weights:bit=64",
        "rank=1@step=2:where=weights:bit=-1", "rank=1@step=2:where=weights:bit=1:index=",
        "rank=1@step=2:where=weights:bit=1:bit=2", "rank=1@step=2:where=weights:bit=1:times=2"}) {
    CAPTURE(rest);
    CHECK_THROWS_AS(parse_bit_flip("flip-bit:" + rest), core::UsageError);
  }
  CHECK_THROWS_WITH(flip_bit({at::zeros({2}, at::kHalf)}, 0, 16),
                    "SCALETRAIN_FAULT: an element has no bit 16\n  use a bit from 0 to 15");
}

TEST_CASE("exactly one bit of one element changes, and a second flip restores it") {
  struct Case {
    at::ScalarType type;
    int bit;
    double before, after;
  };
  // 1.0 is 0x3f800000 in fp32, 0x3f80 in bf16, 0x3c00 in fp16 and 0x3ff0000000000000 in fp64.
  for (const auto& [type, bit, before, after] : std::vector<Case>{{at::kFloat, 31, 1, -1},
                                                                  {at::kFloat, 22, 1, 1.5},
                                                                  {at::kFloat, 23, 1, 0.5},
                                                                  {at::kBFloat16, 15, 1, -1},
                                                                  {at::kBFloat16, 6, 1, 1.5},
                                                                  {at::kHalf, 15, 1, -1},
                                                                  {at::kDouble, 63, 1, -1},
                                                                  {at::kDouble, 51, 1, 1.5}}) {
    CAPTURE(type);
    CAPTURE(bit);
    const std::vector<at::Tensor> tensors{at::ones({2, 3}, type), at::ones({4}, type)};
    flip_bit(tensors, 17, bit);  // 10 elements: number 7 is the second of the second tensor
    CHECK(tensors[1][1].item<double>() == after);
    CHECK(tensors[0].eq(1).all().item<bool>());
    CHECK(tensors[1].eq(1).sum().item<int>() == 3);
    flip_bit(tensors, 7, bit);
    CHECK(tensors[1].eq(before).all().item<bool>());
  }
}

TEST_CASE("a planted flip happens once, in floating-point tensors of its rank, place and step") {
  ::setenv("SCALETRAIN_FAULT",
           "kill@9,1;flip-bit:rank=1@step=3:where=weights:bit=31:index=1;"
           "flip-bit:rank=0@step=3:where=weights:bit=31",
           1);
  PlantedFlips flips(1);
  const auto other = read_fault();
  ::unsetenv("SCALETRAIN_FAULT");
  REQUIRE(other);
  CHECK(other->kind == Fault::Kind::kKill);

  const at::Tensor integers = at::ones({5}, at::kLong), weights = at::ones({3});
  const auto flipped = [&](BitFlip::Where where, std::int64_t step) {
    flips.commit(where, step, [&] { return std::vector<at::Tensor>{integers, weights}; });
    return weights.lt(0).nonzero().numel();
  };
  CHECK(flipped(BitFlip::Where::kWeights, 2) == 0);
  CHECK(flipped(BitFlip::Where::kMoments, 3) == 0);
  CHECK(flipped(BitFlip::Where::kWeights, 3) == 1);
  CHECK(weights[1].item<float>() == -1);
  CHECK(flipped(BitFlip::Where::kWeights, 3) == 1);  // not flipped back
  CHECK(integers.eq(1).all().item<bool>());
}

TEST_CASE("a flip in backward changes one gradient element once") {
  const at::Tensor weight = at::ones({2, 2}).requires_grad_();
  flip_in_backward({weight}, {.bit = 31, .index = 2});
  weight.sum().backward();
  CHECK(at::equal(weight.grad(), at::tensor({1., 1., -1., 1.}, at::kFloat).view({2, 2})));
  weight.mutable_grad().reset();
  weight.sum().backward();
  CHECK(weight.grad().eq(1).all().item<bool>());
}

}  // namespace scaletrain::train
