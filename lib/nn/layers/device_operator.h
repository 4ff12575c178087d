// Operators of libscaletrain_cuda (lib/cuda), which LibTorch finds by name once it is loaded.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <utility>

namespace scaletrain::nn {

// True if lib/cuda has kernels for this dtype.
inline bool has_kernels_for(at::ScalarType type) {
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

// Returns nullopt for an undefined tensor, as operators take optional arguments.
inline std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// Signature: the function's, such as at::Tensor(const at::Tensor& input, double eps).
template <class Signature>
class DeviceOperator {
 public:
  constexpr explicit DeviceOperator(const char* name) : name_(name) {}

  // Returns false if the library is not loaded or was built without kernels.
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
