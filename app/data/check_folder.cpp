#include "app/data/check_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "app/data/files/card.h"
#include "app/data/files/shard_files.h"
#include "lib/core/disk/disk.h"
#include "lib/core/printable.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/set/classes_file.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kMostNames = 3;  // shard names in a warning

// Totals over the samples that training sees.
struct Seen {
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> by_class;  // samples of each class of classes.json
  std::int64_t ignored = 0, misnamed = 0;
};

// As quarantine.json can hold it: names that are UTF-8.
std::vector<format::Quarantined> listable(std::vector<format::Quarantined> problems) {
  for (format::Quarantined& problem : problems) {
    if (!core::is_utf8(problem.key)) {
      problem.problem = fmt::format("{}: {}", core::printable(problem.key), problem.problem);
      problem.key.clear();
    }
    // Quoted bytes of a file may be anything: makes them UTF-8.
    problem.problem =
        nlohmann::json::parse(core::json_text(nlohmann::json(problem.problem))).get<std::string>();
  }
  return problems;
}

// Counts the samples of a shard that `list` leaves to training.
void count_samples(const ShardReport& shard, const format::Quarantine& list, FolderReport& report,
                   Seen& seen) {
  if (list.holds_shard(shard.name)) {
    ++report.left_out_shards;
    return;
  }
  if (shard.unchecked) {
    report.left_out_samples += std::ssize(list.keys_of(shard.name));
    return;
  }
  std::unordered_set<std::uint64_t> left_out;
  for (const std::string& key : list.keys_of(shard.name)) left_out.insert(core::xxh3_64(key));
  for (const CheckedSample& sample : shard.samples) {
    if (left_out.contains(sample.key)) {
      ++report.left_out_samples;
      continue;
    }
    ++report.samples;
    seen.keys.push_back(sample.key);
    const auto count = [&seen](std::int64_t label) {
      if (label >= 0 && label < std::ssize(seen.by_class)) {
        ++seen.by_class[static_cast<std::size_t>(label)];
      }
    };
    count(sample.label);
    std::for_each(sample.labels.begin(), sample.labels.end(), count);
  }
  seen.ignored += shard.ignored;
  seen.misnamed += shard.misnamed;
}

// Shards that the list names and that are no longer there.
std::vector<std::string> absent_shards(const storage::Stores& stores, const std::string& folder,
                                       const format::Quarantine& list,
                                       const std::set<std::string>& there) {
  std::set<std::string> named;
  for (const format::Quarantined& entry : list.entries()) named.insert(entry.shard);
  std::erase_if(named, [&](const std::string& shard) {
    if (there.contains(shard)) return true;
    try {
      identity_of(stores, file_in(folder, shard));
    } catch (const storage::AbsentError&) {
      return false;
    } catch (const core::Error&) {  // it is there, or nobody knows
    }
    return true;
  });
  return {named.begin(), named.end()};
}

// Warns about findings that training tolerates, but a person may not expect.
void add_warnings(Seen seen, FolderReport& report) {
  const auto add = [&](std::int64_t count, const std::string& text) {
    if (count > 0) report.warnings.push_back(fmt::format("{} {}", count, text));
  };
  add(seen.ignored, "members are no part of a sample (folders, links, hidden names)");
  add(seen.misnamed, "images are in another format than their extension says");
  std::sort(seen.keys.begin(), seen.keys.end());
  add(seen.keys.end() - std::unique(seen.keys.begin(), seen.keys.end()),
      "keys are in more than one place");
  add(std::count(seen.by_class.begin(), seen.by_class.end(), 0),
      "classes of classes.json have no sample");
}

void add_list_warnings(const std::vector<std::string>& absent, bool repair, FolderReport& report) {
  if (!report.stale.empty() && !repair) {
    report.warnings.push_back(
        fmt::format("{} entries of quarantine.json name what is sound now, or gone, and leave it "
                    "out: scaletrain data check --repair drops them",
                    report.stale.size()));
  }
  if (!absent.empty()) {
    std::vector<std::string> names;
    names.reserve(absent.size());
    for (const std::string& shard : absent) names.push_back(format::shown_name(shard));
    const std::size_t shown = std::min(names.size(), kMostNames);
    report.warnings.push_back(fmt::format(
        "quarantine.json names {} that {} not there: {}{}",
        core::counted(std::ssize(names), "shard"), names.size() == 1 ? "is" : "are",
        fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        names.size() > shown ? ", ..." : ""));
  }
  const std::int64_t left_out = report.left_out_shards + report.left_out_samples;
  if (report.samples == 0 && left_out > 0 && report.unchecked.empty()) {
    report.warnings.emplace_back("everything is in quarantine: training refuses an empty set");
  }
}

