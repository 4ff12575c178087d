#include "lib/observe/secrets.h"

#include <doctest/doctest.h>

namespace scaletrain::observe {

TEST_CASE("a name tells a secret, in any case") {
  for (const char* name :
       {"API_KEY", "storage.access_key", "HF_TOKEN", "--token", "client-secret", "DB_PASSWORD",
        "PGPASSWD", "GOOGLE_CREDENTIALS", "SLURM_JWT", "AWS_PROFILE"}) {
    CHECK_MESSAGE(is_secret(name), name);
  }
  for (const char* name : {"OMP_NUM_THREADS", "optimizer.lr", "NCCL_DEBUG", "output", ""}) {
    CHECK_MESSAGE(!is_secret(name), name);
  }
}

TEST_CASE("the value of a secret NAME=VALUE is hidden") {
  CHECK(without_secrets("storage.secret_key=hunter2") == "storage.secret_key=***");
  CHECK(without_secrets("--token=abc=def") == "--token=***");
  CHECK(without_secrets("token=https://host/path") == "token=***");
  CHECK(without_secrets("optimizer.lr=0.1") == "optimizer.lr=0.1");
  CHECK(without_secrets("--nproc") == "--nproc");
}

TEST_CASE("user, password and query of a URL are hidden") {
  CHECK(without_secrets("https://host/a.tar") == "https://host/a.tar");
  CHECK(without_secrets("https://me:hunter2@host/a.tar") == "https://***@host/a.tar");
  CHECK(without_secrets("https://host/a.tar?X-Amz-Signature=1") == "https://host/a.tar?***");
  CHECK(without_secrets("https://host/a.tar?u=me@there/x") == "https://host/a.tar?***");
  CHECK(without_secrets("data.train.shards=https://me@host/a@b.tar") ==
        "data.train.shards=https://***@host/a@b.tar");
}

}  // namespace scaletrain::observe
