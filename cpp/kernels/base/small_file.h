// Small text files of the system, and lists in them.
//
// Without the streams of the standard library: another library in the process (torch's wheels do) may bring a second
// copy of them, and objects of one then meet the code of the other.
#pragma once

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace lt {

// What lies between separators; none for an empty text, and none behind a last separator.
inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// The lines of a file, none where it cannot be read.
inline std::vector<std::string> lines_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  std::string text;
  char block[4096];
  if (file)
    for (size_t n; (n = std::fread(block, 1, sizeof block, file.get())) > 0;) text.append(block, n);
  return split(text, '\n');
}

// The first line of a file, empty where there is none.
inline std::string first_line(const std::string& path) {
  const std::vector<std::string> lines = lines_of(path);
  return lines.empty() ? std::string() : lines[0];
}

}  // namespace lt
