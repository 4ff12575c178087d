#include "launcher/commands/queue/places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "launcher/platform/gpus.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {

std::vector<std::string> choose_devices(const std::string& asked) {
  if (asked == "cpu") return {};
  const std::vector<Gpu> here = visible_gpus_here();
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (asked.empty()) {
    if (visible != nullptr) {
      std::vector<std::string> entries = device_entries(visible);
      entries.resize(std::min(entries.size(), here.size()));
      return entries;
    }
    std::vector<std::string> result;
    for (std::size_t i = 0; i < here.size(); ++i) result.push_back(std::to_string(i));
    return result;
  }
  const std::optional<Driver> driver = ask_driver();
  const std::vector<Gpu> all = driver ? driver->gpus : here;
  std::vector<std::string> entries = device_entries(asked);
  for (const std::string& entry : entries) {
    if (visible_of(all, entry).empty()) {
      throw core::UsageError(
          "--devices", fmt::format("there is no GPU \"{}\"", core::printable(entry)),
          fmt::format("this machine has {} GPUs; --devices cpu uses the CPUs", all.size()));
    }
  }
  return entries;
}

std::vector<RunPlace> make_places(const std::vector<std::string>& devices, int nproc, int jobs,
                                  const std::set<int>& cpus) {
  const auto each = static_cast<std::size_t>(nproc);
  std::vector<RunPlace> places;
  if (devices.empty()) {
    const auto count = static_cast<std::size_t>(std::max(1, jobs));
    const std::vector<int> all(cpus.begin(), cpus.end());
    for (std::size_t i = 0; i < count; ++i) {
      RunPlace place;
      if (count > 1 && all.size() >= count) {
        const auto at = [&](std::size_t part) {
          return all.begin() + static_cast<std::ptrdiff_t>(part * all.size() / count);
        };
        place.cpus.assign(at(i), at(i + 1));
      }
      places.push_back(std::move(place));
    }
    return places;
  }
  if (devices.size() < each) {
    throw core::UsageError(
        "--nproc",
        fmt::format("a job of {}, and {}", core::counted(static_cast<std::int64_t>(each), "worker"),
                    core::counted(std::ssize(devices), "device")),
        "give fewer workers for each job, or more --devices");
  }
  const std::size_t room = devices.size() / each;
  const std::size_t count = jobs == 0 ? room : std::min(room, static_cast<std::size_t>(jobs));
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = devices.begin() + static_cast<std::ptrdiff_t>(i * each);
    places.push_back({.devices = fmt::format(
                          "{}", fmt::join(begin, begin + static_cast<std::ptrdiff_t>(each), ","))});
  }
  return places;
}

}  // namespace scaletrain::launcher
