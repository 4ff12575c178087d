#include "launcher/commands/runs/page_assets.h"

// CMake defines SCALETRAIN_PAGE_DIR and SCALETRAIN_DYGRAPHS_DIR (launcher/CMakeLists.txt).
#define SCALETRAIN_EMBED(name, file)                                                               \
  __asm__(".pushsection .rodata\n.global scaletrain_page_" #name "\nscaletrain_page_" #name        \
          ":\n.incbin \"" file "\"\n.global scaletrain_page_" #name "_end\nscaletrain_page_" #name \
          "_end:\n.byte 0\n.popsection\n");                                                        \
  extern "C" const char scaletrain_page_##name[];                                                  \
  extern "C" const char scaletrain_page_##name##_end[]

SCALETRAIN_EMBED(html, SCALETRAIN_PAGE_DIR "/page.html");
SCALETRAIN_EMBED(style, SCALETRAIN_PAGE_DIR "/page.css");
SCALETRAIN_EMBED(script, SCALETRAIN_PAGE_DIR "/page.js");
SCALETRAIN_EMBED(licence, SCALETRAIN_PAGE_DIR "/dygraphs-licence.txt");
SCALETRAIN_EMBED(chart_style, SCALETRAIN_DYGRAPHS_DIR "/dygraph.min.css");
SCALETRAIN_EMBED(chart_script, SCALETRAIN_DYGRAPHS_DIR "/dygraph.min.js");

namespace scaletrain::launcher {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, end}; }

// Without the comment that names a source map: the page would ask for that file.
std::string_view without_source_map(std::string_view text) {
  for (const std::string_view comment : {"//# sourceMappingURL", "/*# sourceMappingURL"}) {
    text = text.substr(0, text.find(comment));
  }
  return text;
}

}  // namespace

PageAssets page_assets() {
  return {.html = between(scaletrain_page_html, scaletrain_page_html_end),
          .style = between(scaletrain_page_style, scaletrain_page_style_end),
          .script = between(scaletrain_page_script, scaletrain_page_script_end),
          .chart_style = without_source_map(
              between(scaletrain_page_chart_style, scaletrain_page_chart_style_end)),
          .chart_script = without_source_map(
              between(scaletrain_page_chart_script, scaletrain_page_chart_script_end)),
          .chart_licence = between(scaletrain_page_licence, scaletrain_page_licence_end)};
}

}  // namespace scaletrain::launcher
