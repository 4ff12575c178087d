// `scaletrain data card PATH...`: where a set of shards comes from and what is in it.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_card_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
