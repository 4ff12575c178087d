#include "lib/core/disk/left_overs.h"

#include <unistd.h>

#include <exception>
#include <optional>
#include <string>

#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/temporary_name.h"
#include "lib/core/error.h"

namespace scaletrain::core {

void remove_left_overs(Disk& disk, const std::filesystem::path& folder) {
  std::exception_ptr first;
  for (const std::string& name : names_in(folder)) {
    const std::optional<Temporary> temporary = parse_temporary(name);
    if (!temporary) continue;
    const bool is_own = temporary->writer == ::getpid();
    if (!is_own && has_living_writer(folder / name, *temporary)) continue;
    try {
      disk.remove_all(folder / name);
    } catch (const StorageError&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace scaletrain::core
