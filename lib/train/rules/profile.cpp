#include "lib/train/rules/profile.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <torch/csrc/Export.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/core/log.h"
#include "lib/core/process/time_ledger.h"
#include "lib/core/process/trace_spans.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"
#include "lib/observe/trace/add_events.h"
#include "lib/observe/trace/span_events.h"

// Declared by hand: kineto_shim.h needs the headers of Kineto.
namespace torch::autograd::profiler {
TORCH_API void addMetadataJson(const std::string& key, const std::string& value);
}  // namespace torch::autograd::profiler

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

std::string distributed_info(const TracedRank& rank) {
  return core::json_text(nlohmann::json{
      {"rank", rank.rank}, {"world_size", rank.world_size}, {"backend", rank.backend}});
}

// Writes Kineto's trace, adds the spans to a copy and renames that to `file`: a reader sees whole
// files only. Returns false if that fails.
bool write_trace(ProfilerResult& result, std::vector<core::TraceSpan> spans,
                 const std::filesystem::path& file) {
  const std::filesystem::path from = file.string() + ".kineto", copy = file.string() + ".partial";
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  result.save(from.string());
  std::ifstream reading(from, std::ios::binary);
  std::ofstream writing(copy, std::ios::binary);
  const bool is_copied = observe::add_events(reading, writing, [&](std::int64_t base_ns) {
    return observe::span_events(std::move(spans), base_ns, ::getpid());
  });
  writing.close();
  std::filesystem::remove(from, error);
  if (is_copied && writing.good()) {
    std::filesystem::rename(copy, file, error);
    return !error;
  }
  std::filesystem::remove(copy, error);
  return false;
}

}  // namespace

void silence_profiler(at::Device device) {
  constexpr int kKeep = 0;
  if (device.is_cpu()) ::setenv("KINETO_LOG_LEVEL", "5", kKeep);  // above its errors
}

Profile::Profile(const std::optional<recipe::Profile>& asked, at::Device device, TracedRank rank,
                 std::filesystem::path folder, std::function<void(const std::string& text)> say)
    : asked_(asked),
      device_(device),
      rank_(std::move(rank)),
      folder_(std::move(folder)),
      say_(std::move(say)) {}

Profile::~Profile() {
  if (!is_recording_) return;
  core::TraceSpans::stop();
  torch::autograd::profiler::disableProfiler();
}

void Profile::step_begins(std::int64_t step) {
  ++begun_;
  if (!is_recording_) {
    if (asked_ && !has_begun_ && begun_ > asked_->after) {
      has_begun_ = true;
      start(asked_->steps, fmt::format("rank-{}.json", rank_.rank));
    } else if (requested_ > 0) {
      start(std::exchange(requested_, 0), fmt::format("step-{}-rank-{}.json", step, rank_.rank));
    }
  }
  if (!is_recording_) return;
  step_ = step;
  step_begin_ns_ = core::TraceSpans::wall_ns();
}

void Profile::start(std::int64_t steps, const std::string& file_name) {
  file_ = folder_ / file_name;
  steps_ = steps;
  ended_ = 0;
  torch::profiler::impl::ExperimentalConfig extra;
  extra.profile_all_threads = true;  // the data loader's and Gloo's
  const torch::profiler::impl::ProfilerConfig config(
      torch::profiler::impl::ProfilerState::KINETO, /*report_input_shapes=*/true,
      /*profile_memory=*/false, /*with_stack=*/false, /*with_flops=*/false, /*with_modules=*/false,
      std::move(extra));
  torch::autograd::profiler::prepareProfiler(config, activities(device_));
  torch::autograd::profiler::addMetadataJson("distributedInfo", distributed_info(rank_));
  torch::autograd::profiler::enableProfiler(config, activities(device_));
  core::TraceSpans::start();
  is_recording_ = true;
}

void Profile::step_ended() {
  if (!is_recording_) return;
  end_step_span();
  if (++ended_ == steps_) write();
}

void Profile::end_step_span() {
  core::TraceSpans::add({.name = fmt::format("ProfilerStep#{}", step_),
                         .kind = core::TraceSpan::Kind::kStep,
                         .begin_ns = step_begin_ns_,
                         .end_ns = core::TraceSpans::wall_ns(),
                         .thread = core::TraceSpans::thread_number()});
}

void Profile::finish() {
  if (is_recording_) return write();
  if (asked_ && !has_begun_) {
    core::warn("/profile: training ended after {}, before the first of the trace",
               core::counted(begun_, "step"));
  }
  if (requested_ > 0) {
    core::warn("training ended before the first step of the trace that was requested");
  }
}

void Profile::write() {
  is_recording_ = false;
  if (!device_.is_cpu()) {
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }
  if (core::TimeLedger* const ledger = core::TimeLedger::of_thread()) ledger->end_span();
  std::vector<core::TraceSpan> spans = core::TraceSpans::stop();
  const std::unique_ptr<ProfilerResult> result = torch::autograd::profiler::disableProfiler();
  if (!write_trace(*result, std::move(spans), file_)) {
    core::warn("/profile: {} could not be written", file_.string());
    return;
  }
  say_(fmt::format("profile: {} {} in {}{}", core::counted(ended_, "step"),
                   ended_ == 1 ? "is" : "are", file_.string(), longest(*result, device_)));
}

}  // namespace scaletrain::train
