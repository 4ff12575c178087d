#include "launcher/devices/device_sampler.h"

#include <algorithm>
#include <span>

#include "lib/core/clock.h"
#include "lib/core/process/host_name.h"

namespace scaletrain::launcher {
namespace {

template <class Owner>
void subtract(Owner& owner, const Owner& base,
              std::span<const observe::SampleField<Owner>> fields) {
  for (const auto& field : fields) {
    std::optional<double>& value = owner.*field.member;
    if (field.is_total && value) *value -= (base.*field.member).value_or(0);
  }
}

}  // namespace

DeviceSampler::DeviceSampler(const std::filesystem::path& run, const std::vector<Gpu>& gpus,
                             const std::filesystem::path& root)
    : host_(run, root), rapl_(root), gpus_(gpus), node_name_(core::host_name()) {}

observe::DeviceSample DeviceSampler::sample(double seconds,
                                            const std::vector<WorkerProcess>& workers) {
  newest_ = {.time = core::unix_time(),
             .seconds = seconds,
             .node_name = node_name_,
             .no_gpus = gpus_.why_not(),
             .host = host_.host(seconds),
             .gpus = gpus_.sample(seconds),
             .workers = host_.workers(workers, seconds)};
  rapl_.read();
  newest_.no_rapl = rapl_.why_not();
  newest_.host.cpu_energy_j = rapl_.cpu_j();
  newest_.host.memory_energy_j = rapl_.memory_j();
  observe::DeviceSample sample = newest_;
  subtract<observe::HostSample>(sample.host, base_.host, observe::kHostFields);
  for (observe::GpuSample& gpu : sample.gpus) {
    const auto base = std::ranges::find(base_.gpus, gpu.uuid, &observe::GpuSample::uuid);
    if (base != base_.gpus.end()) subtract<observe::GpuSample>(gpu, *base, observe::kGpuFields);
  }
  return sample;
}

}  // namespace scaletrain::launcher
