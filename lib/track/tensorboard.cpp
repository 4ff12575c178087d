#include "lib/track/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/track/append_file.h"
#include "lib/track/run_config.h"
#include "lib/track/tensorboard_events.h"

namespace scaletrain::track {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxRecipeBytes = 1 << 20;
constexpr std::int64_t kMaxPictureBytes = 16 << 20;

// Sections of a recipe whose keys are hyperparameters.
constexpr std::array kSections{
    "/seed/", "/model/",     "/epochs/",   "/steps/",     "/batch/",    "/loss/",
    "/clip/", "/optimizer/", "/schedule/", "/precision/", "/ema/",      "/swa/",
    "/mix/",  "/sam/",       "/sync/",     "/recompute/", "/parallel/", "/data/image_size/"};

struct NamedTag {
  std::string_view event, field, tag;  // "*" in a tag is replaced by the split
};

// Names that users of torch.utils.tensorboard know.
constexpr std::array kTags{
    NamedTag{"train", "loss", "Loss/train"},
    NamedTag{"train", "lr", "lr"},
    NamedTag{"train", "grad_norm", "grad_norm"},
    NamedTag{"train", "samples_per_s", "throughput/samples_per_s"},
    NamedTag{"train", "data_time", "time/data"},
    NamedTag{"train", "compute_time", "time/compute"},
    NamedTag{"train", "memory_bytes", "memory/peak_bytes"},
    NamedTag{"eval", "loss", "Loss/*"},
    NamedTag{"eval", "top1", "Accuracy/*"},
};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// Markdown shows lines that are indented by four spaces as they are.
std::string as_code(const std::string& text) {
  std::string code = "    ";
  for (const char letter : text) code += letter == '\n' ? "\n    " : std::string(1, letter);
  return code;
}

// Events of an earlier exporter of this run: the new file begins with the first record.
void remove_event_files(const fs::path& folder) {
  std::error_code absent;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      files.push_back(entry.path());
    }
  }
  for (const fs::path& file : files) core::system_disk().remove_all(file);
}

fs::path new_event_file(const fs::path& folder) {
  remove_event_files(folder);
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.0",
                              static_cast<std::int64_t>(core::unix_time()), host_name(), getpid());
}

// The recipe as text, and its hyperparameters.
std::string recipe_events(double time, const fs::path& recipe) {
  std::error_code absent;
  if (!fs::exists(recipe, absent)) return "";
  const std::string text = core::read_file(recipe, kMaxRecipeBytes, core::ExitCode::kStorage);
  std::string events = tf_record(text_event(time, "recipe", as_code(text)));
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json hparams = parsed.is_object() ? hparams_of(parsed) : Json::object();
  if (hparams.empty()) return events;
  return events + tf_record(hparams_event(time, hparams)) +
         tf_record(hparams_start_event(time, hparams));
}

// Returns a Markdown table of captions in the layout of the images.
std::string caption_table(const Picture& picture) {
  std::string table;
  for (std::size_t i = 0; i < picture.captions.size(); ++i) {
    const bool ends_row = static_cast<std::int64_t>(i + 1) % picture.columns == 0;
    std::string cell = picture.captions[i];
    std::replace(cell.begin(), cell.end(), '|', '/');
    table += "| " + cell + (ends_row || i + 1 == picture.captions.size() ? " |\n" : " ");
    if (static_cast<std::int64_t>(i + 1) != picture.columns) continue;
    for (std::int64_t column = 0; column < picture.columns; ++column) table += "|---";
    table += "|\n";
  }
  return table;
}

class TensorBoard : public Exporter {
 public:
  explicit TensorBoard(const ExportOptions& options)
      : run_(options.run), file_(new_event_file(options.run / "export" / "tensorboard")) {
    const double time = core::unix_time();
    file_.append(tf_record(version_event(time)) + recipe_events(time, run_ / "recipe.json"));
  }

