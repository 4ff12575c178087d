#include "lib/track/prometheus_devices.h"

#include <fmt/format.h>

#include <map>
#include <vector>

namespace scaletrain::track {
namespace {

using Lines = std::map<std::string, std::string>;  // of each metric

template <class Owner>
void add(Lines& lines, const std::string& prefix, const std::string& labels, const Owner& owner,
         std::span<const observe::SampleField<Owner>> fields) {
  for (const auto& field : fields) {
    const std::optional<double>& value = owner.*field.member;
    if (!value) continue;
    const std::string name = fmt::format("scaletrain_{}_{}", prefix, field.name);
    lines[name] += fmt::format("{}{{{}}} {}\n", name, labels, *value);
  }
}

}  // namespace

std::string prometheus_devices(const std::string& run,
                               std::span<const observe::DeviceSample> samples) {
  Lines lines;
  for (const observe::DeviceSample& sample : samples) {
    const std::string node = fmt::format("{},node=\"{}\"", run, sample.node);
    add<observe::HostSample>(lines, "host", node, sample.host, observe::kHostFields);
    for (const observe::GpuSample& gpu : sample.gpus) {
      add<observe::GpuSample>(lines, "gpu", fmt::format("{},gpu=\"{}\"", node, gpu.index), gpu,
                              observe::kGpuFields);
    }
    for (const observe::WorkerSample& worker : sample.workers) {
      add<observe::WorkerSample>(lines, "rank", fmt::format("{},rank=\"{}\"", node, worker.rank),
                                 worker, observe::kWorkerFields);
    }
  }
  std::string text;
  for (const auto& [name, values] : lines) {
    text += fmt::format("# TYPE {} gauge\n{}", name, values);
  }
  return text;
}

}  // namespace scaletrain::track
