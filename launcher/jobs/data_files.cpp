#include "launcher/jobs/data_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lib/core/text/hash.h"
#include "lib/core/text/url.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct FileFacts {
  std::int64_t bytes = 0, modified_ns = 0;
};

std::optional<FileFacts> facts_of(const fs::path& path) {
  constexpr std::int64_t kNsPerS = 1'000'000'000;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileFacts{.bytes = status.st_size,
                   .modified_ns = status.st_mtim.tv_sec * kNsPerS + status.st_mtim.tv_nsec};
}

// Files of a folder and of the folders in it, sorted by path.
std::vector<std::string> files_below(const fs::path& folder, const std::atomic<bool>& stop) {
  std::vector<std::string> files;
  std::error_code failed;
  const auto options = fs::directory_options::skip_permission_denied |
                       fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator entry(folder, options, failed), end;
       !failed && entry != end && !stop; entry.increment(failed)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Lister {
 public:
  explicit Lister(const std::atomic<bool>& stop) : stop_(stop) {}

  void add(const std::string& set, const recipe::Source& source) {
    for (const std::string& shard : source.shards) add_path(set, shard);
    for (const std::string& file : source.tokens) add_path(set, file);
    if (!source.folder.empty()) add_path(set, source.folder);
    for (const recipe::Source& part : source.sources) add(set, part);
  }

  void add_path(const std::string& set, const std::string& path) {
    if (stop_ || core::is_url(path)) return;
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return add_folder(set, path);
    if (const std::optional<FileFacts> facts = facts_of(path)) {
      files_.push_back({.set = set,
                        .path = path,
                        .files = 1,
                        .bytes = facts->bytes,
                        .modified_ns = facts->modified_ns,
                        .listing = ""});
    }
  }

  std::vector<DataFile> take() { return std::move(files_); }

 private:
  void add_folder(const std::string& set, const std::string& folder) {
    DataFile sum{.set = set, .path = folder, .files = 0, .listing = ""};
    core::Xxh3 listing;
    for (const std::string& path : files_below(folder, stop_)) {
      if (stop_) return;
      const std::optional<FileFacts> facts = facts_of(path);
      if (!facts) continue;
      ++sum.files;
      sum.bytes += facts->bytes;
      sum.modified_ns = std::max(sum.modified_ns, facts->modified_ns);
      const std::string line =
          path.substr(folder.size()) + '\0' + std::to_string(facts->bytes) + '\n';
      listing.update(std::as_bytes(std::span(line)));
    }
    sum.listing = listing.hex();
    files_.push_back(std::move(sum));
  }

  const std::atomic<bool>& stop_;
  std::vector<DataFile> files_;
};

}  // namespace

std::optional<std::vector<DataFile>> data_files(const recipe::Data& data,
                                                const std::string& weights,
                                                const std::atomic<bool>& stop) {
  Lister lister(stop);
  lister.add("train", data.train);
  for (const auto& [name, source] : recipe::held_out(data)) lister.add(name, *source);
  if (!weights.empty()) lister.add_path("weights", weights);
  if (stop) return std::nullopt;
  return lister.take();
}

Json data_files_json(const std::vector<DataFile>& files) {
  Json list = Json::array();
  for (const DataFile& file : files) {
    list.push_back({{"set", file.set},
                    {"path", file.path},
                    {"files", file.files},
                    {"bytes", file.bytes},
                    {"modified_ns", file.modified_ns},
                    {"listing", file.listing}});
  }
  return list;
}

std::vector<DataFile> data_files_of(const Json& list) {
  std::vector<DataFile> files;
  for (const Json& entry : list) {
    try {
      files.push_back({.set = entry.at("set"),
                       .path = entry.at("path"),
                       .files = entry.at("files"),
                       .bytes = entry.at("bytes"),
                       .modified_ns = entry.at("modified_ns"),
                       .listing = entry.at("listing")});
    } catch (const Json::exception&) {  // another version wrote it
    }
  }
  return files;
}

}  // namespace scaletrain::launcher
