// What LibTorch's operators are asked for, counted: how often values are read to the host, say,
// where each read waits for a device's queue.
#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <string_view>

namespace scaletrain::testing {

// Calls of the operator `name` ("aten::empty") on all threads while `body` runs. Not counted are
// those inside of a fused optimizer.
template <class Body>
int count_calls(const char* name, const Body& body) {
  static std::atomic<int> calls;
  static std::atomic<const char*> wanted;
  static thread_local int fused_depth;
  calls = 0;
  wanted = name;
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        const std::string_view called = function.name();
        fused_depth += called.starts_with("aten::_fused_") ? 1 : 0;
        if (called == wanted.load() && fused_depth == 0) ++calls;
        return nullptr;
      },
      [](const at::RecordFunction& function, at::ObserverContext* /*context*/) {
        fused_depth -= std::string_view(function.name()).starts_with("aten::_fused_") ? 1 : 0;
      }));
  try {
    body();
  } catch (...) {
    at::removeCallback(handle);
    throw;
  }
  at::removeCallback(handle);
  return calls;
}

// Reads of tensors' values: item(), and a tensor used as a bool. A CPU's fused optimizer looks at
// its own count of steps, a device's does not: those do not count.
template <class Body>
int count_reads(const Body& body) {
  return count_calls("aten::_local_scalar_dense", body);
}

}  // namespace scaletrain::testing
