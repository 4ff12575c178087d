#include "lib/observe/devices/device_sample.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

namespace scaletrain::observe {
namespace {

using Json = nlohmann::ordered_json;

template <class Owner>
void write_fields(Json& json, const Owner& owner, std::span<const SampleField<Owner>> fields) {
  constexpr double kDigits = 1000;
  for (const SampleField<Owner>& field : fields) {
    const std::optional<double>& value = owner.*field.member;
    if (!value) continue;
    const double rounded = std::round(*value * kDigits) / kDigits;
    if (rounded == std::floor(rounded) && std::abs(rounded) < 1e15) {
      json[std::string(field.name)] = static_cast<std::int64_t>(rounded);
    } else {
      json[std::string(field.name)] = rounded;
    }
  }
}

std::optional<double> sample_number(const Json& json, std::string_view name) {
  const auto found = json.find(std::string(name));
  return found != json.end() && found->is_number() ? std::optional(found->get<double>())
                                                   : std::nullopt;
}

std::string sample_text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

int sample_integer(const Json& json, const char* name) {
  return static_cast<int>(sample_number(json, name).value_or(0));
}

bool sample_flag(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

template <class Owner>
void read_fields(const Json& json, Owner& owner, std::span<const SampleField<Owner>> fields) {
  for (const SampleField<Owner>& field : fields)
    owner.*field.member = sample_number(json, field.name);
}

// Calls `use` with each object of the list `name`.
template <class Use>
void for_each_object(const Json& json, const char* name, Use use) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& one : *found) {
    if (one.is_object()) use(one);
  }
}

GpuSample gpu_of(const Json& json) {
  GpuSample gpu{.index = sample_integer(json, "gpu"),
                .name = sample_text(json, "name"),
                .uuid = sample_text(json, "uuid"),
                .lost = sample_flag(json, "lost"),
                .energy_from_power = sample_flag(json, "energy_from_power")};
  if (const auto reasons = json.find("throttled"); reasons != json.end() && reasons->is_array()) {
    for (const Json& reason : *reasons) {
      if (reason.is_string()) gpu.throttled.push_back(reason.get<std::string>());
    }
  }
  read_fields<GpuSample>(json, gpu, kGpuFields);
  return gpu;
}

Json gpu_json(const GpuSample& gpu) {
  Json json{{"gpu", gpu.index}, {"name", gpu.name}, {"uuid", gpu.uuid}};
  if (gpu.lost) json["lost"] = true;
  if (!gpu.throttled.empty()) json["throttled"] = gpu.throttled;
  write_fields<GpuSample>(json, gpu, kGpuFields);
  if (gpu.energy_from_power) json["energy_from_power"] = true;
  return json;
}

template <class Owner>
void join_fields(Owner& owner, const Owner& earlier, double earlier_share,
                 std::span<const SampleField<Owner>> fields) {
  for (const SampleField<Owner>& field : fields) {
    std::optional<double>& value = owner.*field.member;
    const std::optional<double>& before = earlier.*field.member;
    if (!value) {
      value = before;
    } else if (before && !field.is_total) {
      value = earlier_share * *before + (1 - earlier_share) * *value;
    }
  }
}

void join_reasons(GpuSample& gpu, const GpuSample& earlier) {
  for (const std::string& reason : earlier.throttled) {
    if (std::ranges::find(gpu.throttled, reason) == gpu.throttled.end()) {
      gpu.throttled.push_back(reason);
    }
  }
}

}  // namespace

Json to_json(const DeviceSample& sample) {
  Json json{{"time", sample.time},
            {"seconds", sample.seconds},
            {"node", sample.node},
            {"host", sample.node_name},
            {"ranks", sample.ranks}};
  if (!sample.no_gpus.empty()) json["no_gpus"] = sample.no_gpus;
  if (!sample.no_rapl.empty()) json["no_rapl"] = sample.no_rapl;
  write_fields<HostSample>(json, sample.host, kHostFields);
  for (const GpuSample& gpu : sample.gpus) json["gpus"].push_back(gpu_json(gpu));
  for (const WorkerSample& worker : sample.workers) {
    Json one{{"rank", worker.rank}};
    write_fields<WorkerSample>(one, worker, kWorkerFields);
    json["workers"].push_back(std::move(one));
  }
  return json;
}

std::optional<DeviceSample> device_sample(const Json& json) {
  if (!json.is_object() || !sample_number(json, "time") || !sample_number(json, "seconds")) {
    return std::nullopt;
  }
  DeviceSample sample{.time = *sample_number(json, "time"),
                      .seconds = *sample_number(json, "seconds"),
                      .node = sample_integer(json, "node"),
                      .node_name = sample_text(json, "host"),
                      .ranks = sample_integer(json, "ranks"),
                      .no_gpus = sample_text(json, "no_gpus"),
                      .no_rapl = sample_text(json, "no_rapl")};
  read_fields<HostSample>(json, sample.host, kHostFields);
  for_each_object(json, "gpus", [&](const Json& one) { sample.gpus.push_back(gpu_of(one)); });
  for_each_object(json, "workers", [&](const Json& one) {
    WorkerSample worker{.rank = sample_integer(one, "rank")};
    read_fields<WorkerSample>(one, worker, kWorkerFields);
    sample.workers.push_back(worker);
  });
  return sample;
}

DeviceSample joined(const DeviceSample& first, const DeviceSample& second) {
  DeviceSample result = second;
  result.seconds = first.seconds + second.seconds;
  const double share = result.seconds > 0 ? first.seconds / result.seconds : 0;
  join_fields<HostSample>(result.host, first.host, share, kHostFields);
  for (const GpuSample& earlier : first.gpus) {
    const auto same = std::ranges::find(result.gpus, earlier.uuid, &GpuSample::uuid);
    if (same == result.gpus.end()) {
      result.gpus.push_back(earlier);
      continue;
    }
    join_fields<GpuSample>(*same, earlier, share, kGpuFields);
    join_reasons(*same, earlier);
  }
  for (const WorkerSample& earlier : first.workers) {
    const auto same = std::ranges::find(result.workers, earlier.rank, &WorkerSample::rank);
    if (same == result.workers.end()) {
      result.workers.push_back(earlier);
    } else {
      join_fields<WorkerSample>(*same, earlier, share, kWorkerFields);
    }
  }
  return result;
}

}  // namespace scaletrain::observe
