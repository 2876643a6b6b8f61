// The file system that a sandboxed program sees, as a list of steps: folders, links, small files of
// our own, and read-only views of the real ones. Made before the fork, because the child that
// carries it out must not allocate.
//
//   XB-4  Nothing is in view but the system's programs and libraries, what the profile names, and a
//         scratch folder, which alone can be written. A hidden path is not in view, wherever it is.
#pragma once

#include <string>
#include <vector>

#include "runtime/sandbox/landlock.h"
#include "runtime/sandbox/profile.h"

namespace tandem::sandbox {

inline constexpr const char* kScratchFolder = "/tmp";  // of a program with a file system of its own

// Paths are absolute. The scratch folder is made first, then come the lists, each in its order:
// folders, files, links, views, devices, covers.
struct Tree {
  struct Text {
    std::string at, content;  // of a link, its target
  };
  std::vector<std::string> folders;
  std::vector<Text> files, links;
  std::vector<std::string> views;    // of the real folder or file at the same path
  std::vector<std::string> devices;  // the same, with the rights of a device
  std::vector<std::string> covers;   // an empty folder or file is seen in place of the real one
};

// Reads the real file system: which of the system's folders there are, and what is a link.
Tree tree_of(const Profile& profile);

// The rights on real files of a program that has no file system of its own. A folder with a hidden
// path below it is replaced by its other entries, since Landlock has no exceptions.
std::vector<PathRule> rules_of(const Profile& profile, const std::string& scratch);

// The rights within the tree.
std::vector<PathRule> rules_within_tree();

// The folders and files that a program must be able to read in order to be started: the folder in
// which it lies and those of the targets of its links; where that is the folder `bin` or `shims` of
// an installation with libraries, such as a virtual environment, the whole installation. Paths of
// the system are left out. A folder above `home` is never named, nor `home` itself: the file alone.
std::vector<std::string> readable_for(const std::string& program, const std::string& home);

// The same for a whole command line, whose program is a path already: of each further word that
// names a file what readable_for() says, and each folder that a word names.
std::vector<std::string> readable_for_all(const std::vector<std::string>& argv,
                                          const std::string& home);

}  // namespace tandem::sandbox
