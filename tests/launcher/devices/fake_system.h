// A small /proc and /sys in a temporary folder.
#pragma once

#include <filesystem>
#include <string>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {

class FakeSystem {
 public:
  const std::filesystem::path& root() const { return folder_.path; }

  // Writes a file below the root: "proc/stat".
  void set(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  void set_zone(const std::string& zone, const std::string& name, const std::string& microjoules,
                const std::string& range = "262143328850") const {
    const std::string folder = "sys/class/powercap/" + zone + "/";
    set(folder + "name", name + "\n");
    set(folder + "energy_uj", microjoules + "\n");
    set(folder + "max_energy_range_uj", range + "\n");
  }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace scaletrain::launcher
