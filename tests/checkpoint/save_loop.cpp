// What a checkpoint costs, for scripts/bench/checkpoint_save.py:
//   save_loop FOLDER BYTES TENSORS ROUNDS
// Saves BYTES of fp32 in TENSORS tensors. Prints JSON, medians in seconds: until a checkpoint is
// durable (save_s), that training waits for one written beside it (stall_s), and that as many bytes
// take a plain writer of one file with fsync (raw_s) and this one's reader (load_s). kept_rate is
// that of a thread that computes beside a write, as a share of its rate without one.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/saver.h"
#include "lib/core/clock.h"
#include "lib/core/disk.h"

namespace scaletrain {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFloat = 4;
constexpr std::size_t kPiece = std::size_t{1} << 20;

double seconds_of(const std::function<void()>& call) {
  const core::SteadyTime begin = core::now();
  call();
  return core::seconds_since(begin);
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

checkpoint::Contents make_contents(std::int64_t bytes, std::int64_t tensors) {
  checkpoint::Contents contents;
  const std::int64_t count = bytes / kFloat / tensors;
  for (std::int64_t i = 0; i < tensors; ++i) {
    contents.model[fmt::format("layer{:06}.weight", i)] = at::randn({count});
  }
  contents.recipe = "{}";
  return contents;
}

void write_raw(const fs::path& path, const checkpoint::Contents& contents, std::int64_t bytes) {
  const auto file = core::system_disk().create(path, bytes);
  const at::Tensor& first = contents.model.begin()->second;
  const auto block = std::as_bytes(
      std::span(first.const_data_ptr<float>(), static_cast<std::size_t>(first.numel())));
  const auto piece = block.first(std::min(kPiece, block.size()));
  for (std::int64_t left = bytes; left > 0;) {
    const auto now = piece.first(std::min(piece.size(), static_cast<std::size_t>(left)));
    file->write(now);
    left -= std::ssize(now);
  }
  file->sync();
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
  checkpoint::Contents contents = make_contents(bytes, tensors);
  checkpoint::Contents loaded = make_contents(bytes, tensors);
  core::Disk& disk = core::system_disk();
  std::vector<double> save_s, stall_s, raw_s, load_s, kept_rate;
  checkpoint::Saver saver(disk, {.run = folder / "beside", .retention = {.last = 1}});
  for (int i = 0; i <= rounds; ++i) {
    contents.state.step = i;
    fs::path path;
    save_s.push_back(
        seconds_of([&] { path = checkpoint::save(disk, folder / "run", contents, {.last = 1}); }));
    load_s.push_back(seconds_of([&] { checkpoint::load(path, loaded); }));
    raw_s.push_back(seconds_of([&] { write_raw(folder / "raw", contents, bytes); }));
    fs::remove(folder / "raw");
    saver.save(contents);
    std::optional<checkpoint::Saved> saved;
    const double beside = products_a_second(60, [&] { return (saved = saver.next()).has_value(); });
    stall_s.push_back(saved->stall_s);
    kept_rate.push_back(beside / products_a_second(0.5, [] { return false; }));
  }
  for (std::vector<double>* const times : {&save_s, &stall_s, &raw_s, &load_s, &kept_rate}) {
    times->erase(times->begin());  // memory and files are touched for the first time
  }
  fmt::print(
      "{{\"save_s\": {}, \"stall_s\": {}, \"raw_s\": {}, \"load_s\": {}, \"kept_rate\": {}}}\n",
      median(save_s), median(stall_s), median(raw_s), median(load_s), median(kept_rate));
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
