#include "launcher/commands/runs/report_pictures.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/markup.h"
#include "lib/observe/line_follower.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxPictureBytes = 4 << 20;

// A data: URL; null if the file cannot be shown.
RunJson picture_url(const fs::path& file) {
  try {
    const std::string png = core::read_file(file, kMaxPictureBytes, core::ExitCode::kData);
    if (!png.starts_with("\x89PNG")) return nullptr;
    return "data:image/png;base64," + core::base64(png);
  } catch (const core::Error&) {
    return nullptr;
  }
}

bool is_picture_line(const RunJson& line) {
  const auto is = [&](const char* name, auto test) {
    const auto found = line.find(name);
    return found != line.end() && ((*found).*test)();
  };
  return is("name", &RunJson::is_string) && is("file", &RunJson::is_string) &&
         is("step", &RunJson::is_number_integer) && is("columns", &RunJson::is_number_integer) &&
         is("captions", &RunJson::is_array);
}

}  // namespace

RunJson pictures_of(const RunRecord& run) {
  std::vector<RunJson> newest;  // of each name, in the order of their first lines
  observe::LineFollower lines(run.folder / "media" / "index.jsonl");
  lines.read([] {},
             [&](const RunJson& line) {
               if (!is_picture_line(line)) return;
               const auto same =
                   std::find_if(newest.begin(), newest.end(),
                                [&](const RunJson& one) { return one["name"] == line["name"]; });
               if (same == newest.end()) {
                 newest.push_back(line);
               } else {
                 *same = line;
               }
             });
  RunJson pictures = RunJson::array();
  for (const RunJson& line : newest) {
    const std::string file = line["file"].get<std::string>();
    if (file.find('/') != std::string::npos) continue;  // outside the folder
    RunJson url = picture_url(run.folder / "media" / file);
    if (url.is_null()) continue;
    pictures.push_back({{"name", line["name"]},
                        {"step", line["step"]},
                        {"columns", line["columns"]},
                        {"captions", line["captions"]},
                        {"image", std::move(url)}});
  }
  return pictures;
}

}  // namespace scaletrain::launcher
