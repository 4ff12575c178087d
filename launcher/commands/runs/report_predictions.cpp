#include "launcher/commands/runs/report_predictions.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/jobs/checks/data_program.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/markup.h"
#include "lib/core/text/table.h"
#include "lib/core/text/text.h"
#include "lib/format/csv.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxCsvBytes = std::int64_t{1} << 30;
constexpr std::size_t kMostMistakes = 24;
constexpr std::size_t kMaxImageBytes = 1 << 20;
constexpr std::string_view kPrefix = "predictions-", kSuffix = ".csv";

struct PredictedSample {
  std::string key, label, predicted;
  double probability = 0;
};

std::vector<PredictedSample> samples_in(const fs::path& file) {
  const std::string place = file.string();
  const std::string text = core::read_file(file, kMaxCsvBytes, core::ExitCode::kData);
  format::CsvReader reader(text, place);
  const std::vector<std::string> wanted{"key", "label", "predicted", "probability"};
  const auto head = reader.next();
  if (!head || head->fields.size() < wanted.size() ||
      !std::equal(wanted.begin(), wanted.end(), head->fields.begin())) {
    throw core::DataError(place, "has no columns key, label, predicted and probability",
                          "write it with: scaletrain eval RUN --predictions FILE");
  }
  std::vector<PredictedSample> samples;
  while (const auto row = reader.next()) {
    if (row->fields.size() < wanted.size()) continue;
    const auto cell = [&](std::size_t i) {
      return std::string(core::without_apostrophe(row->fields[i]));
    };
    samples.push_back({.key = cell(0),
                       .label = cell(1),
                       .predicted = cell(2),
                       .probability = number_in_text(row->fields[3]).value_or(0)});
  }
  return samples;
}

// Numbers before names, numbers by size: "2", "10", "cat".
bool class_before(const std::string& a, const std::string& b) {
  const auto left = core::parse_number<std::int64_t>(a),
             right = core::parse_number<std::int64_t>(b);
  if (left && right) return *left < *right;
  return left.has_value() != right.has_value() ? left.has_value() : a < b;
}

std::vector<std::string> classes_of(const std::vector<PredictedSample>& samples) {
  std::vector<std::string> classes;
  for (const PredictedSample& sample : samples) {
    classes.push_back(sample.label);
    classes.push_back(sample.predicted);
  }
  std::sort(classes.begin(), classes.end(), class_before);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

RunJson confusion_of(const std::vector<PredictedSample>& samples,
                     const std::vector<std::string>& classes) {
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < classes.size(); ++i) numbers[classes[i]] = i;
  std::vector<std::vector<std::int64_t>> counts(classes.size(),
                                                std::vector<std::int64_t>(classes.size()));
  for (const PredictedSample& sample : samples) {
    ++counts[numbers.at(sample.label)][numbers.at(sample.predicted)];
  }
  return counts;
}

std::string_view image_type(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("\x89PNG")) return "image/png";
  return bytes.starts_with("RIFF") && bytes.find("WEBP") == 8 ? "image/webp" : "";
}

std::vector<std::string> shards_of(const RunRecord& run, const std::string& set) {
  const RunJson data = run.recipe.value("data", RunJson::object());
  const RunJson::json_pointer place(set == "val" || set == "test" ? "/" + set : "/extra/" + set);
  if (!data.is_object() || !data.contains(place) || !data[place].is_object()) return {};
  const RunJson shards = data[place].value("shards", RunJson());
  if (shards.is_string()) return {shards.get<std::string>()};
  std::vector<std::string> paths;
  for (const RunJson& shard : shards) {
    if (shard.is_string()) paths.push_back(shard.get<std::string>());
  }
  return paths;
}

// A data: URL of the sample's picture; null if it cannot be had.
RunJson image_of(const std::string& key, const std::vector<std::string>& shards) {
  std::vector<std::string> arguments{"get", "--", key};
  arguments.insert(arguments.end(), shards.begin(), shards.end());
  const std::string bytes = ask_data_program({.arguments = std::move(arguments),
                                              .key = "predictions",
                                              .place = shards.front(),
                                              .what = "the pictures"});
  const std::string_view type = image_type(bytes);
  if (type.empty() || bytes.size() > kMaxImageBytes) return nullptr;
  return "data:" + std::string(type) + ";base64," + core::base64(bytes);
}

RunJson worst_of(std::vector<PredictedSample> samples, std::vector<std::string> shards) {
  std::erase_if(samples, [](const PredictedSample& one) { return one.label == one.predicted; });
  std::stable_sort(samples.begin(), samples.end(),
                   [](const PredictedSample& a, const PredictedSample& b) {
                     return a.probability > b.probability;
                   });
  if (samples.size() > kMostMistakes) samples.resize(kMostMistakes);
  RunJson worst = RunJson::array();
  for (const PredictedSample& one : samples) {
    RunJson image;
    try {
      if (!shards.empty()) image = image_of(one.key, shards);
    } catch (const core::StoppedError&) {
      throw;
    } catch (const core::Error&) {
      shards.clear();  // the shards were removed: only the keys are shown
    }
    worst.push_back({{"key", one.key},
                     {"label", one.label},
                     {"predicted", one.predicted},
                     {"probability", one.probability},
                     {"image", image}});
  }
  return worst;
}

}  // namespace

RunJson predictions_of(const RunRecord& run) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(run.folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  RunJson sets = RunJson::array();
  for (const fs::path& file : files) {
    const std::string set = file.stem().string().substr(kPrefix.size());
    try {
      const std::vector<PredictedSample> samples = samples_in(file);
      const std::vector<std::string> classes = classes_of(samples);
      const auto right =
          std::count_if(samples.begin(), samples.end(),
                        [](const PredictedSample& one) { return one.label == one.predicted; });
      constexpr std::size_t kMostClasses = 100;  // of a matrix that can be read
      sets.push_back({{"name", set},
                      {"count", samples.size()},
                      {"right", right},
                      {"classes", classes},
                      {"confusion", classes.size() > kMostClasses ? RunJson::array()
                                                                  : confusion_of(samples, classes)},
                      {"worst", worst_of(samples, shards_of(run, set))}});
    } catch (const core::DataError& error) {
      core::warn("{}", error.what());
    }
  }
  return sets;
}

}  // namespace scaletrain::launcher
