// Forward declarations of CLI11, for headers whose functions add flags to a command.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
class Option;
}  // namespace CLI
