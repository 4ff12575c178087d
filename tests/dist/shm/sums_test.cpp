#include "lib/dist/shm/sums.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::dist {
namespace {

using Operation = c10d::ReduceOp::RedOpType;

at::Tensor combined(const std::vector<at::Tensor>& tensors, Operation operation) {
  std::vector<const std::byte*> parts;
  for (const at::Tensor& one : tensors) {
    parts.push_back(static_cast<const std::byte*>(one.const_data_ptr()));
  }
  at::Tensor out = at::empty_like(tensors.front());
  combine(out.scalar_type(), operation, parts, static_cast<std::byte*>(out.data_ptr()),
          static_cast<std::size_t>(out.numel()));
  return out;
}

TEST_CASE("numbers are added in the order of their ranks") {
  const float big = 1e8F;
  const std::vector<at::Tensor> in = {at::full({600}, big), at::full({600}, 1.0F),
                                      at::full({600}, -big)};
  CHECK(combined(in, Operation::SUM)[599].item<float>() == 0);  // 1e8 + 1 is 1e8 in fp32
  CHECK(combined({in[0], in[2], in[1]}, Operation::SUM)[599].item<float>() == 1);
}

TEST_CASE("bf16 and fp16 are added in fp32 and rounded once") {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const double step = type == at::kHalf ? 1.0 / 2048 : 1.0 / 256;  // half of 1's last place
    const std::vector<at::Tensor> in = {at::ones({3}, type), at::full({3}, step, type),
                                        at::full({3}, step, type)};
    CHECK(combined(in, Operation::SUM)[0].item<float>() == static_cast<float>(1 + 2 * step));
  }
}

TEST_CASE("means, maxima and minima; what is not a number stays") {
  const at::Tensor a = at::tensor({1.0F, 5.0F, 2.0F}), b = at::tensor({2.0F, 3.0F, 3.0F});
  const at::Tensor nan = at::full({3}, std::numeric_limits<float>::quiet_NaN());
  CHECK(combined({a, b}, Operation::AVG).equal(at::tensor({1.5F, 4.0F, 2.5F})));
  CHECK(combined({a, b}, Operation::MAX).equal(at::tensor({2.0F, 5.0F, 3.0F})));
  CHECK(combined({a, b}, Operation::MIN).equal(at::tensor({1.0F, 3.0F, 2.0F})));
  for (const Operation operation : {Operation::MAX, Operation::MIN}) {
    CHECK(combined({a, nan}, operation).isnan().all().item<bool>());
    CHECK(combined({nan, a}, operation).isnan().all().item<bool>());
    CHECK(combined({nan, a, b}, operation).isnan().all().item<bool>());
  }
}

TEST_CASE("a sum of truths is or; one of integers wraps around") {
  const at::Tensor yes = at::ones({1}, at::kBool), no = at::zeros({1}, at::kBool);
  CHECK(combined({no, yes, yes}, Operation::SUM).item<bool>());
  CHECK_FALSE(combined({no, no, no}, Operation::SUM).item<bool>());
  const at::Tensor most = at::full({1}, std::numeric_limits<std::int64_t>::max(), at::kLong);
  CHECK(combined({most, at::ones({1}, at::kLong)}, Operation::SUM).item<std::int64_t>() ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(combined({at::full({1}, 200, at::kByte), at::full({1}, 100, at::kByte)}, Operation::SUM)
            .item<int>() == 44);  // 300 - 256
}

TEST_CASE("the result may lie where a part lay") {
  for (const std::size_t place : {0U, 1U, 2U}) {
    std::vector<at::Tensor> in;
    std::vector<const std::byte*> parts;
    for (int i = 0; i < 3; ++i) {
      in.push_back(at::full({1025}, static_cast<double>(1 << i)));
      parts.push_back(static_cast<const std::byte*>(in.back().const_data_ptr()));
    }
    combine(at::kFloat, Operation::SUM, parts, static_cast<std::byte*>(in[place].data_ptr()), 1025);
    CHECK(in[place].eq(7).all().item<bool>());
  }
}

TEST_CASE("what nobody adds is refused") {
  CHECK_FALSE(can_combine(at::kInt, Operation::AVG));
  CHECK_FALSE(can_combine(at::kComplexFloat, Operation::SUM));
  CHECK_FALSE(can_combine(at::kFloat, Operation::PRODUCT));
  CHECK_THROWS_AS(combine(at::kComplexFloat, Operation::SUM, {}, nullptr, 0), core::InternalError);
}

}  // namespace
}  // namespace scaletrain::dist
