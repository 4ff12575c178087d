#include "app/worker/check_command.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/text/json_text.h"
#include "lib/dist/cuda_library.h"
#include "lib/dist/device.h"
#include "lib/dist/group.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kElements = 1 << 20;
constexpr std::chrono::seconds kPatience{30};

void print_json(const nlohmann::ordered_json& json) { fmt::print("{}\n", core::json_text(json)); }

}  // namespace

int run_check() {
  int devices = 0;
  std::string trouble;
  try {
    devices = dist::cuda_library().device_count();
  } catch (const core::Error& error) {
    trouble = error.found();
  }
  print_json({{"torch", TORCH_VERSION}, {"devices", devices}, {"trouble", trouble}});
  return 0;
}

int run_loopback(int argc, char** argv) {
  const std::string wanted = argc == 3 ? argv[2] : "";
  if (wanted != "cpu" && wanted != "cuda") {
    throw core::UsageError("loopback", "a kind of device is needed",
                           "scaletrain-worker loopback cpu|cuda");
  }
  const core::WorkerEnv env = core::read_worker_env();
  const at::Device device =
      dist::choose_device(wanted, {.rank = env.local_rank, .ranks = env.local_world_size});
  const core::SteadyTime start = core::now();
  dist::Group group(env, device, kPatience, core::Beat(), {}, dist::CpuExchange::kGloo);
  const double connect_s = core::seconds_since(start);

  std::array<double, 5> seconds{};
  for (double& one : seconds) {
    const at::Tensor values = at::full({kElements}, static_cast<double>(env.rank + 1),
                                       at::dtype(at::kFloat).device(device));
    const core::SteadyTime begin = core::now();
    group.all_reduce_sum(values, "loopback").wait();
    const double expected = env.world_size * (env.world_size + 1) / 2.0;
    if (!values.eq(expected).all().item<bool>()) {  // waits for the device
      throw core::InternalError(fmt::format("rank {}", env.rank), "the sum over the ranks is wrong",
                                "test the memory and the links of this machine");
    }
    one = core::seconds_since(begin);
  }
  std::sort(seconds.begin(), seconds.end());
  if (env.rank == 0) {
    print_json({{"ranks", env.world_size},
                {"connect_s", connect_s},
                {"all_reduce_s", seconds[seconds.size() / 2]}});
  }
  group.barrier("loopback");
  return 0;
}

}  // namespace scaletrain::app
