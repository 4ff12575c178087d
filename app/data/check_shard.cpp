#include "app/data/check_shard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/data/files/image_kind.h"
#include "app/data/files/in_order.h"
#include "app/data/files/shard_files.h"
#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"
#include "lib/data/image/decode.h"
#include "lib/data/set/stored_index.h"
#include "lib/format/tar/shard_index.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/storage/unpacked_file.h"

namespace scaletrain::app {
namespace {

constexpr const char* kMultiHotHint =
    ": as a multi-hot row it is read by data.label_format \"multi_hot\" in training, and import "
    "--multi-hot writes class numbers";

// Result of checking one sample's contents.
struct Finding {
  std::string problem;      // "" if there is none
  std::int64_t label = -1;  // -1: no valid label, or several
  std::vector<std::int64_t> labels = {};
  bool misnamed = false;
};

// Checks samples; for one thread.
class SampleCheck {
 public:
  SampleCheck(const ShardFile& shard, const CheckRules& rules) : shard_(shard), rules_(rules) {}

  Finding look(const format::TarGroup& group) {
    Finding finding;
    std::vector<std::string> problems = format::problems_of(group);
    if (const format::TarField* const label = group.find("cls"); label != nullptr) {
      look_at_label(label->member, finding, problems);
    }
    if (const format::TarField* const image = group.image(); image != nullptr) {
      look_at_image(*image, finding, problems);
    }
    finding.problem = fmt::to_string(fmt::join(problems, "; "));
    return finding;
  }

 private:
  void look_at_label(const format::TarMember& member, Finding& finding,
                     std::vector<std::string>& problems) const {
    const bool is_too_large = member.bytes > format::kMaxLabelBytes;
    const std::string text = is_too_large ? start_of(member) : shard_.read(member);
    const auto labels = is_too_large ? std::nullopt : format::parse_labels(text);
    if (!labels) {
      const auto placeholder = core::find_placeholder(text);
      problems.push_back(placeholder    ? fmt::format("the label {}", placeholder->found)
                         : is_too_large ? fmt::format("a label of {} bytes", member.bytes)
                                        : fmt::format(R"(label "{}" is not a class number)",
                                                      format::shown_name(text)));
      return;
    }
    const auto wrong = std::find_if(labels->begin(), labels->end(), [this](std::int64_t label) {
      return rules_.classes > 0 && label >= rules_.classes;
    });
    if (const auto twice = format::repeated_label(*labels)) {
      problems.push_back(fmt::format(R"(label "{}" names class {} twice{})",
                                     format::shown_name(text), *twice,
                                     format::is_zeros_and_ones(*labels) ? kMultiHotHint : ""));
    } else if (wrong != labels->end()) {
      problems.push_back(fmt::format("label {} is not below the {} classes of classes.json", *wrong,
                                     rules_.classes));
    } else {
      finding.label = labels->size() == 1 ? labels->front() : -1;
      if (labels->size() > 1) finding.labels = *labels;
    }
  }

  std::string start_of(const format::TarMember& member) const {
    std::string start(core::kPlaceholderBytes, '\0');
    shard_.read_at(member.data, std::as_writable_bytes(std::span(start)));
    return start;
  }

  void look_at_image(const format::TarField& field, Finding& finding,
                     std::vector<std::string>& problems) {
    if (!rules_.decode) return;
    const std::string file = shard_.read(field.member);
    try {
      decoder_.decode(file, image_);
      finding.misnamed = !extension_fits(field.extension, file);
    } catch (const std::invalid_argument& error) {
      problems.push_back(fmt::format("the image is damaged: {}", error.what()));
    }
  }

