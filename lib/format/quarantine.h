// quarantine.json beside shards: samples and whole shards that `scaletrain data check --repair`
// found wrong and that training leaves out (docs/reference/formats/quarantine.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

inline constexpr const char* kQuarantineFile = "quarantine.json";
inline constexpr std::int64_t kMaxQuarantineBytes = std::int64_t{256} << 20;

struct Quarantined {
  std::string shard;    // its base name
  std::string key;      // "" for the whole shard
  std::string problem;  // for people

  bool operator==(const Quarantined&) const = default;
};

class Quarantine {
 public:
  Quarantine() = default;
  explicit Quarantine(std::vector<Quarantined> entries);  // in any order

  // The list beside the shards of `folder`; empty where there is none. Throws
  // core::CheckpointError for a damaged one.
  static Quarantine beside(const std::filesystem::path& folder);

  bool operator==(const Quarantine&) const = default;

  const std::vector<Quarantined>& entries() const { return entries_; }  // sorted, each once
  bool holds_shard(std::string_view shard) const;
  // The keys of one shard that are left out, sorted bytewise: what index_shard() takes.
  std::vector<std::string> keys_of(std::string_view shard) const;
  // The entries of one shard, that of the whole shard first.
  std::span<const Quarantined> of(std::string_view shard) const;
  // True if training leaves out `entry`: it, or its whole shard, is in the list.
  bool leaves_out(const Quarantined& entry) const;

  // The list after a check found `wrong` in shards: of those that it `judged`, nothing else stays.
  Quarantine renewed(const std::set<std::string>& judged, std::vector<Quarantined> wrong) const;

 private:
  std::vector<Quarantined> entries_;
};

// The file's text; keys and names must be UTF-8. parse_quarantine throws core::CheckpointError
// naming `place`.
std::string encode_quarantine(const Quarantine& quarantine);
Quarantine parse_quarantine(std::string_view text, const std::string& place);

}  // namespace scaletrain::format
