#include "lib/observe/devices/device_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/line_follower.h"
#include "lib/observe/line_writer.h"

namespace scaletrain::observe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kAttempt = "attempt_", kPrefix = "devices_", kSuffix = ".jsonl";
constexpr std::streamoff kTailBytes = 64 << 10;  // longer than any line

// Returns N of "PREFIXNSUFFIX".
std::optional<int> number_between(std::string_view name, std::string_view prefix,
                                  std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(std::min(suffix.size(), name.size()));
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::optional<DeviceSample> sample_of_line(const std::string& line) {
  return device_sample(Json::parse(line, nullptr, false));
}

std::string line_of(const DeviceSample& sample) { return core::json_text(to_json(sample)); }

// Workers' logs are in the same folder, which may not exist yet. An error shows in the first write.
fs::path with_folder(fs::path file) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  return file;
}

}  // namespace

fs::path device_file(const fs::path& attempt_logs, int node) {
  return attempt_logs / fmt::format("{}{}{}", kPrefix, node, kSuffix);
}

std::vector<DeviceFile> device_files(const fs::path& run) {
  std::vector<DeviceFile> files;
  std::error_code absent;
  for (const fs::directory_entry& folder : fs::directory_iterator(run / "logs", absent)) {
    const std::optional<int> attempt =
        number_between(folder.path().filename().string(), kAttempt, "");
    if (!attempt) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path(), absent)) {
      const std::optional<int> node =
          number_between(file.path().filename().string(), kPrefix, kSuffix);
      if (node) files.push_back({.path = file.path(), .attempt = *attempt, .node = *node});
    }
  }
  std::ranges::sort(files, {},
                    [](const DeviceFile& file) { return std::tuple(file.attempt, file.node); });
  return files;
}

std::vector<DeviceSample> read_device_samples(const fs::path& file) {
  std::vector<DeviceSample> samples;
  LineFollower(file).read([] {},
                          [&](const Json& json) {
                            if (auto sample = device_sample(json)) samples.push_back(*sample);
                          });
  return samples;
}

std::vector<DeviceSample> first_and_last_sample(const fs::path& file) {
  std::vector<DeviceSample> samples;
  std::ifstream stream(file);
  std::string line;
  while (samples.empty() && std::getline(stream, line)) {
    if (auto sample = sample_of_line(line)) samples.push_back(*std::move(sample));
  }
  if (samples.empty()) return samples;
  const std::streamoff begin = stream.tellg();
  stream.seekg(0, std::ios::end);
  stream.seekg(std::max(begin, static_cast<std::streamoff>(stream.tellg()) - kTailBytes));
  std::optional<DeviceSample> last;
  while (begin >= 0 && std::getline(stream, line)) {
    if (auto sample = sample_of_line(line)) last = std::move(sample);
  }
  samples.push_back(last.value_or(samples.front()));
  return samples;
}

std::vector<DeviceSample> newest_device_samples(const fs::path& run) {
  const std::vector<DeviceFile> files = device_files(run);
  std::vector<DeviceSample> newest;
  for (const DeviceFile& file : files) {
    if (file.attempt != files.back().attempt) continue;
    std::vector<DeviceSample> ends = first_and_last_sample(file.path);
    if (!ends.empty()) newest.push_back(std::move(ends.back()));
  }
  return newest;
}

struct DeviceLog::Parts {
  fs::path file;
  std::size_t most, lines = 0;
  std::size_t samples_a_line = 1;  // doubled when the file is thinned out
  std::shared_ptr<core::Housekeeping> housekeeping = std::make_shared<core::Housekeeping>();
  LineWriter writer{file, housekeeping};
  std::optional<DeviceSample> waiting{};
  std::size_t waiting_samples = 0;
};

DeviceLog::DeviceLog(fs::path file, std::size_t most)
    : parts_(new Parts{.file = with_folder(std::move(file)),
                       .most = std::max<std::size_t>(most, 2)}) {}

DeviceLog::~DeviceLog() = default;
DeviceLog::DeviceLog(DeviceLog&&) noexcept = default;
DeviceLog& DeviceLog::operator=(DeviceLog&&) noexcept = default;

void DeviceLog::append(const DeviceSample& sample) {
  parts_->waiting = parts_->waiting ? joined(*parts_->waiting, sample) : sample;
  if (++parts_->waiting_samples >= parts_->samples_a_line) flush();
}

void DeviceLog::flush() {
  if (!parts_->waiting) return;
  const DeviceSample sample = *std::exchange(parts_->waiting, std::nullopt);
  parts_->waiting_samples = 0;
  write(sample);
}

void DeviceLog::write(const DeviceSample& sample) {
  parts_->writer.append(line_of(sample));
  if (++parts_->lines >= parts_->most) thin_out();
}

void DeviceLog::thin_out() {
  const std::vector<DeviceSample> samples = read_device_samples(parts_->file);
  std::string text;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < samples.size(); i += 2, ++lines) {
    const bool has_next = i + 1 < samples.size();
    text += line_of(has_next ? joined(samples[i], samples[i + 1]) : samples[i]) + "\n";
  }
  // Not synced: samples are not needed for a resume. The writer opens the new file by itself.
  const fs::path temporary = parts_->file.string() + ".new";
  std::ofstream stream(temporary);
  stream << text;
  stream.close();
  std::error_code failed;
  if (stream.good()) fs::rename(temporary, parts_->file, failed);
  if (!stream.good() || failed) {
    parts_->housekeeping->failed(temporary.string(), "cannot be written",
                                 "the file of device samples grows");
    lines = 0;  // tried again after as many lines
  }
  parts_->lines = lines;
  parts_->samples_a_line *= 2;
}

}  // namespace scaletrain::observe
