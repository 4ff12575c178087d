// Operators of the library of devices (lib/cuda), which LibTorch finds by name once that is open.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <utility>

namespace scaletrain::nn {

// True if scaletrain has kernels of its own for this dtype.
inline bool has_kernels_for(at::ScalarType type) {
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

// As operators take what may be left out.
inline std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// Signature: the function's, such as at::Tensor(const at::Tensor& input, double eps).
template <class Signature>
class DeviceOperator {
 public:
  constexpr explicit DeviceOperator(const char* name) : name_(name) {}

  // False where the library is not open, or was built without kernels.
  bool exists() const { return find().has_value(); }

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    return find().value().template typed<Signature>().call(std::forward<Arguments>(arguments)...);
  }

 private:
  std::optional<c10::OperatorHandle> find() const {
    return c10::Dispatcher::singleton().findSchema({name_, ""});
  }

  const char* name_;
};

}  // namespace scaletrain::nn
