// Resolves links in a tar: GNU tar stores a file with several names once, and a hard link for each
// other name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/format/tar/tar.h"

namespace scaletrain::format {

struct TarLink {
  bool hard = false;   // true: hard link; false: symbolic link
  std::string target;  // as stored; for a hard link the path of an earlier member
};

class TarLinks {
 public:
  // Arguments as for TarReader; all must outlive this object.
  TarLinks(const std::string& name, std::int64_t file_bytes, const ReadAt& read)
      : name_(name), file_bytes_(file_bytes), read_(read) {}

  // Returns the target of the member; nullopt if it is no link.
  std::optional<TarLink> link_of(const TarMember& member) const;

  // Returns the regular file of a hard link, with its own offsets and the link's path; nullopt for
  // other links, and if no such file precedes it. The first call reads all headers of the tar and
  // keeps 40 bytes for each member.
  std::optional<TarMember> resolve(const TarMember& member, const TarLink& link);

 private:
  struct Place {
    std::int64_t begin = 0, data = 0, bytes = 0;
  };

  void read_places();

  const std::string& name_;
  std::int64_t file_bytes_;
  const ReadAt& read_;
  bool was_read_ = false;
  std::unordered_map<std::uint64_t, Place> places_;  // regular files by XXH3-64 of their paths
};

}  // namespace scaletrain::format
