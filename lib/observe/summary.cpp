#include "lib/observe/summary.h"

#include <fmt/format.h>

#include <string_view>

#include "lib/core/log.h"
#include "lib/core/shell_word.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::observe {

namespace {

std::string row(std::string_view name, std::string_view text) {
  return fmt::format("  {:<12} {}\n", name, text);
}

}  // namespace

std::string summary_text(const RunSummary& summary) {
  std::string text =
      fmt::format("{}: {}, {} steps in {}, {:.0f} samples/s\n", core::escape_control(summary.name),
                  summary.stopped.empty() ? "done" : "stopped by " + summary.stopped, summary.step,
                  format_duration(summary.trained_s), summary.samples_per_s);
  if (summary.best) {
    text += row("best top-1", fmt::format("{:.2f} % on val at step {}", 100 * summary.best->top1,
                                          summary.best->step));
  }
  if (summary.test) {
    text += row("test top-1",
                fmt::format("{:.2f} %, top-5 {:.2f} % ({} samples)", 100 * summary.test->top1,
                            100 * summary.test->top5, summary.test->count));
  }
  if (summary.skipped_steps > 0) {
    text += row("skipped", fmt::format("{} steps whose loss or gradients were not finite",
                                       summary.skipped_steps));
  }
  if (summary.skipped_samples > 0) {
    text +=
        row("bad samples", fmt::format("{} were skipped: {}/bad_samples", summary.skipped_samples,
                                       core::escape_control(summary.run)));
  }
  if (summary.checkpoint.empty()) return text + row("checkpoint", "none was saved");
  text += row("checkpoint", core::escape_control(summary.checkpoint));
  text += row("resume", "scaletrain resume " + core::escape_control(core::shell_word(summary.run)));
  return text;
}

}  // namespace scaletrain::observe
