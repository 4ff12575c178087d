#include "lib/dist/send.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace scaletrain::dist {

at::Tensor send(std::span<const double> values, at::Device device) {
  const at::Tensor host = at::empty({static_cast<std::int64_t>(values.size())},
                                    at::TensorOptions(at::kDouble).pinned_memory(!device.is_cpu()));
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<double>());
  return host.to(device, /*non_blocking=*/true);
}

}  // namespace scaletrain::dist
