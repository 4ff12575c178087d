// exchange_loop RANKS ROUNDS [crowded|plain]: seconds of collectives by Gloo and through shared
// memory, in turn, as one line of JSON; for scripts/bench/exchange.py. With "plain" Gloo's thread
// is scheduled as any other, also where ranks outnumber the cores.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lib/core/clock.h"
#include "lib/dist/group.h"
#include "lib/dist/shm/backend.h"
#include "lib/dist/shm/meeting.h"
#include "lib/dist/store.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;

constexpr std::int64_t kLarge = 25 * 1'000'000 / 4;  // floats
constexpr std::int64_t kSmall = 64;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Tensors {
  explicit Tensors(int ranks)
      : large(at::ones({kLarge / ranks * ranks})),
        other(at::ones({kLarge / ranks * ranks})),
        part(at::ones({kLarge / ranks})),
        small(at::ones({kSmall})) {}
  at::Tensor large, other, part, small;
};

using Call = std::function<c10::intrusive_ptr<c10d::Work>(c10d::Backend&, Tensors&)>;

const std::map<std::string, std::pair<Call, int>>& calls() {
  static const std::map<std::string, std::pair<Call, int>> kCalls = {
      {"all_reduce",
       {[](c10d::Backend& backend, Tensors& on) {
          std::vector<at::Tensor> data{on.large};
          return backend.allreduce(data, {});
        },
        8}},
      {"reduce_scatter",
       {[](c10d::Backend& backend, Tensors& on) {
          return backend._reduce_scatter_base(on.part, on.large, {});
        },
        8}},
      {"all_gather",
       {[](c10d::Backend& backend, Tensors& on) {
          return backend._allgather_base(on.large, on.part, {});
        },
        8}},
      {"all_to_all",
       {[](c10d::Backend& backend, Tensors& on) {
          std::vector<std::int64_t> even;
          return backend.alltoall_base(on.other, on.large, even, even, {});
        },
        8}},
      {"all_reduce_256_bytes",
       {[](c10d::Backend& backend, Tensors& on) {
          std::vector<at::Tensor> data{on.small};
          return backend.allreduce(data, {});
        },
        100}},
  };
  return kCalls;
}

std::string measure(const core::WorkerEnv& given, int rounds, bool plain) {
  at::set_num_threads(1);
  core::WorkerEnv env = given;
  if (plain) env.local_world_size = 1;
  dist::Group group(env, at::kCPU, 60s, core::Beat(), {}, dist::CpuExchange::kGloo);
  core::WorkerEnv client = env;
  client.use_agent_store = true;  // rank 0 hosts it already
  const auto store = dist::open_store(client, 60s);
  dist::ShmMeeting meeting = dist::meet_in_memory(*store, env.rank, env.world_size);
  const auto shm = c10::make_intrusive<dist::ShmBackend>(std::move(meeting.arena), 60s);
  c10d::Backend& gloo = *group.process_group()->getBackend(at::kCPU);

  Tensors tensors(env.world_size);
  std::map<std::string, std::map<std::string, std::vector<double>>> seconds;
  for (int round = 0; round <= rounds; ++round) {
    for (const auto& [name, call] : calls()) {
      for (auto* const backend : {&gloo, static_cast<c10d::Backend*>(shm.get())}) {
        tensors.large.fill_(1e-3);
        backend->barrier({})->wait();
        const core::SteadyTime begin = core::now();
        for (int i = 0; i < call.second; ++i) call.first(*backend, tensors)->wait();
        const double each = core::seconds_since(begin) / call.second;
        if (round > 0) seconds[name][backend == &gloo ? "gloo" : "shm"].push_back(each);
      }
    }
  }
  group.barrier("end");
  nlohmann::json found;
  for (const auto& [name, sides] : seconds) {
    for (const auto& [side, values] : sides) found[name][side] = median(values);
  }
  return env.rank == 0 ? found.dump() : "";
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_MAX, 0);  // as a worker: app/worker/worker_main.cpp
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  if (argc < 3) return 2;
  const bool plain = argc > 3 && std::string(argv[3]) == "plain";
  const auto results = testing::run_ranks(
      {.world_size = std::atoi(argv[1]), .limit_s = 600},
      [&](const core::WorkerEnv& env) { return measure(env, std::atoi(argv[2]), plain); });
  for (const auto& result : results) {
    if (result.status != 0) {
      std::fprintf(stderr, "%s\n", result.text.c_str());
      return 1;
    }
  }
  std::puts(results.front().text.c_str());
  return 0;
}
