// scaletrain-data: everything under `scaletrain data`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "app/data/command_texts.h"
#include "app/data/files/commands.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/command_line.h"
#include "lib/core/text/help_text.h"

namespace {

using scaletrain::core::ExitCode;

constexpr std::array kCommands{
    scaletrain::app::add_pack_command,      scaletrain::app::add_index_command,
    scaletrain::app::add_check_command,     scaletrain::app::add_ls_command,
    scaletrain::app::add_get_command,       scaletrain::app::add_stats_command,
    scaletrain::app::add_split_command,     scaletrain::app::add_dedup_command,
    scaletrain::app::add_import_command,    scaletrain::app::add_tokenize_command,
    scaletrain::app::add_card_command,      scaletrain::app::add_synth_command,
    scaletrain::app::add_bench_command,     scaletrain::app::add_mirror_command,
    scaletrain::app::add_fetch_run_command, scaletrain::app::add_advise_command,
};

int run(const std::vector<std::string>& arguments) {
  int exit_status = 0;
  CLI::App app("Prepare, check and inspect training data.", "scaletrain data");
  scaletrain::core::use_help_text(app);
  app.require_subcommand(0, 1);
  for (const auto& add_command : kCommands) add_command(app, exit_status);
  scaletrain::app::set_data_texts(app);
  if (arguments.empty()) {
    std::cerr << app.help();
    return static_cast<int>(ExitCode::kUsage);
  }
  const std::vector<std::string> known = scaletrain::core::command_names(app);
  if (!arguments[0].starts_with("-") &&
      std::find(known.begin(), known.end(), arguments[0]) == known.end()) {
    scaletrain::core::refuse_command(app, arguments[0]);
  }
  return scaletrain::core::parse_command_line(app, arguments) ? exit_status : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a progress bar whose terminal has gone is no reason to stop
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with EFBIG and is reported
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    scaletrain::core::log_line(scaletrain::core::describe(error));
    return static_cast<int>(scaletrain::core::exit_code_of(error));
  }
}
