#include "lib/observe/run_media.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/disk/temporary_name.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/line_writer.h"

namespace scaletrain::observe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kConsequence = "the run continues without that picture";

// Not synced, as training must not wait for the disk. Readers see the complete file or none.
void replace_file(const fs::path& file, std::string_view bytes) {
  core::Disk& disk = core::system_disk();
  disk.make_folders(file.parent_path());
  const fs::path temporary =
      file.parent_path() / core::temporary_name("." + file.filename().string(), ::gettid());
  disk.create(temporary, 0)->write(std::as_bytes(std::span(bytes)));
  disk.rename(temporary, file);
}

}  // namespace

std::string picture_file(const PictureRecord& picture) {
  std::string name = picture.name;
  std::replace(name.begin(), name.end(), '/', '-');
  return fmt::format("step-{:08}-{}.png", picture.step, name);
}

RunMedia::RunMedia(fs::path run, int attempt, std::shared_ptr<core::Housekeeping> housekeeping)
    : run_(std::move(run)), attempt_(attempt), housekeeping_(std::move(housekeeping)) {}

void RunMedia::write(const PictureRecord& picture, std::string_view png) {
  const std::string file = picture_file(picture);
  const fs::path folder = run_ / "media";
  if (!housekeeping_->attempt(kConsequence, [&] { replace_file(folder / file, png); })) return;
  const Json line{
      {"format", kMediaFormat},       {"name", picture.name},     {"file", file},
      {"attempt", attempt_},          {"step", picture.step},     {"columns", picture.columns},
      {"captions", picture.captions}, {"time", core::unix_time()}};
  LineWriter(folder / "index.jsonl", housekeeping_).append(core::json_text(line));
  if (picture.name != "train/batch") remove_old(picture.name, file);
}

void RunMedia::remove_old(const std::string& name, const std::string& file) {
  written_.emplace_back(name, file);
  const auto is_same = [&](const auto& one) { return one.first == name; };
  const auto count = std::count_if(written_.begin(), written_.end(), is_same);
  if (count <= static_cast<std::ptrdiff_t>(kKeptPictures)) return;
  const auto oldest = std::find_if(written_.begin(), written_.end(), is_same);
  housekeeping_->attempt("an old picture stays",
                         [&] { core::system_disk().remove_all(run_ / "media" / oldest->second); });
  written_.erase(oldest);
}

void RunMedia::write(std::int64_t step, const std::vector<HistogramRecord>& histograms) {
  Json all = Json::object();
  for (const HistogramRecord& one : histograms) {
    all[one.name] = {{"min", one.min},
                     {"max", one.max},
                     {"sum", one.sum},
                     {"sum_squares", one.sum_squares},
                     {"not_finite", one.not_finite},
                     {"counts", one.counts}};
  }
  const Json line{{"format", kMediaFormat},
                  {"attempt", attempt_},
                  {"step", step},
                  {"time", core::unix_time()},
                  {"histograms", std::move(all)}};
  LineWriter(run_ / "histograms.jsonl", housekeeping_).append(core::json_text(line));
}

}  // namespace scaletrain::observe
