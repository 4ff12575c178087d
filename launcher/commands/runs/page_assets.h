// Parts of the report page that are embedded in the program at build time. They lie in its
// read-only data, of which a command that writes no page loads nothing.
#pragma once

#include <string_view>

namespace scaletrain::launcher {

struct PageAssets {
  std::string_view html;           // body of the page
  std::string_view style, script;  // launcher/commands/runs/page/
  std::string_view chart_style;    // dygraphs
  std::string_view chart_script;   // dygraphs, whose first line names its licence
  std::string_view chart_licence;  // text of that licence
};

PageAssets page_assets();

}  // namespace scaletrain::launcher
