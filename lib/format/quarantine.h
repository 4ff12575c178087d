// quarantine.json beside shards: samples and shards that `scaletrain data check --repair` found
// invalid and that training skips (docs/reference/formats/quarantine.md).
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
  std::string shard;    // base name of the shard
  std::string key;      // "": the complete shard
  std::string problem;  // description for messages

  bool operator==(const Quarantined&) const = default;
};

class Quarantine {
 public:
  Quarantine() = default;
  explicit Quarantine(std::vector<Quarantined> entries);  // in any order

  // Reads the list beside the shards of `folder`; empty if there is none. Throws
  // core::CheckpointError for a damaged list.
  static Quarantine beside(const std::filesystem::path& folder);

  bool operator==(const Quarantine&) const = default;

  const std::vector<Quarantined>& entries() const { return entries_; }  // sorted, each once
  bool holds_shard(std::string_view shard) const;
  // Returns the excluded keys of one shard, sorted bytewise, as index_shard() takes them.
  std::vector<std::string> keys_of(std::string_view shard) const;
  // Returns the entries of one shard, the entry for the complete shard first.
  std::span<const Quarantined> of(std::string_view shard) const;
  // True if training skips `entry`: it or its shard is in the list.
  bool leaves_out(const Quarantined& entry) const;

  // Returns the updated list after a check: entries of the shards in `judged` are replaced by
  // `wrong`.
  Quarantine renewed(const std::set<std::string>& judged, std::vector<Quarantined> wrong) const;

 private:
  std::vector<Quarantined> entries_;
};

// Convert to and from the file's text; keys and names must be UTF-8. parse_quarantine() throws
// core::CheckpointError naming `place`.
std::string encode_quarantine(const Quarantine& quarantine);
Quarantine parse_quarantine(std::string_view text, const std::string& place);

}  // namespace scaletrain::format
