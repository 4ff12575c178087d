#include "lib/track/prometheus.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "lib/core/disk/disk.h"
#include "lib/observe/devices/device_files.h"
#include "lib/track/prometheus_devices.h"
#include "lib/track/scrape_server.h"

namespace scaletrain::track {
namespace {

namespace fs = std::filesystem;

struct Metric {
  std::string_view event, field, name, type, help;
};

constexpr const char* kRunning = "scaletrain_running";
constexpr const char* kEval = "scaletrain_eval";

constexpr std::array kMetrics{
    Metric{"", "", kRunning, "gauge", "1 while the run trains, 0 after its end."},
    Metric{"", "", kEval, "gauge", "Newest evaluation of a split, by measure."},
    Metric{"train", "attempt", "scaletrain_attempt", "gauge", "Attempt, which a restart raises."},
    Metric{"train", "step", "scaletrain_step", "gauge", "Optimizer steps."},
    Metric{"train", "epoch", "scaletrain_epoch", "gauge", "Epoch of the step, from 0."},
    Metric{"train", "samples", "scaletrain_samples_total", "counter", "Trained samples."},
    Metric{"train", "loss", "scaletrain_loss", "gauge", "Training loss."},
    Metric{"train", "lr", "scaletrain_learning_rate", "gauge", "Learning rate."},
    Metric{"train", "grad_norm", "scaletrain_gradient_norm", "gauge",
           "L2 norm of the gradients before clipping."},
    Metric{"train", "samples_per_s", "scaletrain_samples_per_second", "gauge", "Throughput."},
    Metric{"train", "tflops_per_s", "scaletrain_device_tflops_per_second", "gauge",
           "Model TFLOP/s of a device."},
    Metric{"train", "mfu", "scaletrain_model_flops_utilization", "gauge",
           "Model FLOP/s divided by the published peak of the device, 0 to 1."},
    Metric{"train", "data_time", "scaletrain_data_seconds", "gauge",
           "Seconds a step that training waited for data."},
    Metric{"train", "compute_time", "scaletrain_compute_seconds", "gauge",
           "Seconds a step without the wait for data."},
    Metric{"train", "memory_bytes", "scaletrain_memory_bytes", "gauge",
           "Peak memory of the rank with the highest."},
    Metric{"train", "skipped_samples", "scaletrain_skipped_samples_total", "counter",
           "Bad samples that were replaced."},
    Metric{"train", "time", "scaletrain_last_record_timestamp_seconds", "gauge",
           "Unix time of the newest training record."},
    Metric{"checkpoint", "step", "scaletrain_checkpoint_step", "gauge",
           "Step of the newest checkpoint."},
    Metric{"checkpoint", "stall_time", "scaletrain_checkpoint_stall_seconds", "gauge",
           "Seconds that training waited for the newest checkpoint."},
};

std::string run_label(const std::string& name) {
  return fmt::format("run=\"{}\"", escape_label(name));
}

std::string number_text(const Field& field) { return field.text == "nan" ? "NaN" : field.text; }

class Prometheus : public Exporter {
 public:
  explicit Prometheus(const ExportOptions& options)
      : text_(options.name),
        run_(options.run),
        label_(run_label(options.name)),
        file_((options.textfile_folder.empty() ? options.run / "export" : options.textfile_folder) /
              fmt::format("scaletrain_{}.prom", options.name)) {
    if (options.port != 0) server_.emplace(static_cast<int>(options.port));
  }

  void write(std::span<const Record> records) override {
    for (const Record& record : records) text_.add(record);
    write_file();
  }

  void finish() override {
    text_.set_running(false);
    is_running_ = false;
    write_file();
  }

  int socket() const override { return server_ ? server_->fd() : -1; }
  void serve() override { server_->serve(text()); }

 private:
  // Devices have samples of each second, and no records.
  std::string text() const {
    if (!is_running_) return text_.text();
    return text_.text() + prometheus_devices(label_, observe::newest_device_samples(run_));
  }
  void write_file() const {
    core::system_disk().make_folders(file_.parent_path());
    core::write_durably(core::system_disk(), file_, text());
  }

  PrometheusText text_;
  fs::path run_;
  std::string label_;
  fs::path file_;
  bool is_running_ = true;
  std::optional<ScrapeServer> server_;
};

}  // namespace

std::string escape_label(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') escaped += '\\';
    escaped += letter == '\n' ? "\\n" : std::string(1, letter);
  }
  return escaped;
}

PrometheusText::PrometheusText(const std::string& run_name) : run_(run_label(run_name)) {
  set_running(true);
}

void PrometheusText::set_running(bool running) { values_[kRunning][run_] = running ? "1" : "0"; }

void PrometheusText::add(const Record& record) {
  for (const Field& field : record.fields) {
    for (const Metric& metric : kMetrics) {
      if (metric.event != record.event || metric.field != field.name) continue;
      values_[std::string(metric.name)][run_] = number_text(field);
    }
    if (record.event != "eval" || field.name == "time" || field.name == "attempt") continue;
    values_[kEval][fmt::format("{},split=\"{}\",measure=\"{}\"", run_, escape_label(record.split),
                               escape_label(field.name))] = number_text(field);
  }
}

std::string PrometheusText::text() const {
  std::string text;
  for (const Metric& metric : kMetrics) {
    const auto samples = values_.find(std::string(metric.name));
    if (samples == values_.end()) continue;
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name,
                        metric.type);
    for (const auto& [labels, value] : samples->second) {
      text += fmt::format("{}{{{}}} {}\n", metric.name, labels, value);
    }
  }
  return text;
}

std::unique_ptr<Exporter> make_prometheus(const ExportOptions& options) {
  return std::make_unique<Prometheus>(options);
}

}  // namespace scaletrain::track
