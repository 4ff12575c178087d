#include "lib/nn/layers/small_dense.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lib/nn/kernels/activations.h"
#include "lib/nn/kernels/takes.h"
#include "lib/units/flops.h"

// BLAS function in LibTorch (MKL or OpenBLAS); null if LibTorch does not export it.
extern "C" [[gnu::weak]] void sgemm_(const char* a_turned, const char* b_turned, const int* rows,
                                     const int* columns, const int* depth, const float* alpha,
                                     const float* a, const int* a_stride, const float* b,
                                     const int* b_stride, const float* beta, float* result,
                                     const int* result_stride);

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

// Sizes of a product [rows, out] that sums over `in`, as BLAS integers.
struct Sizes {
  int rows, in, out;
};

Sizes sizes_of(const Tensor& input, const Tensor& weight) {
  const std::int64_t in = weight.size(1);
  return {.rows = static_cast<int>(input.numel() / in),
          .in = static_cast<int>(in),
          .out = static_cast<int>(weight.size(0))};
}

Tensor uninitialised(at::IntArrayRef sizes) {
  return Tensor(at::detail::empty_cpu(sizes, at::kFloat));
}

// BLAS has columns side by side: to it each of our matrices is turned, and a product's factors have
// changed places.
enum class Turned { kNo, kYes };

void multiply(Turned a_turned, Turned b_turned, const Sizes& sizes, const float* a, int a_stride,
              const float* b, int b_stride, float beta, float* result) {
  const auto letter = [](Turned turned) { return turned == Turned::kYes ? 'T' : 'N'; };
  const char of_a = letter(a_turned), of_b = letter(b_turned);
  const float alpha = 1;
  sgemm_(&of_a, &of_b, &sizes.out, &sizes.rows, &sizes.in, &alpha, a, &a_stride, b, &b_stride,
         &beta, result, &sizes.out);
}

Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  at::DimVector shape(input.sizes());
  shape.back() = weight.size(0);
  const Tensor output = uninitialised(shape);
  const auto [rows, in, out] = sizes_of(input, weight);
  units::announce_flops({.products = 2.0 * rows * in * out});
  auto* const y = output.mutable_data_ptr<float>();
  if (bias.defined()) {
    const auto* const added = bias.const_data_ptr<float>();
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(y + row * out, added, sizeof(float) * static_cast<std::size_t>(out));
    }
  }
  multiply(Turned::kYes, Turned::kNo, {.rows = rows, .in = in, .out = out},
           weight.const_data_ptr<float>(), in, input.const_data_ptr<float>(), in,
           bias.defined() ? 1.0F : 0.0F, y);
  if (relu) kernels::relu(output.numel(), y);
  return output;
}

class SmallDense : public torch::autograd::Node {
 public:
  SmallDense(const Tensor& input, const Tensor& weight, const Tensor& bias)
      : Node(torch::autograd::collect_next_edges(input, weight, bias)) {
    if (should_compute_output(kInput)) weight_ = {weight, /*is_output=*/false};
    if (should_compute_output(kWeight)) input_ = {input, /*is_output=*/false};
    shape_ = input.sizes().vec();
  }

  // Only once it is the output's node.
  void save_output(const Tensor& output) { output_ = {output, /*is_output=*/true}; }

  std::string name() const override { return "SmallDense"; }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    input_.reset_data();
    weight_.reset_data();
    output_.reset_data();
  }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    variable_list result(3);
    if (!gradients[0].defined()) return result;
    // Tensors that were not saved may be recomputed here, with a graph.
    const Tensor output = output_.unpack(shared_from_this());
    const bool has_input = task_should_compute_output(kInput);
    const bool has_weight = task_should_compute_output(kWeight);
    const Tensor weight = has_input ? weight_.unpack(shared_from_this()) : Tensor();
    const Tensor input = has_weight ? input_.unpack(shared_from_this()) : Tensor();

    const at::AutoDispatchBelowADInplaceOrView no_graph;
    Tensor upper = gradients[0].contiguous();
    if (output.defined()) {
      const Tensor passed = uninitialised(upper.sizes());
      kernels::relu_backward(upper.numel(), output.const_data_ptr<float>(),
                             upper.const_data_ptr<float>(), passed.mutable_data_ptr<float>());
      upper = passed;
    }
    const int out = static_cast<int>(upper.size(-1));
    const int rows = static_cast<int>(upper.numel() / out), in = static_cast<int>(shape_.back());
    const auto* const gradient = upper.const_data_ptr<float>();
    units::announce_flops({.products = 2.0 * (has_input + has_weight) * rows * in * out});
    if (has_input) {
      result[kInput] = uninitialised(shape_);
      multiply(Turned::kNo, Turned::kNo, {.rows = rows, .in = out, .out = in},
               weight.const_data_ptr<float>(), in, gradient, out, 0,
               result[kInput].mutable_data_ptr<float>());
    }
    if (has_weight) {
      result[kWeight] = uninitialised({out, in});
      multiply(Turned::kNo, Turned::kYes, {.rows = out, .in = rows, .out = in},
               input.const_data_ptr<float>(), in, gradient, out, 0,
               result[kWeight].mutable_data_ptr<float>());
    }
    if (task_should_compute_output(kBias)) result[kBias] = at::sum(upper.view({rows, out}), {0});
    return result;
  }

 private:
  enum Given : std::size_t { kInput, kWeight, kBias };

  torch::autograd::SavedVariable input_, weight_, output_;
  std::vector<std::int64_t> shape_;  // the input's shape
};

bool is_plain(const Tensor& tensor) { return kernels::takes(tensor) && tensor.is_contiguous(); }

}  // namespace

bool small_dense_takes(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  constexpr std::int64_t kMostNumbers = std::numeric_limits<int>::max();
  if (sgemm_ == nullptr || !is_plain(input) || !is_plain(weight)) return false;
  const std::int64_t dimensions = input.dim();
  // With more dimensions, at::linear adds the bias afterwards.
  if (bias.defined() && (!is_plain(bias) || dimensions > 3)) return false;
  // A matrix with a dimension of 1 is both row- and column-major, and ATen may call another BLAS
  // function for it.
  const std::int64_t in = weight.size(1);
  return dimensions >= 2 && input.size(-1) == in && in > 1 && weight.size(0) > 1 &&
         input.numel() > in && input.numel() < kMostNumbers && weight.numel() < kMostNumbers;
}

Tensor small_dense(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  std::shared_ptr<SmallDense> node;
  if (torch::autograd::compute_requires_grad(input, weight, bias)) {
    node = std::shared_ptr<SmallDense>(new SmallDense(input, weight, bias),
                                       torch::autograd::deleteNode);
  }
  const Tensor output = forward(input, weight, bias, relu);
  if (node) {
    torch::autograd::set_history(output, node);
    if (relu) node->save_output(output);
  }
  return output;
}

}  // namespace scaletrain::nn
