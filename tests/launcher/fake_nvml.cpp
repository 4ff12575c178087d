// The driver's library as far as the launcher asks it: FAKE_GPUS of them (4), two a NUMA node by
// their addresses, the last with a MIG instance, FAKE_NVLINKS between them. Tests put it on
// LD_LIBRARY_PATH.
//
// The file FAKE_NVML_VALUES has what the samples of devices see, a line "GPU NAME VALUE" each: "0
// power_mw 250000". A value that is not there is not supported, and a GPU with "lost 1" is lost.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

namespace {

constexpr int kNotSupported = 3, kLost = 15;

unsigned gpu_count() {
  const char* const text = std::getenv("FAKE_GPUS");
  return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 4;
}

// A handle is the number of its device + 1; that of the MIG instance is 1000.
constexpr std::uintptr_t kMig = 1000;
void* handle(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

struct PciInfo {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};

int copy(char* to, unsigned size, const char* text) {
  std::snprintf(to, size, "%s", text);
  return 0;
}

std::optional<unsigned long long> planted(void* device, const std::string& name) {
  const char* const file = std::getenv("FAKE_NVML_VALUES");
  if (file == nullptr) return std::nullopt;
  std::ifstream stream(file);
  std::uintptr_t gpu = 0;
  std::string of;
  unsigned long long value = 0;
  while (stream >> gpu >> of >> value) {
    if (gpu + 1 == reinterpret_cast<std::uintptr_t>(device) && of == name) return value;
  }
  return std::nullopt;
}

template <class Value>
int give(void* device, const std::string& name, Value* to) {
  if (planted(device, "lost")) return kLost;
  const auto value = planted(device, name);
  if (!value) return kNotSupported;
  *to = static_cast<Value>(*value);
  return 0;
}

struct Utilization {
  unsigned gpu, memory;
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, status;
  unsigned long long value;
};

}  // namespace

extern "C" {

int nvmlDeviceGetUtilizationRates(void* device, Utilization* to) {
  return give(device, "utilization", &to->gpu);
}
int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* to) {
  return give(device, kind == 1 ? "sm_mhz" : kind == 2 ? "memory_mhz" : "other", to);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* to) {
  return give(device, "throttle", to);
}
int nvmlDeviceGetTemperature(void* device, int, unsigned* to) {
  return give(device, "temperature_c", to);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* to) { return give(device, "power_mw", to); }
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* to) {
  return give(device, "energy_mj", to);
}
int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter, unsigned long long* to) {
  if (counter != 0) return kNotSupported;
  return give(device, kind == 0 ? "ecc_corrected" : "ecc_uncorrected", to);
}
int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].type = 3;
    const bool is_whole = fields[i].field < 138 || fields[i].scope == ~0U;
    fields[i].status =
        is_whole ? give(device, "field" + std::to_string(fields[i].field), &fields[i].value)
                 : kNotSupported;
  }
  return 0;
}

int nvmlInit_v2() { return std::getenv("FAKE_NVML_REFUSES") != nullptr ? 9 : 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* to, unsigned size) { return copy(to, size, "580.00"); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpu_count();
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = handle(index + 1);
  return 0;
}
int nvmlDeviceGetName(void*, char* to, unsigned size) { return copy(to, size, "Fake"); }
int nvmlDeviceGetUUID(void* device, char* to, unsigned size) {
  const auto number = reinterpret_cast<std::uintptr_t>(device);
  char text[32];
  std::snprintf(text, sizeof text, number == kMig ? "MIG-m%zu" : "GPU-u%zu",
                static_cast<std::size_t>(number == kMig ? 0 : number - 1));
  return copy(to, size, text);
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  *pci = PciInfo{};
  pci->bus = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device));
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const char* const prefix = "GPU-u";
  if (std::strncmp(uuid, prefix, std::strlen(prefix)) != 0) return 6;
  *device = handle(static_cast<std::uintptr_t>(std::atoi(uuid + std::strlen(prefix))) + 1);
  return 0;
}
// FAKE_NVLINKS="0-2,1-3" joins these; 2 is the driver's number of the question.
int nvmlDeviceGetP2PStatus(void* one, void* other, int question, int* status) {
  const char* const links = std::getenv("FAKE_NVLINKS");
  char pair[48];
  std::snprintf(pair, sizeof pair, "%zu-%zu", reinterpret_cast<std::uintptr_t>(one) - 1,
                reinterpret_cast<std::uintptr_t>(other) - 1);
  *status = question == 2 && links != nullptr && std::strstr(links, pair) != nullptr ? 0 : 4;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, int* level) {
  const auto node = [](void* device) { return (reinterpret_cast<std::uintptr_t>(device) - 1) / 2; };
  *level = node(one) == node(other) ? 40 : 50;
  return std::getenv("FAKE_NVML_NO_PATHS") != nullptr ? 3 : 0;
}
int nvmlDeviceGetMemoryInfo(void* device, MemoryInfo* memory) {
  if (planted(device, "lost")) return kLost;
  *memory = {.total = 1ULL << 30, .free = 0, .used = planted(device, "memory_used").value_or(0)};
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  if (reinterpret_cast<std::uintptr_t>(device) != gpu_count() || index != 0) return 6;
  *instance = handle(kMig);
  return 0;
}
}
