// What a checkpoint that several ranks write costs, for scripts/bench/checkpoint_ranks.py:
//   scaletrain launch --nproc N -- save_ranks_loop FOLDER BYTES TENSORS ROUNDS
// Every rank has the same BYTES of fp32 in TENSORS tensors, as in data parallelism. Rank 0 prints
// JSON, medians in seconds: that training waits (stall_s), and until all of it is durable and every
// rank knows (durable_s).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "lib/checkpoint/saver.h"
#include "lib/checkpoint/writers.h"
#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/job/worker_env.h"
#include "lib/dist/group.h"
#include "tests/checkpoint/contents_support.h"

namespace scaletrain {
namespace {

double median(std::vector<double> times) {
  times.erase(times.begin());  // memory and files are touched for the first time
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure(const std::string& folder, std::int64_t bytes, std::int64_t tensors, int rounds) {
  at::set_num_threads(1);
  dist::Group group(core::read_worker_env(), at::kCPU, std::chrono::minutes(2));
  checkpoint::FullContents contents;
  for (std::int64_t i = 0; i < tensors; ++i) {
    contents.model[fmt::format("layer{:06}.weight", i)] = at::randn({bytes / 4 / tensors});
  }
  contents.recipe = "{}";
  checkpoint::Saver saver(core::system_disk(),
                          {.run = folder,
                           .retention = {.last = 1},
                           .writers = std::make_shared<checkpoint::Writers>(
                               group.open_board("saves"), group.rank(), group.world_size())});
  std::vector<double> stall_s, durable_s;
  for (int i = 0; i <= rounds; ++i) {
    contents.state.step = i;
    group.barrier("a round begins");
    const core::SteadyTime begin = core::now();
    saver.save(contents);
    stall_s.push_back(core::seconds_since(begin));
    saver.finish();
    if (group.rank() == 0) saver.next();  // throws what the save failed with
    group.barrier("all of it is durable");
    durable_s.push_back(core::seconds_since(begin));
  }
  if (group.rank() == 0) {
    fmt::print("{{\"stall_s\": {}, \"durable_s\": {}}}\n", median(stall_s), median(durable_s));
  }
  group.end("done");
}

}  // namespace
}  // namespace scaletrain

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 4) {
    std::fputs("usage: save_ranks_loop FOLDER BYTES TENSORS ROUNDS\n", stderr);
    return 2;
  }
  try {
    scaletrain::measure(arguments[0], std::stoll(arguments[1]), std::stoll(arguments[2]),
                        std::stoi(arguments[3]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
