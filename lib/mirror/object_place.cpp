// Remote copies in an object store: writes all files of a checkpoint first and its manifest last,
// only if there is none.
//
// A step's folder is "step-N" or "step-N.old", as on a disk; each is a checkpoint if it has a
// manifest. A step that exists and has changed is written under the other name before the first one
// loses its manifest, so that a complete checkpoint always exists.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/parallel.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_folder_survey.h"
#include "lib/format/hashed_file.h"
#include "lib/mirror/place.h"
#include "lib/storage/s3_upload.h"

namespace scaletrain::mirror {
namespace {

constexpr std::int64_t kMaxStateBytes = 64 << 20;

double hours_since(std::int64_t mtime_ns) {
  using Hours = std::chrono::duration<double, std::ratio<3600>>;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return Hours(now - std::chrono::nanoseconds(mtime_ns)).count();
}

class ObjectPlace : public Place {
 public:
  ObjectPlace(const std::string& path, const storage::Storage& storage,
              std::function<void()> cancel, HousekeepingPtr housekeeping)
      : checkpoints_(checkpoints_of(path)),
        storage_(storage),
        cancel_(std::move(cancel)),
        housekeeping_(std::move(housekeeping)) {}

  std::int64_t put(const OpenCheckpoint& checkpoint, const std::function<void()>& moved) override;
  void retain(std::int64_t newest, const format::Retention& retention) override;
  void cancel() override { cancel_(); }

 private:
  std::string url(const std::string& folder, const std::string& file) const {
    return fmt::format("{}/{}/{}", checkpoints_, folder, file);
  }
  std::optional<std::string> manifest_of(const std::string& folder) const {
    return storage::read_if_there(storage_, url(folder, format::kManifestName), kMaxManifestBytes);
  }
  void tidy_up();
  void upload(const OpenCheckpoint& checkpoint, const std::string& folder,
              const std::function<void()>& moved) const;
  void remove_folder(const std::string& folder) const;
  bool remove_if_possible(const std::string& folder) const;
  std::vector<std::string> look_around();
  void remove_others(const std::string& folder, const format::FileEntries& kept) const;

  // A copy's state, read once, as only this process writes here.
  struct Known {
    std::string folder;
    std::optional<format::TrainState> state;
    std::string unread;              // reason if `state` is not set
    std::int64_t mtime_ns = 0;       // time of the manifest
    format::FileEntries files = {};  // files of a checkpoint put by this process
  };

  void look_at(const std::string& folder, std::int64_t step);
  void compare_sizes(const Known& newest) const;

