// The secret of a job on several nodes, by which they know each other (lib/replica/secret.h).
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::launcher {

// The text of the file that SCALETRAIN_SECRET_FILE names, or of `run`/peer-secret, which the first
// launcher makes with random contents. Each must be a regular file of this user that nobody else
// can read. Throws core::UsageError for a named file that is not so or has less than 32 bytes.
// Returns "", with a warning, where the run's folder cannot hold a private file.
std::string job_secret(const std::filesystem::path& run);

}  // namespace scaletrain::launcher
