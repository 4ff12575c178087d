#include "lib/format/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/format/json_fields.h"

namespace scaletrain::format {
namespace {

constexpr std::int64_t kQuarantineVersion = 1;
constexpr const char* kWriteAgain =
    "remove the file, then write it again: scaletrain data check --repair";

struct ByShard {
  bool operator()(const Quarantined& a, std::string_view b) const { return a.shard < b; }
  bool operator()(std::string_view a, const Quarantined& b) const { return a < b.shard; }
};

void read_list(const nlohmann::json& list, bool with_keys, const std::string& place,
               const std::string& pointer, std::vector<Quarantined>& entries) {
  if (!list.is_array()) {
    throw core::CheckpointError(fmt::format("{}: {}", place, pointer), "is not an array",
                                kWriteAgain);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonFields fields(list[i], place, fmt::format("{}/{}", pointer, i));
    Quarantined entry;
    entry.shard = fields.text("shard");
    if (with_keys) entry.key = fields.text("key");
    entry.problem = fields.text("problem");
    fields.done();
    if (entry.shard.empty() || (with_keys && entry.key.empty())) {
      throw core::CheckpointError(fmt::format("{}: {}/{}", place, pointer, i), "names nothing",
                                  kWriteAgain);
    }
    entries.push_back(std::move(entry));
  }
}

}  // namespace

Quarantine::Quarantine(std::vector<Quarantined> entries) : entries_(std::move(entries)) {
  const auto place = [](const Quarantined& entry) { return std::tie(entry.shard, entry.key); };
  std::sort(entries_.begin(), entries_.end(), [](const Quarantined& a, const Quarantined& b) {
    return std::tie(a.shard, a.key, a.problem) < std::tie(b.shard, b.key, b.problem);
  });
  entries_.erase(
      std::unique(entries_.begin(), entries_.end(),
                  [&](const Quarantined& a, const Quarantined& b) { return place(a) == place(b); }),
      entries_.end());
}

Quarantine Quarantine::beside(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kQuarantineFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  return parse_quarantine(core::read_file(path, kMaxQuarantineBytes, core::ExitCode::kData),
                          path.string());
}

std::span<const Quarantined> Quarantine::of(std::string_view shard) const {
  const auto [first, end] = std::equal_range(entries_.begin(), entries_.end(), shard, ByShard());
  return {first, end};
}

bool Quarantine::holds_shard(std::string_view shard) const {
  const std::span<const Quarantined> found = of(shard);
  return !found.empty() && found.front().key.empty();  // "" comes first
}

std::vector<std::string> Quarantine::keys_of(std::string_view shard) const {
  std::vector<std::string> keys;
  for (const Quarantined& entry : of(shard)) {
    if (!entry.key.empty()) keys.push_back(entry.key);
  }
  return keys;
}

bool Quarantine::leaves_out(const Quarantined& entry) const {
  const auto by_place = [](const Quarantined& a, const Quarantined& b) {
    return std::tie(a.shard, a.key) < std::tie(b.shard, b.key);
  };
  return holds_shard(entry.shard) ||
         std::binary_search(entries_.begin(), entries_.end(), entry, by_place);
}

Quarantine Quarantine::renewed(const std::set<std::string>& judged,
                               std::vector<Quarantined> wrong) const {
  for (const Quarantined& entry : entries_) {
    if (!judged.contains(entry.shard)) wrong.push_back(entry);
  }
  return Quarantine(std::move(wrong));
}

std::string encode_quarantine(const Quarantine& quarantine) {
  nlohmann::ordered_json samples = nlohmann::ordered_json::array(), shards = samples;
  for (const Quarantined& entry : quarantine.entries()) {
    if (entry.key.empty()) {
      shards.push_back({{"shard", entry.shard}, {"problem", entry.problem}});
    } else {
      samples.push_back({{"shard", entry.shard}, {"key", entry.key}, {"problem", entry.problem}});
    }
  }
  const nlohmann::ordered_json json = {
      {"version", kQuarantineVersion}, {"shards", shards}, {"samples", samples}};
  return json.dump(1) + "\n";
}

Quarantine parse_quarantine(std::string_view text, const std::string& place) {
  const nlohmann::json json = parse_object(text, place);
  JsonFields fields(json, place);
  if (const std::int64_t version = fields.integer("version"); version != kQuarantineVersion) {
    throw core::CheckpointError(place, fmt::format("is of version {}", version),
                                fmt::format("this program reads version {}", kQuarantineVersion));
  }
  std::vector<Quarantined> entries;
  read_list(fields.value("shards"), false, place, "/shards", entries);
  read_list(fields.value("samples"), true, place, "/samples", entries);
  fields.done();
  return Quarantine(std::move(entries));
}

}  // namespace scaletrain::format
