#include "launcher/platform/scratch_folder.h"

#include <system_error>

#include "launcher/platform/temporary_folder.h"

namespace scaletrain::launcher {

ScratchFolder::ScratchFolder(const std::string& label, const std::filesystem::path& parent)
    : path_(make_temporary_folder(label, parent)) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace scaletrain::launcher
