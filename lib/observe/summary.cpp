#include "lib/observe/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/core/printable.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/text/text.h"
#include "lib/observe/near_path.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::observe {

namespace {

std::string row(std::string_view name, std::string_view text) {
  return fmt::format("  {:<12} {}\n", name, text);
}

std::string test_name(const RunSummary::Test& test) {
  return "test " + test.measures.front().measure->label;
}

std::string test_text(const RunSummary::Test& test, std::int64_t last_step) {
  const recipe::Measured& first = test.measures.front();
  std::string text = first.measure->text(first.value);
  const std::string others = measures_text({test.measures.begin() + 1, test.measures.end()});
  if (!others.empty()) text += ", " + others;
  const std::string of_step = test.step == last_step ? "" : fmt::format(", step {}", test.step);
  return fmt::format("{} ({} {}{})", text, test.count, test.counted, of_step);
}

std::string speed_text(const RunSummary& summary) {
  return summary.tokens_per_s > 0 ? fmt::format("{:.0f} tokens/s", summary.tokens_per_s)
                                  : fmt::format("{:.0f} samples/s", summary.samples_per_s);
}

}  // namespace

std::string times_text(const RunTimes& times) {
  constexpr double kLeastShown = 0.005;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < kRunRows; ++i) {
    if (times.share(i) >= kLeastShown) rows.push_back(i);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return times.seconds[a] > times.seconds[b];
  });
  std::string text =
      row("time", fmt::format("{} in {}, goodput {:.1f} %", format_duration(times.wall_s),
                              core::counted(times.attempts, "attempt"), 100 * times.goodput()));
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    std::string line;
    for (std::size_t j = i; j < std::min(i + 2, rows.size()); ++j) {
      line += fmt::format("{}{:<21} {:4.1f} %", j > i ? "   " : "", row_label(rows[j]),
                          100 * times.share(rows[j]));
    }
    text += row("", line);
  }
  return text;
}

std::string summary_text(const RunSummary& summary) {
  const std::string done =
      summary.early.empty() ? "done" : fmt::format("done, as {}", summary.early);
  std::string text = fmt::format("{}: {}, {} in {}, {}\n", core::printable(summary.name),
                                 summary.stopped.empty() ? done : "stopped by " + summary.stopped,
                                 core::counted(summary.step, "step"),
                                 format_duration(summary.trained_s), speed_text(summary));
  if (summary.best) {
    const auto& [measure, value] = summary.best->measured;
    text += row("best " + measure->label,
                fmt::format("{} on val at step {}", measure->text(value), summary.best->step));
  }
  if (summary.test) text += row(test_name(*summary.test), test_text(*summary.test, summary.step));
  if (!summary.model_speed.empty()) text += row("model FLOPs", summary.model_speed);
  if (summary.times.wall_s > 0) text += times_text(summary.times);
  if (summary.peak_bytes > 0) {
    text += row("peak memory",
                fmt::format("{:.2f} GB a rank", static_cast<double>(summary.peak_bytes) / 1e9));
  }
  for (const std::string& cause : summary.slow) text += row("slow", cause);
  if (summary.skipped_steps > 0) {
    text += row("skipped", fmt::format("{}: not finite, a spike, or taken back by a rollback",
                                       core::counted(summary.skipped_steps, "step")));
  }
  if (summary.empty_steps > 0) {
    text += row("no targets", fmt::format("{} learned nothing: masks left out their targets",
                                          core::counted(summary.empty_steps, "step")));
  }
  if (summary.skipped_samples > 0) {
    text +=
        row("bad samples", fmt::format("{} were skipped: {}/bad_samples", summary.skipped_samples,
                                       core::printable(near_path(summary.run))));
  }
  if (summary.comparisons > 0) {
    text +=
        row("replicas",
            summary.differences == 0
                ? fmt::format("were equal in {}", core::counted(summary.comparisons, "comparison"))
                : fmt::format("differed in {} of {}: {}/journal.jsonl", summary.differences,
                              core::counted(summary.comparisons, "comparison"),
                              core::printable(summary.run)));
  }
  if (summary.housekeeping_failures > 0) {
    text += row("not done", fmt::format("{} times something beside training failed: see the "
                                        "warnings",
                                        summary.housekeeping_failures));
  }
  if (!summary.weights_differences.empty()) {
    text += row("weights", fmt::format("were trained with {}", summary.weights_differences));
  }
  if (summary.checkpoint.empty()) return text + row("checkpoint", "none was saved");
  text += row("checkpoint", core::printable(near_path(summary.checkpoint)));
  if (!summary.stopped.empty()) return text + row("resume", core::printable(summary.resume));
  const std::string report = "scaletrain report " + core::shell_word(near_path(summary.run));
  return text + row("next", core::printable(report));
}

}  // namespace scaletrain::observe
