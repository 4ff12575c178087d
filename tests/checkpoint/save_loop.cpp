// What a checkpoint costs, for scripts/bench/checkpoint_save.py:
//   save_loop FOLDER BYTES TENSORS ROUNDS
// Saves BYTES of fp32 in TENSORS tensors. Prints JSON, medians in seconds: until a checkpoint is
// durable (save_s), that of it training waits (stall_s) where it begins and, behind a step's
// gradients, before its next update, that the one before takes to be removed (remove_s), that a
// plain writer of one file with fsync takes for the same bytes (raw_s), and that this one's reader
// takes of what the disk has (cold_load_s) and of what is in memory (load_s). peak_bytes is the
// most memory that the process had. kept_rate is that of a thread that computes beside a write, as
// a share of its rate without one.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/saver.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "tests/checkpoint/contents_support.h"

namespace scaletrain {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFloat = 4;
constexpr double kStepS = 0.2;  // of a step's forward and backward

double seconds_of(const std::function<void()>& call) {
  const core::SteadyTime begin = core::now();
  call();
  return core::seconds_since(begin);
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

checkpoint::FullContents make_contents(std::int64_t bytes, std::int64_t tensors) {
  checkpoint::FullContents contents;
  const std::int64_t count = bytes / kFloat / tensors;
  for (std::int64_t i = 0; i < tensors; ++i) {
    contents.model[fmt::format("layer{:06}.weight", i)] = at::randn({count});
  }
  contents.recipe = "{}";
  contents.stands = true;
  return contents;
}

void write_raw(const fs::path& path, const checkpoint::FullContents& contents, std::int64_t bytes) {
  const auto file = core::system_disk().create(path, bytes);
  for (const auto& [name, tensor] : contents.model) {
    file->write(std::as_bytes(
        std::span(tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()))));
  }
  file->sync();
}

// Takes the files of a folder out of the page cache.
void forget(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const core::Descriptor fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

// Products of matrices a second of this thread, until `is_done` or for the seconds given.
double products_a_second(double most_s, const std::function<bool()>& is_done) {
  const at::Tensor a = at::randn({512, 512});
  at::Tensor product = at::empty_like(a);
  const core::SteadyTime begin = core::now();
  std::int64_t count = 0;
  while (core::seconds_since(begin) < most_s && !is_done()) {
    at::mm_out(product, a, a);
    ++count;
  }
  return static_cast<double>(count) / core::seconds_since(begin);
}

void measure(const fs::path& folder, std::int64_t bytes, std::int64_t tensors, int rounds) {
  at::set_num_threads(1);
  checkpoint::FullContents contents = make_contents(bytes, tensors);
  checkpoint::FullContents loaded = make_contents(bytes, tensors);
  checkpoint::Saver saver(core::system_disk(),
                          {.run = folder / "beside", .retention = {.last = 1}});
  std::map<std::string, std::vector<double>> found;
  for (int i = 0; i <= rounds; ++i) {
    contents.state.step = 2 * i;
    const core::SteadyTime begin = core::now();
    saver.save(contents);
    saver.finish();
    const checkpoint::Saved saved = saver.next().value();
    found["save_s"].push_back(saved.stall_s + saved.write_s);
    found["remove_s"].push_back(core::seconds_since(begin) - saved.stall_s - saved.write_s);
    const auto load = [&] { checkpoint::load(saved.path, loaded); };
    forget(saved.path);
    found["cold_load_s"].push_back(seconds_of(load));
    found["load_s"].push_back(seconds_of(load));
    found["raw_s"].push_back(seconds_of([&] { write_raw(folder / "raw", contents, bytes); }));
    fs::remove(folder / "raw");

    ++contents.state.step;
    saver.save(contents);
    const core::SteadyTime since = core::now();
    std::optional<checkpoint::Saved> beside;
    const double rate = products_a_second(60, [&] {
      if (core::seconds_since(since) >= kStepS) saver.await_copies();
      return (beside = saver.next()).has_value();
    });
    found["stall_s"].push_back(beside->stall_s);
    found["kept_rate"].push_back(rate / products_a_second(0.5, [] { return false; }));
  }
  nlohmann::json medians;
  for (auto& [name, values] : found) {
    values.erase(values.begin());  // memory and files are touched for the first time
    medians[name] = median(values);
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  medians["peak_bytes"] = used.ru_maxrss * 1024;
  fmt::print("{}\n", medians.dump());
}

}  // namespace
}  // namespace scaletrain

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 4) {
    std::fputs("usage: save_loop FOLDER BYTES TENSORS ROUNDS\n", stderr);
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