  const ShardFile& shard_;
  const CheckRules& rules_;
  data::Decoder decoder_;
  data::Image image_;
};

// Checks the samples of the shard, a batch at a time.
void look_at_samples(const ShardFile& shard, const CheckRules& rules, ShardReport& report,
                     observe::WorkProgress& progress) {
  std::vector<std::unique_ptr<SampleCheck>> checks;
  checks.reserve(static_cast<std::size_t>(rules.threads));
  for (int i = 0; i < rules.threads; ++i) {
    checks.push_back(std::make_unique<SampleCheck>(shard, rules));
  }
  std::unordered_map<std::string, int> uses;
  const auto take = [&](const format::TarGroup& group, const Finding& finding) {
    progress.add(1);
    report.samples.push_back({core::xxh3_64(group.key), finding.label, finding.labels});
    report.misnamed += finding.misnamed ? 1 : 0;
    if (!finding.problem.empty()) {
      report.problems.push_back({shard.name(), group.key, finding.problem});
    }
    if (++uses[group.key] == 2) {
      report.problems.push_back({shard.name(), group.key, format::kKeyAgain});
    }
  };
  report.ignored = shard.for_each_batch([&](const std::vector<format::TarGroup>& groups) {
    in_order<Finding>(
        std::ssize(groups), rules.threads,
        [&](std::int64_t i, int thread) {
          return checks[static_cast<std::size_t>(thread)]->look(
              groups[static_cast<std::size_t>(i)]);
        },
        [&](std::int64_t i, const Finding& finding) {
          take(groups[static_cast<std::size_t>(i)], finding);
        });
  });
}

// The SHA-256 that a local shard's index holds, if the index is of this version of the shard.
std::string indexed_hash(const std::string& path, const storage::Identity& version) {
  if (core::is_url(path)) return "";
  return format::recorded_sha256(format::index_path(path, ""), data::version_of(version));
}

void look_at_hash(const storage::Stores& stores, const std::string& path, const std::string& sha256,
                  ShardReport& report) {
  if (sha256.empty()) return;
  if (const std::string found = hash_of(stores, path).sum; found != sha256) {
    report.problems.push_back(
        {report.name, "", fmt::format("its SHA-256 is {}, and {} was recorded", found, sha256)});
  }
}

// Removes the shard's path, which the text already begins with.
std::string without_path(const std::string& path, const core::Error& error) {
  const std::string shown = core::shown_path(path), within = shown + ": ";
  const std::string& place = error.place();
  if (place == shown || place == path) return error.found();
  return (place.starts_with(within) ? place.substr(within.size()) : place) + ": " + error.found();
}

// True if the error comes from the machine, or from the kind of file at the path, rather than from
// the shard's bytes.
bool is_of_machine(const core::Error& error, const std::string& path, bool was_opened) {
  if (dynamic_cast<const storage::UnpackRoomError*>(&error) != nullptr) return true;
  if (error.exit_code() == core::ExitCode::kStorage) return !core::is_url(path);
  return error.exit_code() == core::ExitCode::kData && !was_opened;
}

bool is_still(const storage::Stores& stores, const std::string& path,
              const storage::Identity& version) {
  try {
    return identity_of(stores, path) == version;
  } catch (const core::DataError&) {
    return false;
  }
}

ShardReport unchecked(const std::string& path, Unchecked why) {
  ShardReport report;
  report.name = core::base_name(path);
  report.unchecked = std::move(why);
  return report;
}

}  // namespace

ShardReport check_shard(const storage::Stores& stores, const std::string& path,
                        const std::string& sha256, const CheckRules& rules,
                        observe::WorkProgress& progress) {
  ShardReport report;
  report.name = core::base_name(path);
  std::optional<storage::Identity> version;
  try {
    version = identity_of(stores, path);
    report.bytes = version->bytes;
    look_at_hash(stores, path, sha256.empty() ? indexed_hash(path, *version) : sha256, report);
    const ShardFile shard(stores, path);
    look_at_samples(shard, rules, report, progress);
  } catch (const core::Error& error) {
    if (is_of_machine(error, path, version.has_value())) {
      const bool absent = dynamic_cast<const storage::AbsentError*>(&error) != nullptr;
      return unchecked(path,
                       {without_path(path, error), error.remedy(), error.exit_code(), absent});
    }
    if (error.exit_code() != core::ExitCode::kData) throw;
    report.problems.push_back({report.name, "", without_path(path, error)});
  }
  if (!report.problems.empty() && !is_still(stores, path, *version)) {
    return unchecked(path, {"was replaced while it was read",
                            "start again, and do not change shards while they are read"});
  }
  return report;
}

}  // namespace scaletrain::app
