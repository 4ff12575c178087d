#include "lib/core/descriptor.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <array>
#include <fstream>
#include <iterator>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::core {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool closes_on_exec(const Descriptor& fd) { return (fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0; }

// No further descriptor can be opened while this lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit none{0, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("a pipe carries bytes, and both ends close on exec") {
  const Pipe pipe = make_pipe();
  REQUIRE(write(pipe.write.get(), "abc", 3) == 3);
  std::array<char, 8> got{};
  CHECK(read(pipe.read.get(), got.data(), got.size()) == 3);
  CHECK(std::string(got.data()) == "abc");
  CHECK(closes_on_exec(pipe.read));
  CHECK(closes_on_exec(pipe.write));
}

TEST_CASE("a file in memory is read again from its path") {
  const std::string bytes(1 << 20, 'x');
  const Descriptor file = make_memory_file("test", bytes);
  CHECK(closes_on_exec(file));
  CHECK(contents(path_of(file.get())) == bytes);
  CHECK(contents(path_of(make_memory_file("test").get())).empty());
}

TEST_CASE("appending makes the file and keeps what it has") {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("log");
  for (const std::string text : {"one ", "two"}) {
    const Descriptor file = open_to_append(path, "");
    CHECK(closes_on_exec(file));
    CHECK(write(file.get(), text.data(), text.size()) > 0);
  }
  CHECK(contents(path) == "one two");
  CHECK_THROWS_WITH_AS(open_to_append(folder.path, "name a file"), doctest::Contains("name a file"),
                       StorageError);
}

// What `body` throws where nothing can be opened; sanitizers need that themselves to look at it.
template <class Body>
std::string refusal_of(const Body& body) {
  try {
    const NoDescriptors none;
    body();
  } catch (const Error& error) {
    CHECK(error.exit_code() == ExitCode::kMemory);
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("too many open files are said, with what to do") {
  CHECK(refusal_of([] { make_pipe(); }).starts_with("pipe: Too many open files (EMFILE)"));
  const std::string refusal = refusal_of([] { make_memory_file("test"); });
  CHECK(refusal.starts_with("memfd of test: Too many open files (EMFILE)"));
  CHECK(refusal.find("ulimit -n") != std::string::npos);
  CHECK(refusal_of([] { open_nothing(); }).starts_with("/dev/null: Too many open files (EMFILE)"));
  CHECK(refusal_of([] {
          open_to_append("/tmp/a", "move it");
        }).starts_with("/tmp/a: Too many open files (EMFILE)\n  raise the limit"));
}

}  // namespace
}  // namespace scaletrain::core