  std::string checkpoints_;
  const storage::Storage& storage_;
  std::function<void()> cancel_;
  HousekeepingPtr housekeeping_;
  bool can_tidy_ = true;
  std::map<std::int64_t, Known> known_;
};

std::int64_t ObjectPlace::put(const OpenCheckpoint& checkpoint,
                              const std::function<void()>& moved) {
  const std::int64_t step = checkpoint.manifest().step;
  const std::string plain = format::checkpoint_name(step);
  const std::string old = plain + format::kOldSuffix;
  const std::optional<std::string> first = manifest_of(plain);
  const std::optional<std::string> second = manifest_of(old);
  const std::string& text = checkpoint.manifest_text();
  const bool is_there = first == text || second == text;
  // Folder that has or gets the copy; the other one is removed afterwards.
  const bool is_plain = is_there ? first == text : !first;
  const std::string& target = is_plain ? plain : old;
  const std::string& other = is_plain ? old : plain;
  if (!is_there) {
    if (!is_plain && second) storage_.remove(url(old, format::kManifestName));
    upload(checkpoint, target, moved);
  }
  if (is_plain ? second.has_value() : first.has_value()) remove_if_possible(other);
  known_.erase(step);
  look_at(target, step);
  if (!known_.contains(step)) {
    throw core::StorageError(core::shown_path(url(target, format::kManifestName)),
                             "is not there after it was written", "check the object store");
  }
  known_.at(step).files = checkpoint.manifest().files;
  return is_there ? 0 : checkpoint.bytes();
}

// Aborts unfinished uploads: no upload of this process is under way, so they belong to a killed run
// or to a lost answer. Some servers do not support it, and some keys do not allow it.
void ObjectPlace::tidy_up() {
  if (!can_tidy_) return;
  try {
    storage_.remove_unfinished(checkpoints_);
  } catch (const core::Error& error) {
    can_tidy_ = false;
    core::warn("{}: {}; unfinished uploads may remain there", error.place(), error.found());
  }
}

void ObjectPlace::upload(const OpenCheckpoint& checkpoint, const std::string& folder,
                         const std::function<void()>& moved) const {
  const format::FileEntries& files = checkpoint.manifest().files;
  remove_others(folder, files);
  const auto send = [&](const std::string& name) {
    // Checks the file before any byte is sent, so that no damaged copy can be uploaded.
    checkpoint.read(name, [&](std::span<const std::byte> /*piece*/) { moved(); });
    const format::ByteReader& file = checkpoint.file(name);
    storage_.upload(url(folder, name),
                    {.bytes = file.bytes(), .read = [&](std::int64_t at, std::span<std::byte> out) {
                       file.read(at, out);
                       moved();
                     }});
    moved();
  };
  // Uploads small files in parallel; a large file uploads its parts in parallel.
  std::vector<std::string> small;
  small.reserve(files.size());
  for (const auto& [name, entry] : files) {
    if (entry.bytes <= storage::kS3PartBytes) small.push_back(name);
  }
  core::for_each_index(std::ssize(small), format::kReaders,
                       [&](std::int64_t i) { send(small[static_cast<std::size_t>(i)]); });
  for (const auto& [name, entry] : files) {
    if (entry.bytes > storage::kS3PartBytes) send(name);
  }
  const std::string manifest = url(folder, format::kManifestName);
  if (storage_.write_if_absent(manifest, checkpoint.manifest_text())) return;
  throw core::StorageError(core::shown_path(manifest), "was written by another program meanwhile",
                           "give each run its own /checkpoint/mirror");
}

// Removes files that an interrupted upload has left.
void ObjectPlace::remove_others(const std::string& folder, const format::FileEntries& kept) const {
  for (const storage::Storage::Entry& entry : storage_.list(url(folder, ""))) {
    if (!entry.folder && !kept.contains(entry.name)) storage_.remove(url(folder, entry.name));
  }
}

void ObjectPlace::remove_folder(const std::string& folder) const {
  storage_.remove(url(folder, format::kManifestName));
  remove_others(folder, {});
}

// False: it could not be removed, and a later call tries again.
bool ObjectPlace::remove_if_possible(const std::string& folder) const {
  return housekeeping_->attempt("it is kept, and removed later if possible",
                                [&] { remove_folder(folder); });
}

// Reads a folder's state into known_ if the folder has a manifest.
void ObjectPlace::look_at(const std::string& folder, std::int64_t step) {
  const std::string path = url(folder, format::kManifestName);
  const auto manifest = storage::open_if_there(storage_, path);
  if (manifest == nullptr) return;
  Known known{.folder = folder, .state = std::nullopt, .unread = ""};
  known.mtime_ns = manifest->identity().mtime_ns;
  const std::string state = url(folder, format::kStateFile);
  try {
    const auto text = storage::read_if_there(storage_, state, kMaxStateBytes);
    if (text) known.state = format::parse_state(*text, core::shown_path(state));
    if (!text) known.unread = core::shown_path(state) + ": is missing";
  } catch (const core::CheckpointError& error) {
    known.unread = error.place() + ": " + error.found();
  }
  known_[step] = std::move(known);
}

void ObjectPlace::compare_sizes(const Known& newest) const {
  for (const auto& [name, entry] : newest.files) {
    const std::string path = url(newest.folder, name);
    const std::int64_t bytes = storage_.open(path)->identity().bytes;
    if (bytes == entry.bytes) continue;
    throw core::StorageError(
        core::shown_path(path),
        fmt::format("has {} bytes, and {} were written", bytes, entry.bytes),
        "the object store lost data that was just written, so no earlier copy was removed");
  }
}

// Updates known_; returns folders without a complete copy, or with a second copy of a step.
std::vector<std::string> ObjectPlace::look_around() {
  std::vector<std::string> unfinished;
  std::set<std::int64_t> there;
  for (const storage::Storage::Entry& entry : storage_.list(checkpoints_)) {
    const auto step = entry.folder ? format::step_of_name(entry.name) : std::nullopt;
    if (!step) continue;
    if (!known_.contains(*step)) look_at(entry.name, *step);
    const auto known = known_.find(*step);
    if (known == known_.end() || known->second.folder != entry.name) {
      unfinished.push_back(entry.name);
    } else {
      there.insert(*step);
    }
  }
  std::erase_if(known_, [&](const auto& one) { return !there.contains(one.first); });
  return unfinished;
}

void ObjectPlace::retain(std::int64_t newest, const format::Retention& retention) {
  std::vector<std::string> unfinished;
  const bool is_known =
      housekeeping_->attempt("no old copy is removed", [&] { unfinished = look_around(); });
  if (!is_known) return;
  format::Survey survey;
  std::map<std::int64_t, double> hours;
  for (const auto& [step, known] : known_) {
    if (known.state) survey.states[step] = *known.state;
    if (!known.state) survey.unread[step] = known.unread;
    if (known.mtime_ns > 0) hours[step] = hours_since(known.mtime_ns);
  }
  const auto kept = format::kept_checkpoints(survey, newest, retention, hours);
  bool is_compared = false;
  for (const auto& [step, state] : survey.states) {
    if (kept.contains(step)) continue;
    if (!std::exchange(is_compared, true)) compare_sizes(known_.at(newest));
    if (remove_if_possible(known_.at(step).folder)) known_.erase(step);
  }
  for (const std::string& folder : unfinished) remove_if_possible(folder);
  tidy_up();
}

}  // namespace

std::unique_ptr<Place> make_object_place(const std::string& path, const storage::Storage& storage,
                                         std::function<void()> cancel,
                                         HousekeepingPtr housekeeping) {
  return std::make_unique<ObjectPlace>(path, storage, std::move(cancel), std::move(housekeeping));
}

}  // namespace scaletrain::mirror
