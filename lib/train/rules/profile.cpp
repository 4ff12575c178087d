#include "lib/train/rules/profile.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/core/log.h"
#include "lib/core/text/text.h"

namespace scaletrain::train {
namespace {

using torch::autograd::profiler::ProfilerResult;
using torch::profiler::impl::ActivityType;

constexpr std::size_t kNamed = 5;         // kernels that the log names
constexpr std::size_t kLongestName = 60;  // templates have long ones

std::set<ActivityType> activities(at::Device device) {
  if (device.is_cpu()) return {ActivityType::CPU};
  return {ActivityType::CPU, ActivityType::CUDA};
}

// The kernels and copies that took most of the device's time; "" of a CPU.
std::string longest(const ProfilerResult& result, at::Device device) {
  if (device.is_cpu()) return "";
  std::map<std::string, std::uint64_t> each;
  std::uint64_t all = 0;
  for (const auto& event : result.events()) {
    if (event.deviceType() != device.type()) continue;
    each[event.name()] += event.durationNs();
    all += event.durationNs();
  }
  std::vector<std::pair<std::string, std::uint64_t>> sorted(each.begin(), each.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  sorted.resize(std::min(sorted.size(), kNamed));
  std::string text = fmt::format("; {:.1f} ms on the device", static_cast<double>(all) / 1e6);
  for (const auto& [name, nanoseconds] : sorted) {
    text += fmt::format("\n  {:2.0f} %  {}",
                        100.0 * static_cast<double>(nanoseconds) /
                            static_cast<double>(std::max<std::uint64_t>(all, 1)),
                        name.substr(0, kLongestName));
  }
  return text;
}

}  // namespace

void silence_profiler(at::Device device) {
  constexpr int kKeep = 0;
  if (device.is_cpu()) ::setenv("KINETO_LOG_LEVEL", "5", kKeep);  // above its errors
}

Profile::Profile(const std::optional<recipe::Profile>& asked, at::Device device,
                 std::filesystem::path file, std::function<void(const std::string& text)> say)
    : asked_(asked), device_(device), file_(std::move(file)), say_(std::move(say)) {}

Profile::~Profile() {
  if (is_recording_) torch::autograd::profiler::disableProfiler();
}

void Profile::step_begins() {
  if (!asked_ || begun_++ != asked_->after) return;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO,
                                                     /*report_input_shapes=*/true);
  torch::autograd::profiler::prepareProfiler(config, activities(device_));
  torch::autograd::profiler::enableProfiler(config, activities(device_));
  is_recording_ = true;
}

void Profile::step_ended() {
  if (is_recording_ && ++ended_ == asked_->steps) write();
}

void Profile::finish() {
  if (is_recording_) return write();
  if (asked_ && begun_ <= asked_->after) {
    core::warn("/profile: training ended after {}, before the first of the trace",
               core::counted(begun_, "step"));
  }
}

void Profile::write() {
  is_recording_ = false;
  if (!device_.is_cpu()) {
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }
  const std::unique_ptr<ProfilerResult> result = torch::autograd::profiler::disableProfiler();
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  result->save(file_.string());
  if (!std::filesystem::exists(file_, error)) {
    core::warn("/profile: {} could not be written", file_.string());
    return;
  }
  say_(fmt::format("profile: {} {} in {}{}", core::counted(ended_, "step"),
                   ended_ == 1 ? "is" : "are", file_.string(), longest(*result, device_)));
}

}  // namespace scaletrain::train
