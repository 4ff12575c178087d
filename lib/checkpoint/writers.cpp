#include "lib/checkpoint/writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "lib/core/call_every.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"

namespace scaletrain::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr const char* kOrder = "order";
constexpr std::chrono::milliseconds kShowEvery{1000};

std::string key_of(const char* what, int rank) { return fmt::format("{}/{}", what, rank); }

// Pauses that grow, so that a short wait is short and a long one asks little of the board.
class Pauses {
 public:
  void wait() {
    constexpr std::chrono::milliseconds kLongest{100};
    std::this_thread::sleep_for(next_);
    next_ = std::min(2 * next_, kLongest);
  }

 private:
  std::chrono::milliseconds next_{2};
};

std::string error_text(const std::exception& error) {
  const auto* const known = dynamic_cast<const core::Error*>(&error);
  Json json = {{"code", static_cast<int>(core::exit_code_of(error))}};
  json["place"] = known != nullptr ? known->place() : "a share of a checkpoint";
  json["found"] = known != nullptr ? known->found() : error.what();
  json["remedy"] = known != nullptr ? known->remedy() : "";
  return core::json_text(Json{{"error", json}});
}

// Rebuilds the exception that rank `rank` threw, with the type it has for this rank's own error.
std::exception_ptr error_of(int rank, const Json& json) {
  const auto code = static_cast<core::ExitCode>(json.at("code").get<int>());
  const std::string place = fmt::format("rank {}: {}", rank, json.at("place").get<std::string>());
  const std::string found = json.at("found"), remedy = json.at("remedy");
  if (code == core::ExitCode::kStorage) {
    return std::make_exception_ptr(core::StorageError(place, found, remedy));
  }
  return std::make_exception_ptr(core::Error(code, place, found, remedy));
}

// Adds what a report says was written; the error where it says one.
std::exception_ptr add_report(int rank, const std::string& text, format::FolderFiles& files) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("error")) return error_of(rank, json.at("error"));
  format::Manifest manifest = format::parse_manifest(text, fmt::format("report of rank {}", rank));
  files.files.merge(manifest.files);
  format::merge_tables(files.tensors, manifest.tensors);
  return nullptr;
}

}  // namespace

struct Writers::Order {
  std::int64_t save = 0, attempt = 0;
  std::string folder;  // "": the save has ended

  explicit Order(const std::string& text) {
    std::istringstream words(text);
    words >> save >> attempt >> folder;
  }
};

// Watches whether another rank shows that it takes part in this save.
class Writers::Watch {
 public:
  Watch(Writers& writers, int rank) : writers_(writers), rank_(rank) {}

  // Throws where it has been waited for long enough.
  void check() {
    constexpr double kLookEvery = 0.5;  // seconds
    if (core::seconds_since(looked_) < kLookEvery) return;
    looked_ = core::now();
    const std::string shown = writers_.board_->get(key_of("alive", rank_));
    if (std::exchange(shown_, shown) != shown) changed_ = looked_;
    const bool takes_part = Order(shown).save >= writers_.save_;
    const Patience& patience = writers_.patience_;
    const double limit_s = writers_.in_haste_ ? patience.in_haste_s
                           : takes_part       ? patience.silent_s
                                              : patience.absent_s;
    const double silent_s = core::seconds_since(changed_);
    if (silent_s < limit_s) return;
    throw core::StoppedError(
        fmt::format("rank {}", writers_.rank_),
        fmt::format("rank {} has not responded for {:.0f} s while a checkpoint was written", rank_,
                    silent_s),
        "look at the log of that rank");
  }

 private:
  Writers& writers_;
  int rank_;
  std::string shown_;
  core::SteadyTime changed_ = core::now(), looked_ = changed_;
};

Writers::Writers(std::shared_ptr<core::Board> board, int rank, int count, Patience patience)
    : board_(std::move(board)),
      rank_(rank),
      count_(count),
      patience_(patience),
      showing_(core::call_every(kShowEvery, [this] { show(); })) {}

Writers::~Writers() = default;

std::string Writers::stamp() const { return fmt::format("{} {}", save_, attempt_); }

void Writers::take_part(bool takes_part) {
  {
    const std::lock_guard lock(mutex_);
    shown_save_ = takes_part ? save_ : 0;
  }
  if (takes_part) show();
}

void Writers::show() {
  const std::lock_guard lock(mutex_);
  if (shown_save_ == 0) return;
  try {
    board_->put(key_of("alive", rank_), fmt::format("{} {}", shown_save_, ++shown_));
  } catch (const std::exception&) {  // the thread that writes meets it too
  }
}

void Writers::begin() {
  ++save_;
  attempt_ = 0;
  take_part(true);
}

void Writers::ask(const std::string& folder) {
  ++attempt_;
  board_->put(kOrder, fmt::format("{} {}", stamp(), folder));
}

void Writers::collect(format::FolderFiles& files) {
  std::map<int, Watch> waiting;
  for (int rank = 1; rank < count_; ++rank) waiting.emplace(rank, Watch(*this, rank));
  std::map<int, std::exception_ptr> errors;
  for (Pauses pauses; !waiting.empty();) {
    for (auto one = waiting.begin(); one != waiting.end();) {
      const int rank = one->first;
      if (board_->get(key_of("done", rank)) != stamp()) {
        one->second.check();
        ++one;
        continue;
      }
      const auto error = add_report(rank, board_->get(key_of("report", rank)), files);
      if (error) errors.emplace(rank, error);
      one = waiting.erase(one);
    }
    if (!waiting.empty()) pauses.wait();
  }
  if (!errors.empty()) std::rethrow_exception(errors.begin()->second);
}

void Writers::end() {
  take_part(false);
  board_->put(kOrder, stamp());
}

void Writers::follow(const WriteShare& write) {
  ++save_;
  attempt_ = 0;
  take_part(true);
  try {
    serve(write);
  } catch (...) {
    take_part(false);
    throw;
  }
  take_part(false);
}

void Writers::serve(const WriteShare& write) {
  Watch rank_0(*this, 0);
  for (Pauses pauses;;) {
    const Order order(board_->get(kOrder));
    if (order.save > save_ || (order.save == save_ && order.folder.empty())) return;
    if (order.save == save_ && order.attempt > attempt_) {
      attempt_ = order.attempt;
      report(write, order.folder);
      pauses = Pauses();
    } else {
      rank_0.check();
      pauses.wait();
    }
  }
}

void Writers::report(const WriteShare& write, const std::string& folder) {
  std::string text;
  try {
    format::FolderFiles written = write(folder);
    format::Manifest manifest{.program = fmt::format("rank {}", rank_), .step = 0};
    manifest.files = std::move(written.files);
    manifest.tensors = std::move(written.tensors);
    text = format::render_manifest(manifest);
  } catch (const std::exception& error) {
    text = error_text(error);
  }
  board_->put(key_of("report", rank_), text);
  board_->put(key_of("done", rank_), stamp());
}

}  // namespace scaletrain::checkpoint
