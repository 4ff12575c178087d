// Operators of the library of devices (lib/cuda), which LibTorch finds by name once that is open.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <utility>

namespace scaletrain::nn {

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
