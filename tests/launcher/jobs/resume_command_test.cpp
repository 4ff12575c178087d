#include "launcher/jobs/resume_command.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("the command to go on carries the numbers of nodes and ranks") {
  Placement one{.nproc = 1};
  CHECK(resume_command("runs/a b", one) == "scaletrain resume 'runs/a b'");
  one.nproc = 4;
  CHECK(resume_command("runs/r", one) == "scaletrain resume runs/r --nproc 4");

  Placement fixed = resolve_placement({.nproc = "2",
                                       .nnodes = "3",
                                       .node_rank = "1",
                                       .master_addr = "node0",
                                       .master_port = "777"});
  CHECK(resume_command("runs/r", fixed) ==
        "scaletrain resume runs/r --nnodes 3 --nproc 2 --node-rank 1 --master-addr node0 "
        "--master-port 777");
  fixed.by_srun = true;
  CHECK(resume_command("runs/r", fixed) ==
        "srun --nodes=3 --ntasks-per-node=1 scaletrain resume runs/r --nproc 2");

  const Placement elastic = resolve_placement(
      {.nproc = "2", .nnodes = "1:3", .rdzv_endpoint = "a:5,b", .local_addr = "10.0.0.1"});
  CHECK(resume_command("runs/r", elastic) ==
        "scaletrain resume runs/r --nnodes 1:3 --nproc 2 --rdzv-backend c10d --rdzv-endpoint "
        "a:5,b:29400 --local-addr 10.0.0.1");

  const Placement task{.nnodes = 8, .task = TaskPlace{.nodes = 2}};
  CHECK(resume_command("runs/r", task) ==
        "srun --nodes=2 --ntasks=8 scaletrain worker --resume auto runs/r/recipe.json");
}

TEST_CASE("the command to start again names the recipe and its changes") {
  const test::TemporaryFolder run;
  const Placement two{.nproc = 2};
  CHECK(launch_command({.set = {"steps=3", "name=a b"}, .path = "r.json"}, two) ==
        "scaletrain launch r.json --set steps=3 --set 'name=a b' --nproc 2");
  CHECK(launch_command({.path = run.path.string()}, {}) ==
        "scaletrain launch " + run.file("recipe.json"));
  const Placement task{.nnodes = 8, .task = TaskPlace{.nodes = 2}};
  CHECK(launch_command({.path = "r.json"}, task) ==
        "srun --nodes=2 --ntasks=8 scaletrain worker r.json");
}

}  // namespace
}  // namespace scaletrain::launcher
