#include "lib/track/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <filesystem>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/format/tar/tfrecord.h"
#include "lib/track/append_file.h"
#include "lib/track/protobuf.h"

namespace scaletrain::track {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxRecipeBytes = 1 << 20;

std::string event(double time, std::int64_t step, const std::string& what) {
  return double_field(1, time) + number_field(2, static_cast<std::uint64_t>(step)) + what;
}

std::string masked_crc(std::string_view bytes) {
  return little_endian(std::rotr(format::crc32c(bytes), 15) + 0xA282EAD8U);
}

struct NamedTag {
  std::string_view event, field, tag;  // "*" in a tag stands for the split
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

class TensorBoard : public Exporter {
 public:
  explicit TensorBoard(const ExportOptions& options)
      : file_(new_event_file(options.run / "export" / "tensorboard")) {
    const double time = core::unix_time();
    std::string head = tf_record(version_event(time));
    std::error_code absent;
    if (const fs::path recipe = options.run / "recipe.json"; fs::exists(recipe, absent)) {
      const std::string text = core::read_file(recipe, kMaxRecipeBytes, core::ExitCode::kStorage);
      head += tf_record(text_event(time, "recipe", as_code(text)));
    }
    file_.append(head);
  }

  void write(std::span<const Record> records) override {
    std::string events;
    std::int64_t attempt = attempt_;
    for (const Record& record : records) {
      if (record.attempt < attempt) continue;
      if (record.attempt > attempt) {
        attempt = record.attempt;
        events += tf_record(restart_event(record.time, record.step));
      }
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

 private:
  AppendFile file_;
  std::int64_t attempt_ = -1;  // newest one that was written
};

}  // namespace

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return length + masked_crc(length) + std::string(data) + masked_crc(data);
}

std::string version_event(double time) { return event(time, 0, bytes_field(3, "brain.Event:2")); }

std::string restart_event(double time, std::int64_t step) {
  constexpr std::uint64_t kStart = 1;  // SessionLog.START
  return event(time, step, bytes_field(7, number_field(1, kStart)));
}

std::string text_event(double time, std::string_view tag, std::string_view text) {
  constexpr std::uint64_t kString = 7;  // DT_STRING
  const std::string shape = bytes_field(2, number_field(1, 1));
  const std::string tensor =
      number_field(1, kString) + bytes_field(2, shape) + bytes_field(8, text);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));
  const std::string value = bytes_field(1, std::string(tag) + "/text_summary") +
                            bytes_field(8, tensor) + bytes_field(9, metadata);
  return event(time, 0, bytes_field(5, bytes_field(1, value)));
}

std::string scalars_event(double time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    summary += bytes_field(1, bytes_field(1, tag) + float_field(2, static_cast<float>(number)));
  }
  return event(time, step, bytes_field(5, summary));
}

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

std::unique_ptr<Exporter> make_tensorboard(const ExportOptions& options) {
  return std::make_unique<TensorBoard>(options);
}

}  // namespace scaletrain::track
