#include "lib/core/text/other_words.h"

#include <doctest/doctest.h>

using scaletrain::core::our_word;

TEST_CASE("words of other programs are known where they stand") {
  CHECK(our_word("scaletrain", "train") == "launch");
  CHECK(our_word("scaletrain launch", "--num_processes") == "--nproc");
  CHECK(our_word("scaletrain launch", "--main_process_ip") == "--master-addr");
  CHECK(our_word("scaletrain data pack", "--force") == "--overwrite");  // after any command
  CHECK(our_word("scaletrain data", "train").empty());
  CHECK(our_word("scaletrain data pack", "--out") ==
        "SRC OUT, without a flag");                 // not so elsewhere
  CHECK(our_word("scaletrain", "launch").empty());  // it is ours already
}
