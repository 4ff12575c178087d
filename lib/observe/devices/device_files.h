// The files of device samples in a run's folder: one for each attempt and node.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "lib/observe/devices/device_sample.h"

namespace scaletrain::observe {

struct DeviceFile {
  std::filesystem::path path;
  int attempt = 0, node = 0;
};

// Returns RUN/logs/attempt_K/devices_NODE.jsonl.
std::filesystem::path device_file(const std::filesystem::path& attempt_logs, int node);

// Returns the files of a run by attempt and node.
std::vector<DeviceFile> device_files(const std::filesystem::path& run);

// Returns the samples of a file; lines that do not parse are left out.
std::vector<DeviceSample> read_device_samples(const std::filesystem::path& file);

// Returns the first and the last sample of a file, without reading all of it; {}: there is none.
std::vector<DeviceSample> first_and_last_sample(const std::filesystem::path& file);

// Returns the newest sample of each node in the newest attempt.
std::vector<DeviceSample> newest_device_samples(const std::filesystem::path& run);

// Appends samples to a file and bounds its length: when it has `most` lines, pairs of neighbours
// are joined, and from then on a line covers twice the interval.
class DeviceLog {
 public:
  static constexpr std::size_t kMostLines = 1024;

  explicit DeviceLog(std::filesystem::path file, std::size_t most = kMostLines);
  ~DeviceLog();
  DeviceLog(DeviceLog&&) noexcept;
  DeviceLog& operator=(DeviceLog&&) noexcept;

  // A file that cannot be written is a warning, once.
  void append(const DeviceSample& sample);
  // Writes the samples that were not written yet, as the interval of a line has not ended.
  void flush();

 private:
  struct Parts;
  void write(const DeviceSample& sample);
  void thin_out();

  std::unique_ptr<Parts> parts_;
};

}  // namespace scaletrain::observe
