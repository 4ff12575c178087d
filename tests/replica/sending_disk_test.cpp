#include "lib/replica/sending_disk.h"

#include <doctest/doctest.h>

#include "lib/replica/finish.h"
#include "tests/replica/node_support.h"

namespace scaletrain::replica {

TEST_CASE("what is written of a checkpoint lies on each node, and is whole when it is finished") {
  const test::TemporaryFolder run;
  const test::Node own, next;
  SendingDisk disk(core::system_disk(), test::addresses_of({&own, &next}), test::kLittlePatience);
  const auto checkpoint = test::publish_on(disk, run.path, 5);
  CHECK(disk.lacks().empty());
  CHECK(own.steps() == "5");
  const format::Manifest manifest = format::check_checkpoint(checkpoint);
  std::int64_t bytes = 0;
  for (const HeldSave& save : next.shelf.list()) {
    CHECK(save.files.size() == manifest.files.size());
    for (const auto& [name, size] : save.files) {
      CHECK(size == manifest.files.at(name).bytes);
      bytes += size;
    }
  }
  const Replicated copies = test::finish_on({&own, &next}, disk.save(), checkpoint);
  CHECK(copies.nodes == 2);
  CHECK(copies.bytes == 2 * bytes);
  CHECK(own.steps() == "5*");
  CHECK(next.steps() == "5*");
}

TEST_CASE("what is no part of a checkpoint goes nowhere") {
  const test::TemporaryFolder run;
  const test::Node node;
  SendingDisk disk(core::system_disk(), {node.address()});
  for (const char* const name : {"a.json", "step-00000005/a.json", "other.tmp.1/a.json",
                                 "step-00000005.tmp.1/manifest.json"}) {
    disk.make_folders((run.path / name).parent_path());
    disk.create(run.path / name, 0)->sync();
  }
  CHECK(node.steps().empty());
}

TEST_CASE("a linked file is sent whole") {
  const test::TemporaryFolder run;
  const test::Node node;
  SendingDisk disk(core::system_disk(), {node.address()});
  const std::string text(3'000'000, 'z');
  disk.make_folders(run.path / "step-00000005.tmp.1");
  test::write_bytes(run.path / "old", text);
  disk.link_file(run.path / "old", run.path / "step-00000005.tmp.1/model.safetensors");
  CHECK(disk.lacks().empty());
  std::string held;
  Peer peer = node.peer();
  peer.get(disk.save(), "model.safetensors", [&](std::span<const std::byte> piece) {
    held.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  CHECK(held == text);
}

TEST_CASE("a node that is gone, or full, costs its copy and not the checkpoint") {
  const test::TemporaryFolder run;
  const test::Node own, full(100);
  auto gone = std::make_unique<test::Node>();
  SendingDisk disk(core::system_disk(), test::addresses_of({&own, &full, gone.get()}),
                   test::kLittlePatience);
  gone.reset();
  const auto checkpoint = test::publish_on(disk, run.path, 5);
  CHECK(format::check_checkpoint(checkpoint).step == 5);
  REQUIRE(disk.lacks().size() == 2);
  CHECK(disk.lacks()[0] == "the memory of node 127.0.0.1: may take 100 bytes and no more");
  CHECK(disk.lacks()[1].find("cannot be reached") != std::string::npos);
  const std::string error = test::message_of<core::StorageError>([&] {
    test::finish_on({&own, &full}, disk.save(), checkpoint);
  });
  CHECK(error.starts_with("the checkpoint of step 5: "));
  CHECK(error.ends_with(" is in the memory of 1 node, and two are needed"));
  CHECK(own.steps() == "5");  // none that counts

  // The next one begins anew.
  const test::Node again;
  SendingDisk others(core::system_disk(), test::addresses_of({&own, &again}));
  const auto later = test::publish_on(others, run.path, 6);
  CHECK(test::finish_on({&own, &again}, others.save(), later).nodes == 2);
}

}  // namespace scaletrain::replica
