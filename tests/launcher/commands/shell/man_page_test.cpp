#include "launcher/commands/shell/man_page.h"

#include <doctest/doctest.h>

#include "lib/core/version.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("a page lists flags and the commands below, with what roff would read escaped") {
  const core::Command below{
      .name = "check",
      .help = "find mistakes",
      .footer = "",
      .flags = {{.names = {"RECIPE"}, .help = ".hidden \\file", .takes_value = true}},
      .commands = {}};
  const core::Command command{.name = "recipe",
                              .help = "about recipes",
                              .footer = "scaletrain recipe check X",
                              .flags = {{.names = {"-r", "--redirects"},
                                         .help = "streams",
                                         .variable = "PET_REDIRECTS",
                                         .takes_value = true},
                                        {.names = {"--help"}, .help = ""}},
                              .commands = {below}};
  CHECK(man_page(command, "scaletrain recipe") ==
        std::string(".TH SCALETRAIN\\-RECIPE 1 \"\" \"scaletrain ") + core::version() +
            "\" \"scaletrain\"\n"
            ".SH NAME\n"
            "scaletrain\\-recipe \\- about recipes\n"
            ".SH SYNOPSIS\n"
            "\\fBscaletrain recipe\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]\n"
            ".PP\n.nf\nscaletrain recipe check X\n.fi\n"
            ".SH OPTIONS\n"
            ".TP\n\\fB\\-r, \\-\\-redirects\\fR \\fIVALUE\\fR\nstreams (PET_REDIRECTS)\n"
            ".TP\n\\fB\\-\\-help\\fR\nprints this help\n"
            ".SH COMMANDS\n"
            ".SS scaletrain recipe check\nfind mistakes.\n.PP\n"
            "\\fBscaletrain recipe check\\fR [\\fIFLAGS\\fR] [\\fIRECIPE\\fR]\n"
            ".TP\n\\fBRECIPE\\fR\n\\&.hidden \\efile\n"
            ".SH EXIT STATUS\n0: done. 1: a program failed, or an error of our own. 2: the command "
            "or the recipe is wrong.\n65, 71, 74, 75, 76, 77, 130, 128+n: see "
            "docs/reference/exit\\-codes.md.\n");
}

TEST_CASE("a command that can be run itself has a line beside that of the commands below") {
  const core::Command below{.name = "logs", .help = "", .footer = "", .flags = {}, .commands = {}};
  const core::Command command{.name = "slurm",
                              .help = "",
                              .footer = "",
                              .flags = {{.names = {"RECIPE"}, .help = "", .takes_value = true}},
                              .commands = {below}};
  CHECK(man_page(command, "scaletrain slurm")
            .find(".SH SYNOPSIS\n"
                  "\\fBscaletrain slurm\\fR [\\fIFLAGS\\fR] [\\fIRECIPE\\fR]\n.br\n"
                  "\\fBscaletrain slurm\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace scaletrain::launcher