// Replaces the entries of the `judged` shards in the list; entries that other programs wrote for
// other shards stay.
void write_list(const storage::Stores& stores, const std::set<std::string>& judged,
                const std::vector<format::Quarantined>& wrong, FolderReport& report) {
  const format::Quarantine old = read_quarantine(stores, report.folder);
  const format::Quarantine renewed = old.renewed(judged, wrong);
  if (renewed == old) return;
  const std::string path = file_in(report.folder, format::kQuarantineFile);
  report.rewritten = true;
  report.removed = renewed.entries().empty() && !core::is_url(path);
  if (report.removed) {
    core::system_disk().remove_all(path);
    core::system_disk().sync_folder(report.folder);
  } else {  // an object store keeps an empty list, which has the same effect
    stores.of(path).write(path, format::encode_quarantine(renewed));
  }
}

// Processes the reports of a folder's shards.
class FolderCheck {
 public:
  FolderCheck(FolderReport& report, format::Quarantine list, std::size_t classes, bool decode,
              bool repair)
      : report_(report), list_(std::move(list)), decode_(decode), repair_(repair) {
    seen_.by_class.resize(classes);
  }

  void take(const ShardReport& shard) {
    report_.bytes += shard.bytes;
    if (shard.unchecked) {
      const bool is_needed = !shard.unchecked->absent || !list_.holds_shard(shard.name);
      if (is_needed) report_.unchecked.push_back({shard.name, *shard.unchecked});
    } else {
      there_.insert(shard.name);
      // Without decoding, images that did not decode before may still be damaged.
      if (decode_) judged_.insert(shard.name);
    }
    std::vector<format::Quarantined> found = listable(shard.problems);
    const std::span<const format::Quarantined> old = list_.of(shard.name);
    const format::Quarantine own({old.begin(), old.end()});
    count_samples(shard, repair_ ? own.renewed(judged_, found) : own, report_, seen_);
    std::move(found.begin(), found.end(), std::back_inserter(wrong_));
    for (const format::Quarantined& problem : shard.problems) {
      if (!list_.leaves_out(problem)) report_.problems.push_back(problem);
    }
  }

  void finish(const storage::Stores& stores) {
    const format::Quarantine renewed = list_.renewed(judged_, wrong_);
    for (const format::Quarantined& entry : list_.entries()) {
      if (!renewed.leaves_out(entry)) report_.stale.push_back(entry);
    }
    add_warnings(std::move(seen_), report_);
    add_list_warnings(absent_shards(stores, report_.folder, list_, there_), repair_, report_);
    if (repair_) write_list(stores, judged_, wrong_, report_);
  }

 private:
  FolderReport& report_;
  const format::Quarantine list_;  // as it was before
  const bool decode_, repair_;
  Seen seen_;
  std::set<std::string> there_, judged_;  // shards by name: opened; and whose entries are known
  std::vector<format::Quarantined> wrong_;
};

}  // namespace

FolderReport check_folder(const storage::Stores& stores, const std::string& folder,
                          const std::vector<std::string>& shards, CheckRules rules, bool repair) {
  FolderReport report;
  report.folder = folder;
  const std::vector<std::string> classes = data::read_classes(folder, stores.of(folder));
  rules.classes = std::ssize(classes);
  const std::map<std::string, std::string> hashes = card_hashes(stores, folder);
  const std::string_view scheme = core::url_scheme(folder);
  if (classes.empty() && (scheme == "s3" || scheme == "gs")) {
    report.warnings.emplace_back(
        "there is no classes.json, which pack and import write last: a set of theirs is "
        "incomplete");
  }
  FolderCheck check(report, read_quarantine(stores, folder), classes.size(), rules.decode, repair);
  observe::WorkProgress progress(STDERR_FILENO, "checking samples", 0);
  for (const std::string& path : shards) {
    const auto recorded = hashes.find(core::base_name(path));
    check.take(check_shard(stores, path, recorded != hashes.end() ? recorded->second : "", rules,
                           progress));
  }
  check.finish(stores);
  return report;
}

}  // namespace scaletrain::app
