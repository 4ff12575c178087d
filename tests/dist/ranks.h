// Real ranks for tests: forked processes that meet at a store on an inherited socket, as under the
// launcher. The test process itself starts no thread and no group, so that it can fork.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"

namespace scaletrain::testing {

struct RankResult {
  std::string text;  // what the body returned, or what its exception said
  int status = 0;    // 0, the exit code of the exception, or 128 + signal
  double seconds = 0;
};

// A socket that listens on a free port of 127.0.0.1.
inline int listen_on_free_port(int& port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, raw, bytes) != 0 || listen(listener, 128) != 0 ||
      getsockname(listener, raw, &bytes) != 0) {
    throw std::runtime_error("no free port");
  }
  port = ntohs(address.sin_port);
  return listener;
}

using RankBody = std::function<std::string(const core::WorkerEnv& env)>;

struct RanksOptions {
  int world_size = 2;
  int started = -1;  // so many of them really exist; -1: all
  double limit_s = 60;
};

[[noreturn]] inline void run_rank(const RankBody& body, const core::WorkerEnv& env, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);  // as in a worker: core::install_stop_handlers
  std::string text;
  int status = 0;
  try {
    text = body(env);
  } catch (const std::exception& error) {
    text = error.what();
    status = static_cast<int>(core::exit_code_of(error));
  }
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(output, text.data() + done, text.size() - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  _exit(status);
}

// Runs `body` in one process a rank and returns what each said; all are killed when time is up.
inline std::vector<RankResult> run_ranks(const RanksOptions& options, const RankBody& body) {
  core::WorkerEnv env;
  env.world_size = env.local_world_size = options.world_size;
  const int listener = listen_on_free_port(env.master_port);
  const int started = options.started < 0 ? options.world_size : options.started;
  const core::SteadyTime begin = core::now();
  std::vector<pid_t> pids;
  std::vector<int> outputs;
  for (int rank = 0; rank < started; ++rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    env.rank = env.local_rank = rank;
    env.store_fd = rank == 0 ? std::optional<int>(listener) : std::nullopt;
    const pid_t pid = fork();
    if (pid == 0) {
      for (const int other : outputs) close(other);
      if (rank != 0) close(listener);
      run_rank(body, env, ends[1]);
    }
    close(ends[1]);
    pids.push_back(pid);
    outputs.push_back(ends[0]);
  }
  close(listener);

  std::vector<RankResult> results(pids.size());
  std::size_t open = pids.size();
  while (open > 0 && core::seconds_since(begin) < options.limit_s) {
    std::vector<pollfd> polls;
    for (const int output : outputs)
      polls.push_back({.fd = output, .events = POLLIN, .revents = 0});
    poll(polls.data(), polls.size(), 100);
    for (std::size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      char block[4096];
      const ssize_t got = read(outputs[i], block, sizeof(block));
      if (got > 0) {
        results[i].text.append(block, static_cast<std::size_t>(got));
      } else {
        results[i].seconds = core::seconds_since(begin);
        close(outputs[i]);
        outputs[i] = -1;  // poll skips it
        --open;
      }
    }
  }
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (outputs[i] >= 0) {
      kill(pids[i], SIGKILL);
      close(outputs[i]);
    }
    int status = 0;
    waitpid(pids[i], &status, 0);
    results[i].status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return results;
}

}  // namespace scaletrain::testing
