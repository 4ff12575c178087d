#include "lib/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <optional>
#include <system_error>

#include "lib/checkpoint/tensor_files.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/trace_spans.h"
#include "lib/core/version.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_links.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"
#include "lib/format/json_fields.h"

namespace scaletrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "checkpoints";
// nullopt if the folder cannot be listed: the checkpoint is saved, and none is removed.
std::optional<format::Survey> survey_or_warn(const fs::path& checkpoints,
                                             core::Housekeeping& housekeeping) {
  std::optional<format::Survey> survey;
  housekeeping.attempt("no earlier checkpoint is removed",
                       [&] { survey = format::survey_checkpoints(checkpoints); });
  if (!survey) return survey;
  for (const auto& [step, why] : survey->unread) {
    core::warn("{}; the checkpoint of step {} is kept, because its metrics are unknown", why, step);
  }
  return survey;
}

// One save of several ranks, from its begin to its end.
class Turn {
 public:
  explicit Turn(Writers* writers) : writers_(writers) {
    if (writers_ != nullptr) writers_->begin();
  }
  ~Turn() {
    try {
      if (writers_ != nullptr) writers_->end();
    } catch (const std::exception& error) {  // the others see that this rank is gone
      core::warn("the other ranks were not informed of the end of a save: {}", error.what());
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Returns the files that all ranks write into `folder`; `write` writes this rank's own files.
  format::FolderFiles written_by_all(
      const fs::path& folder, const std::function<format::FolderFiles(const fs::path&)>& write) {
    if (writers_ == nullptr) return write(folder);
    writers_->ask(folder.filename());
    format::FolderFiles files({});
    std::exception_ptr error;
    try {
      files = write(folder);
    } catch (...) {  // the folder is theirs too until they have answered
      error = std::current_exception();
    }
    writers_->collect(files);
    if (error) std::rethrow_exception(error);
    return files;
  }

 private:
  Writers* writers_;
};

// Checks that the files of other ranks have arrived on this host, which publishes all of them.
void check_sizes(const fs::path& folder, const format::FileEntries& files) {
  for (const auto& [name, entry] : files) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(folder / name, error);
    if (!error && bytes == static_cast<std::uintmax_t>(entry.bytes)) continue;
    throw core::StorageError(
        (folder / name).string(),
        error ? fmt::format("does not exist on this node, and {} bytes were written", entry.bytes)
              : fmt::format("has {} bytes, and {} were written", bytes, entry.bytes),
        "set /checkpoint/writers to \"rank_0\", or use a file system that all nodes share");
  }
}

bool is_linked(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t names = fs::hard_link_count(path, error);
  return !error && names > 1;
}

}  // namespace

Written write(core::Disk& disk, const fs::path& run, const Contents& contents, Writers* writers,
              KeptFiles* kept, core::Housekeeping* housekeeping,
              const std::function<void()>& read_back) {
  const core::SpanScope span("checkpoint write");
  Turn turn(writers);
  core::Housekeeping own_housekeeping;
  const TensorFiles tensors(contents, kept);
  const std::string state = format::render_state(contents.state);
  const std::string classes = nlohmann::json(contents.classes).dump() + "\n";
  const auto write_own = [&](const fs::path& folder) {
    format::FolderFiles files = tensors.write(disk, folder);
    files.files[format::kStateFile] =
        format::write_hashed(disk, folder / format::kStateFile, state);
    files.files[format::kClassesFile] =
        format::write_hashed(disk, folder / format::kClassesFile, classes);
    files.files[format::kRecipeFile] =
        format::write_hashed(disk, folder / format::kRecipeFile, contents.recipe);
    return files;
  };
  Written written;
  const auto write_files = [&](const fs::path& folder) {
    format::FolderFiles files = turn.written_by_all(folder, write_own);
    if (writers != nullptr) check_sizes(folder, files.files);
    written.bytes = written.linked = 0;
    for (const auto& [name, entry] : files.files) {
      written.bytes += entry.bytes;
      if (kept != nullptr && is_linked(folder / name)) written.linked += entry.bytes;
    }
    files.read_back = read_back;
    return files;
  };
  written.path = format::publish_checkpoint(
      disk, run / kFolder,
      {.program = std::string("scaletrain ") + core::version(), .step = contents.state.step},
      tensors.bytes(), write_files, housekeeping != nullptr ? *housekeeping : own_housekeeping);
  if (kept != nullptr) kept->published(written.path);
  return written;
}

void write_share(core::Disk& disk, const fs::path& run, const Contents& share, Writers& writers,
                 KeptFiles* kept) {
  writers.follow([&](const std::string& name) {
    const fs::path folder = run / kFolder / name;
    // An error of the share itself is reported as one of its writing.
    format::FolderFiles written = TensorFiles(share, kept).write(disk, folder);
    disk.sync_folder(folder);
    return written;
  });
  // Rank 0 may have failed to publish it: then nothing is linked to it.
  if (kept != nullptr) kept->published(run / kFolder / format::checkpoint_name(share.state.step));
}

void settle(core::Disk& disk, const fs::path& run, std::int64_t step,
            const format::Retention& retention, core::Housekeeping& housekeeping) {
  const fs::path checkpoints = run / kFolder;
  const std::optional<format::Survey> survey = survey_or_warn(checkpoints, housekeeping);
  if (!survey) return;
  format::point_links(disk, checkpoints, *survey, step, housekeeping);
  format::retain_checkpoints(disk, checkpoints, *survey, step, retention, housekeeping);
}

fs::path save(core::Disk& disk, const fs::path& run, const Contents& contents,
              const format::Retention& retention) {
  core::Housekeeping housekeeping;
  fs::path path = write(disk, run, contents, nullptr, nullptr, &housekeeping).path;
  settle(disk, run, contents.state.step, retention, housekeeping);
  return path;
}

}  // namespace scaletrain::checkpoint
