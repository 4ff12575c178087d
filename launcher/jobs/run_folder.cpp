#include "launcher/jobs/run_folder.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/jobs/checks/data_cards.h"
#include "launcher/jobs/checks/run_folder.h"
#include "launcher/workers/failure_file.h"
#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/disk/left_overs.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/checkpoint_folder_links.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLease = "lease.json";

// Patience of a successor leader: longer than the interval of the old leader's heartbeats.
constexpr std::chrono::seconds kSuccessorPatience{25};
constexpr std::chrono::milliseconds kSuccessorRetry{500};

// The folder of a run is needed, but one call may fail and the next succeed.
void make_run_folder(const fs::path& path) {
  core::Disk& disk = core::system_disk();
  try {
    disk.make_folders(path);
  } catch (const core::StorageError&) {
    disk.make_folders(path);
  }
}

// True for a folder as another node of the job makes it, which has just begun to write its journal.
bool has_only_journals(const fs::path& path) {
  const fs::path logs = path / "logs";
  if (core::type_at(logs) != fs::file_type::directory || core::names_in(path).size() > 1) {
    return false;
  }
  const std::vector<std::string> names = core::names_in(logs);
  return names.empty() || names == std::vector<std::string>{"agents"};
}

}  // namespace

RunFolder::RunFolder(const recipe::Recipe& recipe)
    : recipe_(recipe), path_(recipe.output), journal_(path_) {}

void RunFolder::create() {
  is_new_ = core::type_at(path_) == fs::file_type::not_found || has_only_journals(path_);
  make_run_folder(path_);
  std::error_code ignored;
  fs::create_directories(path_ / "logs", ignored);  // tried again for each log
}

void RunFolder::take_lease(bool is_first) {
  const core::SteadyTime end = core::now() + kSuccessorPatience;
  bool has_failed = false;
  while (!lease_) {
    try {
      lease_ = std::make_unique<core::Lease>(
          path_ / kLease, next_attempt(), is_first ? core::Lease::kStaleAfter : kSuccessorPatience);
    } catch (const core::UsageError&) {
      if (is_first || core::now() >= end) throw;
      std::this_thread::sleep_for(kSuccessorRetry);
    } catch (const core::StorageError&) {
      if (std::exchange(has_failed, true)) throw;  // an error may come once
    }
  }
}

void RunFolder::own(bool is_first) {
  take_lease(is_first);
  core::Disk& disk = core::system_disk();
  core::Housekeeping housekeeping;
  for (const fs::path& folder : {path_, path_ / "checkpoints"}) {
    housekeeping.attempt("it is kept, and removed later if possible",
                         [&] { core::remove_left_overs(disk, folder); });
  }
  for (const char* const name : {"failure.json", "finished.json"}) {
    housekeeping.attempt("it is of an earlier attempt", [&] { disk.remove_all(path_ / name); });
  }
  // Rank 0 replaces the recipe of a resumed run after loading everything: a recipe that does not
  // fit must not stay.
  const bool is_resumed = holds_run(path_);
  if (!is_resumed) {
    housekeeping.attempt("rank 0 writes it again", [&] {
      core::write_durably(disk, path_ / "recipe.json", recipe::to_json(recipe_));
    });
    provenance_ = std::make_unique<ProvenanceRecorder>(
        path_, recipe_.data, recipe_.model.weights ? recipe_.model.weights->path : "");
  }
  housekeeping.attempt("the run has no copy of its data's cards",
                       [&] { record_cards(recipe_.data, path_, is_resumed); });
  housekeeping.attempt("an export takes the tokenizer from the weights",
                       [&] { record_companions(recipe_.model, path_); });
}

std::string RunFolder::renew_lease() {
  if (!lease_ || lease_->beat()) return "";
  return fmt::format("{}: another job has taken this folder while this one stood still or lost it",
                     path_.string());
}

int RunFolder::next_attempt() const { return launcher::next_attempt(path_, 0); }

void RunFolder::begin_attempt(int number) {
  attempt_ = number;
  was_unfinished_ = !fs::exists(path_ / "finished.json");
}

fs::path RunFolder::attempt_logs() const {
  return path_ / "logs" / fmt::format("attempt_{}", attempt_);
}

// True if this attempt has written finished.json; an older file does not count.
bool RunFolder::is_finished_now() const {
  std::error_code unknown;
  return was_unfinished_ && fs::is_regular_file(path_ / "finished.json", unknown);
}

void RunFolder::settle_links() const {
  if (lease_) format::settle_links(core::system_disk(), path_ / "checkpoints");
}

void RunFolder::write_event(const std::string& event, const nlohmann::ordered_json& fields) {
  if (lease_) journal_.write(event, attempt_, fields);
}

void RunFolder::write_failure(const Failure& failure) const {
  if (lease_) launcher::write_failure(path_, failure, attempt_);
}

bool RunFolder::is_unused() const { return is_new_ && !holds_run(path_); }

void RunFolder::remove() {
  const bool is_anothers = !lease_ && core::type_at(path_ / kLease) != fs::file_type::not_found;
  if (!is_unused() || is_anothers) return;
  provenance_.reset();  // it writes into the folder
  core::Housekeeping housekeeping;
  housekeeping.attempt("it holds no run", [&] { core::system_disk().remove_all(path_); });
  lease_.reset();
}

}  // namespace scaletrain::launcher
