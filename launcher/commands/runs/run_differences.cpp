#include "launcher/commands/runs/run_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <string_view>
#include <utility>

#include "launcher/runs/recipe_keys.h"
#include "lib/core/text/text.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::launcher {
namespace {

constexpr std::array<std::string_view, 8> kComputing{"ATEN_", "CUDA_", "GLOO_", "GOMP_",
                                                     "KMP_",  "MKL_",  "NCCL_", "OMP_"};

std::string size_text(const DataFile& file) {
  const std::string bytes = fmt::format("{} bytes", file.bytes);
  return file.listing.empty() ? bytes : core::counted(file.files, "file") + ", " + bytes;
}

std::string time_text(std::int64_t ns) {
  constexpr std::int64_t kNsPerS = 1'000'000'000;
  const std::time_t seconds = ns / kNsPerS;
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  return fmt::format("written {:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", time.tm_year + 1900,
                     time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}

std::string name_of(const DataFile& file) { return "data " + file.set + " " + file.path; }

using FilesByName = std::map<std::pair<std::string, std::string>, const DataFile*>;

FilesByName by_name(const std::vector<DataFile>& files) {
  FilesByName result;
  for (const DataFile& file : files) result.emplace(std::pair(file.set, file.path), &file);
  return result;
}

RunJson field_of(const RunJson& environment, const std::string& name) {
  const RunJson::json_pointer place("/" + name);
  return environment.is_object() && environment.contains(place) ? environment[place] : RunJson();
}

}  // namespace

std::vector<RunDifference> data_differences(
    const std::vector<DataFile>& then, const std::vector<DataFile>& now,
    const std::function<std::string(const DataFile&)>& sha256_then) {
  std::vector<RunDifference> differences;
  const FilesByName files_now = by_name(now), files_then = by_name(then);
  for (const auto& [key, old] : files_then) {
    const auto found = files_now.find(key);
    if (found == files_now.end()) {
      differences.push_back({.name = name_of(*old), .then = size_text(*old), .now = "-"});
      continue;
    }
    const DataFile& file = *found->second;
    if (file.bytes != old->bytes || file.files != old->files) {
      differences.push_back(
          {.name = name_of(*old), .then = size_text(*old), .now = size_text(file)});
    } else if (file.listing != old->listing) {
      differences.push_back({.name = name_of(*old),
                             .then = "names and sizes " + old->listing,
                             .now = "names and sizes " + file.listing});
    } else if (file.modified_ns != old->modified_ns) {
      const std::string sum = file.listing.empty() ? sha256_then(*old) : "";
      const std::string sum_now = sum.empty() ? "" : format::sha256_of(file.path);
      if (sum.empty()) {
        differences.push_back({.name = name_of(*old),
                               .then = time_text(old->modified_ns),
                               .now = time_text(file.modified_ns),
                               .is_certain = false});
      } else if (sum != sum_now) {
        differences.push_back(
            {.name = name_of(*old), .then = "SHA-256 " + sum, .now = "SHA-256 " + sum_now});
      }
    }
  }
  for (const auto& [key, file] : files_now) {
    if (!files_then.contains(key)) {
      differences.push_back({.name = name_of(*file), .then = "-", .now = size_text(*file)});
    }
  }
  return differences;
}

std::vector<RunDifference> environment_differences(const RunJson& then, const RunJson& now,
                                                   const std::vector<std::string>& names) {
  std::vector<RunDifference> differences;
  for (const std::string& name : names) {
    const RunJson before = field_of(then, name), after = field_of(now, name);
    if (before == after) continue;
    differences.push_back({.name = name, .then = key_text(before), .now = key_text(after)});
  }
  return differences;
}

std::vector<std::pair<std::string, std::string>> computing_variables(const RunJson& environment) {
  std::vector<std::pair<std::string, std::string>> variables;
  const RunJson recorded = field_of(environment, "variables");
  if (!recorded.is_object()) return variables;
  for (const auto& [name, value] : recorded.items()) {
    const bool computes =
        std::any_of(kComputing.begin(), kComputing.end(),
                    [&name = name](std::string_view prefix) { return name.starts_with(prefix); });
    if (computes && name != "CUDA_VISIBLE_DEVICES" && value.is_string()) {
      variables.emplace_back(name, value.get<std::string>());
    }
  }
  return variables;
}

}  // namespace scaletrain::launcher
