// Numbered files of a set, NAME-000000.ENDING and following, in a local folder, and the temporary
// names of new ones.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::app {

// True if `file` is `name`, '-', digits and one of the endings, such as ".tar".
bool is_numbered(std::string_view file, std::string_view name,
                 std::initializer_list<std::string_view> endings);

// Returns the temporary path at which this process writes the future `path`: a hidden name in the
// same folder.
std::filesystem::path unfinished(const std::filesystem::path& path);

// Parsed name of a file that unfinished() named.
struct Unfinished {
  std::string becomes;
  pid_t owner = 0;
  bool is_in_use = false;  // its process still runs (lib/core/disk/temporary_name.h)
};

// Returns nullopt for other files; the index of an unfinished shard counts as that shard.
std::optional<Unfinished> parse_unfinished(const std::filesystem::path& file);

// Removes unfinished files of set `name` in `folder` whose process has ended, for example by
// SIGKILL.
void remove_abandoned(const std::filesystem::path& folder, std::string_view name);

}  // namespace scaletrain::app
