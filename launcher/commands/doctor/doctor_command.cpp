#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "launcher/commands/commands.h"
#include "launcher/commands/doctor/machine.h"
#include "launcher/commands/doctor/network.h"
#include "launcher/commands/doctor/training.h"
#include "launcher/platform/gpus.h"
#include "launcher/platform/machine_load.h"

namespace scaletrain::launcher {
namespace {

struct DoctorOptions {
  std::string output = "runs";
  bool as_json = false;
};

Findings examine(const DoctorOptions& options) {
  // Before anything of our own runs.
  Findings findings{
      check_load(busy_threads_now(), static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)))};
  const auto add = [&](const Findings& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  add(check_training());
  add(check_ports());
  add(check_names());
  add(check_disk(options.output));
  add(check_limits(count_gpus() > 0));
  findings.push_back(check_shared_memory());
  findings.push_back(check_clock());
  return findings;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_status) {
  CLI::App* const doctor =
      app.add_subcommand("doctor", "Check this machine before a long run, in seconds");
  const auto options = std::make_shared<DoctorOptions>();
  doctor->add_option("--output", options->output,
                     "Folder for runs, which is checked. Default: runs.");
  doctor->add_flag("--json", options->as_json, "Print JSON instead of text.");
  doctor->callback([options, &exit_status] {
    const Findings findings = examine(*options);
    std::fputs((options->as_json ? to_json(findings) : to_text(findings)).c_str(), stdout);
    exit_status = any_failed(findings) ? 1 : 0;
  });
}

}  // namespace scaletrain::launcher
