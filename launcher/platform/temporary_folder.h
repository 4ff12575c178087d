// Folder for temporary files.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::launcher {

// Returns TMPDIR, or /tmp if TMPDIR is not set or not writable. Throws core::StorageError if
// neither is writable.
std::filesystem::path temporary_folder();

// Makes a folder there that only this user can enter, named `label` and six random characters: no
// other user can put a link in its place. It is in `parent` if this is not empty. The caller
// removes it. Throws core::StorageError.
std::filesystem::path make_temporary_folder(const std::string& label,
                                            const std::filesystem::path& parent = {});

}  // namespace scaletrain::launcher
