#include "lib/dist/gloo_device.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "lib/core/job/local_address.h"
#include "lib/core/process/cores.h"

namespace scaletrain::dist {
namespace {

// From this number of ranks on, connections are made at first use: a full mesh is cheaper to make
// at once for few ranks, but its cost grows with the square of their number.
constexpr int kLazyConnectionRanks = 16;

// The threads of this process, in order.
std::vector<std::string> own_threads() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void take_no_core(const std::string& thread) {
  pid_t id = 0;
  std::from_chars(thread.data(), thread.data() + thread.size(), id);
  const sched_param none{};
  ::sched_setscheduler(id, SCHED_BATCH, &none);  // without permission it is only slower
}

}  // namespace

std::shared_ptr<gloo::transport::Device> open_gloo_device(const core::WorkerEnv& env) {
  const std::string address = core::local_address(env);
  const std::vector<std::string> before = own_threads();
  auto device = c10d::ProcessGroupGloo::createDeviceForHostname(
      address, env.world_size >= kLazyConnectionRanks);
  if (env.local_world_size <= core::usable_cores()) return device;
  const std::vector<std::string> after = own_threads();
  std::vector<std::string> begun;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(begun));
  std::for_each(begun.begin(), begun.end(), take_no_core);
  return device;
}

}  // namespace scaletrain::dist
