// The first line of a small file of the system, empty where there is none.
#pragma once

#include <fstream>
#include <string>

namespace lt {

inline std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace lt
