#include "launcher/commands/shell/man_page.h"

#include <doctest/doctest.h>

#include "lib/core/version.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("a page lists flags and the commands below, with what roff would read escaped") {
  const core::Command below{.name = "check",
                            .help = "Finds mistakes.",
                            .examples = "scaletrain recipe check X",
                            .flags = {{.names = {"RECIPE"},
                                       .help = ".hidden \\file",
                                       .takes_value = true,
                                       .required = true}},
                            .commands = {}};
  const core::Command command{.name = "recipe",
                              .help = "About recipes.",
                              .examples = "# Look.\nscaletrain recipe show X",
                              .flags = {{.names = {"-r", "--redirects"},
                                         .help = "Streams.",
                                         .variable = "PET_REDIRECTS",
                                         .takes_value = true,
                                         .group = "Logs"},
                                        {.names = {"--help"}, .help = "Print this help."}},
                              .commands = {below}};
  const std::string page = man_page(command, "scaletrain recipe");
  CHECK(page.starts_with(
      std::string(".TH SCALETRAIN\\-RECIPE 1 \"\" \"scaletrain ") + core::version() +
      "\" \"scaletrain\"\n"
      ".SH NAME\nscaletrain\\-recipe \\- About recipes\n"
      ".SH SYNOPSIS\n\\fBscaletrain recipe\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH OPTIONS\n"
      ".SS Logs\n"
      ".TP\n\\fB\\-r, \\-\\-redirects\\fR \\fIVALUE\\fR\nStreams.\nEnvironment: PET_REDIRECTS.\n"
      ".SS Options\n"
      ".TP\n\\fB\\-\\-help\\fR\nPrint this help.\n"
      ".SH COMMANDS\n"
      ".SS scaletrain recipe check\nFinds mistakes.\n.PP\n"
      "\\fBscaletrain recipe check\\fR [\\fIOPTIONS\\fR] \\fIRECIPE\\fR\n"
      ".TP\n\\fBRECIPE\\fR\n\\&.hidden \\efile\n"
      ".SH EXAMPLES\n"
      ".PP\nLook.\n.PP\n.RS 4\n.nf\nscaletrain recipe show X\n.fi\n.RE\n"
      ".PP\n.RS 4\n.nf\nscaletrain recipe check X\n.fi\n.RE\n"
      ".SH FILES\n"));
  CHECK(page.find(".SH EXIT STATUS\n.TP\n0\nSuccess.\n") != std::string::npos);
  CHECK(page.ends_with(".SH SEE ALSO\n\\fBscaletrain\\fR(1)\n"));
}

TEST_CASE("a command that can be run itself has a line beside that of the commands below") {
  const core::Command below{
      .name = "logs", .help = "", .examples = "", .flags = {}, .commands = {}};
  const core::Command command{.name = "slurm",
                              .help = "",
                              .examples = "",
                              .flags = {{.names = {"RECIPE"}, .help = "", .takes_value = true}},
                              .commands = {below}};
  CHECK(man_page(command, "scaletrain slurm")
            .find(".SH SYNOPSIS\n"
                  "\\fBscaletrain slurm\\fR [\\fIOPTIONS\\fR] [\\fIRECIPE\\fR]\n.br\n"
                  "\\fBscaletrain slurm\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n") !=
        std::string::npos);
}

TEST_CASE("a page refers to the pages above and below it") {
  const core::Command below{
      .name = "logs", .help = "", .examples = "", .flags = {}, .commands = {}};
  const core::Command all{
      .name = "scaletrain", .help = "", .examples = "", .flags = {}, .commands = {below, below}};
  CHECK(man_page(all, "scaletrain")
            .ends_with(
                ".SH SEE ALSO\n\\fBscaletrain\\-logs\\fR(1),\n\\fBscaletrain\\-logs\\fR(1)\n"));
  CHECK(man_page(below, "scaletrain slurm logs")
            .ends_with(".SH SEE ALSO\n\\fBscaletrain\\fR(1),\n\\fBscaletrain\\-slurm\\fR(1)\n"));
}

}  // namespace
}  // namespace scaletrain::launcher