  void write(std::span<const Record> records) override {
    std::string events;
    std::int64_t attempt = attempt_;
    for (const Record& record : records) {
      if (record.attempt < attempt) continue;
      events += begin_attempt(attempt, record);
      std::vector<std::pair<std::string, double>> scalars;
      for (const Field& field : record.fields) {
        if (std::string tag = scalar_tag(record, field.name); !tag.empty()) {
          scalars.emplace_back(std::move(tag), field.value);
        }
      }
      events += tf_record(scalars_event(record.time, record.step, scalars));
    }
    file_.append(events);
    attempt_ = attempt;
  }

  void write_pictures(std::span<const Picture> pictures) override {
    append_media(pictures, [this](const Picture& picture) { return picture_events(picture); });
  }

  void write_histograms(std::span<const Histograms> histograms) override {
    append_media(histograms,
                 [](const Histograms& one) { return tf_record(histograms_event(one)); });
  }

  void finish() override {
    const bool is_finished = run_end(run_) == RunEnd::kFinished;
    file_.append(tf_record(hparams_end_event(core::unix_time(), is_finished)));
  }

 private:
  // The event that makes the steps of an earlier attempt void; "" in the attempt that was begun.
  template <class Item>
  std::string begin_attempt(std::int64_t& attempt, const Item& first) {
    if (first.attempt <= attempt) return "";
    attempt = first.attempt;
    begun_.emplace(attempt, first.step);
    return tf_record(restart_event(first.time, first.step));
  }

  // True if a later attempt repeats the item's step. A run that is exported anew has its pictures
  // after all of its records.
  template <class Item>
  bool is_void(const Item& item) const {
    return std::any_of(begun_.upper_bound(item.attempt), begun_.end(),
                       [&](const auto& later) { return later.second <= item.step; });
  }

  // Returns "" for a picture that was removed, as old ones are.
  std::string picture_events(const Picture& picture) const {
    const fs::path file = run_ / "media" / picture.file;
    std::error_code absent;
    if (!fs::exists(file, absent)) return "";
    const std::string png = core::read_file(file, kMaxPictureBytes, core::ExitCode::kStorage);
    const std::string image = tf_record(image_event(picture, png));
    if (picture.captions.empty()) return image;
    return image +
           tf_record(text_event(picture.time, picture.name, caption_table(picture), picture.step));
  }

  // Appends the events that `encode` returns for an item, with a restart event first at the start
  // of an attempt. Empty results are left out.
  template <class Item, class Encode>
  void append_media(std::span<const Item> items, const Encode& encode) {
    std::string events;
    std::int64_t attempt = attempt_;
    for (const Item& item : items) {
      const std::string encoded = is_void(item) ? "" : encode(item);
      if (!encoded.empty()) events += begin_attempt(attempt, item) + encoded;
    }
    file_.append(events);
    attempt_ = attempt;
  }

  fs::path run_;
  AppendFile file_;
  std::int64_t attempt_ = -1;                   // newest one that was written
  std::map<std::int64_t, std::int64_t> begun_;  // attempts, with their first steps
};

}  // namespace

std::string scalar_tag(const Record& record, const std::string& field) {
  for (const char* const none : {"attempt", "step", "time"}) {
    if (field == none) return "";
  }
  for (const NamedTag& named : kTags) {
    if (named.event != record.event || named.field != field) continue;
    std::string tag(named.tag);
    if (tag.ends_with('*')) tag.replace(tag.size() - 1, 1, record.split);
    return tag;
  }
  return record.event == "eval" ? field + "/" + record.split : record.event + "/" + field;
}

Json hparams_of(const Json& recipe) {
  Json values = Json::object();
  const Json flat = recipe.flatten();
  for (const auto& item : flat.items()) {
    const std::string place = item.key() + "/";
    const bool is_wanted = std::any_of(kSections.begin(), kSections.end(),
                                       [&](const char* one) { return place.starts_with(one); });
    Json value = item.value();
    if (!is_wanted || value.is_null() || value.is_structured()) continue;
    hide_secrets(value);
    std::string name = item.key().substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    values[name] = std::move(value);
  }
  return values;
}

std::unique_ptr<Exporter> make_tensorboard(const ExportOptions& options) {
  return std::make_unique<TensorBoard>(options);
}

}  // namespace scaletrain::track
