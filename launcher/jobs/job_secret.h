// Shared secret of a multi-node job, for authentication between nodes (lib/replica/secret.h).
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::launcher {

// Returns the text of the file in SCALETRAIN_SECRET_FILE, or of `run`/peer-secret, which the first
// launcher creates with random contents. Each must be a regular file of this user that nobody else
// can read. Throws core::UsageError for a given file that is not, or has less than 32 bytes.
// Returns "", with a warning, if the run's folder cannot have a private file.
std::string job_secret(const std::filesystem::path& run);

}  // namespace scaletrain::launcher
