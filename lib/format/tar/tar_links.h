// Links in a tar: GNU tar writes a file of several names once, and a hard link for each other name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/format/tar/tar.h"

namespace scaletrain::format {

struct TarLink {
  bool hard = false;   // or symbolic
  std::string target;  // as stored: of a hard link the path of a member before it
};

class TarLinks {
 public:
  // As for TarReader; all must outlive it.
  TarLinks(const std::string& name, std::int64_t file_bytes, const ReadAt& read)
      : name_(name), file_bytes_(file_bytes), read_(read) {}

  // Returns the target of the member; nullopt if it is no link.
  std::optional<TarLink> link_of(const TarMember& member) const;

  // The regular file that a hard link stands for, at its own place, under the link's path; nullopt
  // for other links, and where no such file stands before it. The first call goes through all
  // headers of the tar; 40 bytes for each member are kept then.
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
