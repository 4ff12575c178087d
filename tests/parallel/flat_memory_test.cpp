#include "lib/parallel/flat_memory.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::parallel {

TEST_CASE("memory that was given back and taken again is that of all views") {
  const at::Tensor whole = at::ones({12});
  const at::Tensor view = whole.narrow(0, 4, 6).view({2, 3});
  const at::Tensor saved = view.t();  // as autograd keeps it
  give_memory_back(whole);
  CHECK(whole.storage().nbytes() == 0);
  CHECK(whole.storage().data() == nullptr);
  CHECK((view.sizes() == at::IntArrayRef({2, 3})));
  take_memory(whole);
  CHECK(whole.storage().nbytes() == 48);
  whole.copy_(at::arange(12));
  CHECK(at::equal(saved, at::arange(4, 10).view({2, 3}).t().to(at::kFloat)));
}

TEST_CASE("numbers of another type lie in the same memory") {
  const at::Tensor whole = at::zeros({2, 3});
  const at::Tensor half = same_memory_as(whole, at::kBFloat16);
  CHECK((half.sizes() == at::IntArrayRef({2, 3})));
  half.fill_(1);  // bits 0x3f80, two in a float
  CHECK(half.const_data_ptr() == whole.const_data_ptr());
  CHECK(whole[0].ne(0).all().item<bool>());
}

}  // namespace scaletrain::parallel
